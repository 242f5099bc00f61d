"""``abut scene FILES…``: colliding objects of scene, robot and mesh files."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.console import show_facts, show_json, working
from abut.cli.contacts import lines_of, load_segments, segments_of
from abut.cli.operands import add_choice, add_length, add_query_options, files_in
from abut.cli.pictures import add_picture, check_picture, draw_picture, drawn
from abut.cli.report import run_timed, show_first, timed, times_line
from abut.cli.where import (
    Facts,
    count_text,
    hint_facts,
    hint_plain,
    point_text,
    size_text,
    where_facts,
    where_plain,
)
from abut.options import CONTACT_METHODS
from abut.scene import Scene

Near = list[tuple[float, list[str], np.ndarray]]  # distance, objects, points


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "scene",
        description="Find the objects of files (GLB, glTF, URDF, MJCF, or any mesh file) that "
        "meet, where, and how many of their faces do. Of several files or a folder, all objects "
        "are one scene. Exit status: 0 no contact, 1 contact, 2 error.",
    )
    about = "scene, robot or mesh file, or a folder of mesh files"
    parser.add_argument("files", metavar="FILE", nargs="+", help=about)
    parser.add_argument("--self", action="store_true", help="also objects that cut themselves")
    add_length(parser, "--within", "also pairs of objects at most D apart")
    about = "which geometry of a robot"
    add_choice(parser, "--geometry", ("collision", "visual"), "collision", about)
    add_picture(parser, "the objects and, in red, where they meet")
    add_query_options(parser, CONTACT_METHODS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when objects collide."""
    check_picture(args)
    files = files_in(args.files)
    parts = [(file, _load(file, args)) for file in files]
    scene = parts[0][1] if len(parts) == 1 else together(parts)
    sizes = {file: _size(part) for file, part in parts} if len(parts) > 1 else {}
    options = {"self_collisions": args.self, "method": args.method}
    hits, stages = run_timed(scene.collide, {}, then=load_segments, **options)
    segments, coplanar = timed(stages, "segments", lambda: segments_of(hits))
    objects = hits.objects.numpy()
    pairs = np.unique(objects, axis=0)
    colliding = [_row(scene, pair, segments[(objects == pair).all(axis=1)]) for pair in pairs]
    near = _near(scene, args.within)
    lines = lines_of(segments, coplanar) or [points for _, _, points in near]
    draw_picture(args, files[0], stages, lambda made: made.of_scene(scene, lines))
    report: dict[str, Any] = {
        "file": ", ".join(args.files),
        "objects": len(scene),
        "faces": sum(mesh.face_count for mesh in scene.meshes),
        "size": _size(scene).tolist(),
        "device": str(scene.device),
        **hint_plain(sizes),
    }
    found = {"contacts": colliding, "near": _plain(near), "milliseconds": stages}
    if args.json:
        show_json(report | found | drawn(args))
    else:
        about = [*hint_facts(sizes), *_robot(scene)]
        _show(report | found, about, where_facts(segments.reshape(-1, 3)), args)
    return int(bool(hits))


def _show(report: dict[str, Any], about: Facts, where: Facts, args: argparse.Namespace) -> None:
    """Print the report as tables."""
    colliding, near = report["contacts"], report["near"]
    size = f"{report['objects']:,} objects, {report['faces']:,} faces, "
    facts = [("file", f"{report['file']}: {size}size {size_text(report['size'])}"), *about]
    contact = f"{count_text(len(colliding), 'pair')} of objects" if colliding else "no"
    facts += [("contact", contact), *where]
    facts += [("device", report["device"]), ("time", times_line(report["milliseconds"]))]
    show_facts([*facts, *drawn(args).items()])
    centres = [point_text(row["where"]["centre"]) for row in colliding]
    counts = {"face pairs": [row["face_pairs"] for row in colliding], "centre": centres}
    distances = {"distance": [row["distance"] for row in near]}
    for rows, more in ((colliding, counts), (near, distances)):
        ends = zip(
            ("object", "and"), zip(*(row["objects"] for row in rows), strict=True), strict=False
        )
        show_first(dict(ends) | more, len(rows), args.pairs)


def _robot(scene: Scene) -> Facts:
    return [] if scene.robot is None else [("robot", f"{len(scene.robot.joints)} joints")]


def _plain(near: Near) -> list[dict[str, Any]]:
    return [{"objects": pair, "distance": value} for value, pair, _ in near]


def together(parts: list[tuple[str, Scene]]) -> Scene:
    """One scene of all files; names of objects begin with the name of their file."""
    whole = Scene(device=parts[0][1].device)
    for file, part in parts:
        rows: dict[int, int] = {}
        for row in part.indices.tolist():
            name = Path(file).name if len(part) == 1 else f"{Path(file).name}/{_name(part, row)}"
            name = name if name not in whole.names else f"{name} #{len(whole)}"
            rows[row] = whole.add(part.mesh(row), part.pose_of(row), name)
        for low, high in part.ignored_pairs.tolist():
            whole.ignore(rows[low], rows[high])
    return whole


def _load(file: str, args: argparse.Namespace) -> Scene:
    with working(f"reading {file}"):
        return Scene.load(file, args.device, geometry=args.geometry)


def _row(scene: Scene, pair: np.ndarray, segments: np.ndarray) -> dict[str, Any]:
    """Names of two objects that meet, the number of their face pairs, and their place."""
    names = [_name(scene, row) for row in pair.tolist()]
    where = where_plain(segments.reshape(-1, 3))
    return {"objects": names, "face_pairs": len(segments), "where": where}


def _name(scene: Scene, row: int) -> str:
    name = scene.name_of(row)
    return str(row) if name is None else name


def _size(scene: Scene) -> np.ndarray:
    """(3,) sides of the box around all objects."""
    placed = ((scene.mesh(row).points.numpy(), scene.pose_of(row)) for row in scene.indices)
    points = [points @ pose[:3, :3].T + pose[:3, 3] for points, pose in placed]
    return np.ptp(np.concatenate(points), axis=0)


def _near(scene: Scene, bound: float | None) -> Near:
    """Pairs of disjoint objects within a distance, nearest first."""
    if bound is None:
        return []
    found = scene.distance(upper_bound=bound).numpy()
    rows = zip(found["objects"].tolist(), found["distance"].tolist(), found["points"], strict=True)
    apart = [(d, [_name(scene, i) for i in pair], points) for pair, d, points in rows if d > 0]
    return sorted(apart, key=lambda row: row[:2])
