"""``abut ccd FRAME0 FRAME1``: the first self-contact of a moving mesh, in one step or many."""

import argparse
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.animations import FOLLOW, frame_count, frames_of
from abut.cli.console import progress, show_facts, show_json
from abut.cli.impacts import Step
from abut.cli.operands import add_choice, add_length, add_report, load_operands
from abut.cli.pictures import add_picture, check_picture, draw_picture, drawn
from abut.cli.report import Stages, run_timed, show_first, sizes_of, times_line
from abut.cli.self_collide import NO_WELD
from abut.cli.where import Facts, count_text, where_facts, where_plain
from abut.errors import FileError, MeshError
from abut.io import reading
from abut.mesh import Mesh
from abut.motion import Motion
from abut.options import MOVING_BOUNDS, Solver
from abut.query.ccd import ccd
from abut.query.tracker import Tracker
from abut.results import ImpactKind, Impacts

NAMES = {kind: kind.name.lower().replace("_", "-") for kind in ImpactKind}


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "ccd",
        description="Find every vertex and face, and every two edges, of a mesh that touch while "
        "its vertices go straight from one frame to the next; none is missed, no time is late. "
        "Exit status: 0 no contact, 1 contact, 2 error.",
    )
    parser.add_argument(
        "start", metavar="FRAME0", help="mesh file, or with --follow a folder or .npz"
    )
    parser.add_argument("end", metavar="FRAME1", nargs="?", help="mesh file with the same faces")
    parser.add_argument("--follow", action="store_true", help=FOLLOW)
    parser.add_argument(
        "--method",
        choices=["bvh", "front"],
        default="bvh",
        help="with --follow, where each search starts: at the root (bvh, the default and faster) "
        "or at the last BVTT front",
    )
    add_length(parser, "--min-distance", "gap to keep (default: 0)", 0.0)
    about = "of times (default: 1e-6)"
    parser.add_argument("--tolerance", type=float, default=1e-6, metavar="T", help=about)
    parser.add_argument("--first", action="store_true", help="only the earliest impact")
    add_choice(parser, "--solver", Solver, "conservative", "cubic may miss contacts")
    add_choice(parser, "--bound", MOVING_BOUNDS, "aabb")
    parser.add_argument("--no-weld", **NO_WELD)
    add_picture(parser, "the mesh at its first impact and, in red, the features that touch")
    add_report(parser, "impacts")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when there is contact."""
    check_picture(args)
    if args.follow:
        return _follow(args)
    if args.end is None:
        raise FileError("abut ccd takes two frames, or one folder with --follow.")
    operands = load_operands(args, ("start", "end"))
    start, end = (mesh for _, mesh in operands.values())
    if not np.array_equal(start.faces.numpy(), end.faces.numpy()):
        raise MeshError(f"{args.end} does not have the faces of the frame before it.")
    hits, stages = run_timed(_ccd, operands, **_options(args))
    step = Step(start, start.points.numpy(), end.points.numpy(), hits)
    draw_picture(args, args.start, stages, lambda made: made.of_step(step))
    _show(hits, step, args, stages)
    return int(bool(hits))


def _ccd(start: Mesh, end: Mesh, **options: Any) -> Impacts:
    return ccd(Motion(start, end.vertices), **options)


def _follow(args: argparse.Namespace) -> int:
    """Query every step of an animation and print one line each."""
    count = frame_count(Path(args.start))
    frames = frames_of(Path(args.start))
    start, vertices, faces = next(frames)
    with reading(args.start, "frames"):
        mesh = Mesh(vertices, faces, args.device)
    options = _options(args)
    how = {name: options.pop(name) for name in ("weld", "bound")}
    tracker = Tracker(mesh, method=args.method, **how)
    steps = []
    shown: Step | None = None
    for name, vertices, _ in progress(frames, "steps", count - 1):
        before = np.array(mesh.points.numpy())
        hits = tracker.advance(vertices, **options)
        shown = shown if shown and shown.hits else Step(mesh, before, vertices, hits)
        steps.append({"frame": name, "impact_count": len(hits), **_times(hits)})
        if not args.json:
            print(f"{name}: {_verdict(hits)}", flush=True)
    draw_picture(args, args.start, {}, lambda made: made.of_step(shown))
    if args.json:
        first = str(Path(args.start, start))
        show_json({"start": first, "device": str(mesh.device), "steps": steps, **drawn(args)})
    return int(any(step["impact_count"] for step in steps))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    names = ("min_distance", "tolerance", "first", "solver", "weld", "bound")
    return {name: getattr(args, name) for name in names}


def _show(hits: Impacts, step: Step, args: argparse.Namespace, stages: Stages) -> None:
    rows, mesh = hits.numpy(), step.mesh
    if args.json:
        size = {"vertices": mesh.vertex_count, "faces": mesh.face_count}
        about = {"start": args.start, "end": args.end, **size, "device": str(mesh.device)}
        plain = {name: array[: args.pairs].tolist() for name, array in rows.items()}
        found = {"impact_count": len(hits), **_times(hits), "where": where_plain(step.points())}
        found |= plain
        show_json({**about, **found, "milliseconds": stages, **drawn(args)})
        return
    frames = f"{args.start}, {args.end}: {sizes_of(mesh)}"
    facts = [("frames", frames), ("contact", _verdict(hits)), *_first_facts(hits)]
    facts += where_facts(step.points())
    facts += [("device", str(mesh.device)), ("time", times_line(stages))]
    show_facts([*facts, *drawn(args).items()])
    kinds = [NAMES[ImpactKind(kind)] for kind in rows["kind"]]
    features = dict(zip(("vertex or edge", "face or edge"), rows["features"].T, strict=True))
    show_first({"kind": kinds, **features, "time": rows["time"]}, len(hits), args.pairs)


def _first_facts(hits: Impacts) -> Facts:
    """The features of the earliest impact."""
    if not hits:
        return []
    rows = hits.numpy()
    row = int(np.argmin(rows["time"]))
    names = NAMES[ImpactKind(rows["kind"][row])].split("-")
    (a, b), (one, other) = names, rows["features"][row]
    return [("first impact", f"{a} {one} and {b} {other}")]


def _times(hits: Impacts) -> dict[str, float | None]:
    return {"first": hits.first if isfinite(hits.first) else None, "safe_step": hits.safe_step}


def _verdict(hits: Impacts) -> str:
    if not hits:
        return "no"
    return f"{count_text(len(hits), 'impact')}, the first at {hits.first:.6g} of the step"
