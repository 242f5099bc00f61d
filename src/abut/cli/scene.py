"""``abut scene FILE``: colliding objects of a scene or robot file."""

import argparse
from typing import Any

import numpy as np

from abut.cli.console import show_facts, show_json, working
from abut.cli.operands import add_choice, add_length, add_query_options
from abut.cli.report import run_timed, show_first, times_line
from abut.options import CONTACT_METHODS
from abut.scene import Scene


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "scene",
        description="Find the objects of a file (GLB, glTF, URDF, MJCF, or any mesh file) that "
        "meet, and how many of their faces do. Exit status: 0 no contact, 1 contact, 2 error.",
    )
    parser.add_argument("file", metavar="FILE", help="scene or robot file")
    parser.add_argument("--self", action="store_true", help="also objects that cut themselves")
    add_length(parser, "--within", "also pairs of objects at most D apart")
    about = "which geometry of a robot"
    add_choice(parser, "--geometry", ("collision", "visual"), "collision", about)
    add_query_options(parser, CONTACT_METHODS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when objects collide."""
    with working(f"reading {args.file}"):
        scene = Scene.load(args.file, args.device, geometry=args.geometry)
    hits, stages = run_timed(scene.collide, {}, self_collisions=args.self, method=args.method)
    names = {row: name for name, row in scene.names.items()}
    pairs, counts = np.unique(hits.objects.numpy(), axis=0, return_counts=True)
    colliding = [
        {"objects": [names[i] for i in pair], "face_pairs": count}
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
    ]
    near = _near(scene, args.within, names)
    report: dict[str, Any] = {
        "file": args.file,
        "objects": len(scene),
        "faces": sum(mesh.face_count for mesh in scene.meshes),
        "device": str(scene.device),
    }
    if args.json:
        show_json(report | {"contacts": colliding, "near": near, "milliseconds": stages})
        return int(bool(hits))
    size = f"{report['objects']:,} objects, {report['faces']:,} faces"
    facts = [("file", f"{args.file}: {size}")]
    if scene.robot is not None:
        facts.append(("robot", f"{len(scene.robot.joints)} joints"))
    facts.append(("contact", f"{len(colliding):,} pairs of objects" if colliding else "no"))
    show_facts([*facts, ("device", report["device"]), ("time", times_line(stages))])
    for rows, value in ((colliding, "face_pairs"), (near, "distance")):
        columns = {
            "object": [row["objects"][0] for row in rows],
            "and": [row["objects"][1] for row in rows],
            value.replace("_", " "): [row[value] for row in rows],
        }
        show_first(columns, len(rows), args.pairs)
    return int(bool(hits))


def _near(scene: Scene, bound: float | None, names: dict[int, str]) -> list[dict[str, Any]]:
    """Pairs of disjoint objects within a distance, nearest first."""
    if bound is None:
        return []
    found = scene.distance(upper_bound=bound)
    rows = zip(found.objects.numpy().tolist(), found.value.numpy().tolist(), strict=True)
    apart = [(value, [names[i] for i in pair]) for pair, value in rows if value > 0]
    return [{"objects": pair, "distance": value} for value, pair in sorted(apart)]
