"""``abut ccd FRAME0 FRAME1``: the first self-contact of a moving mesh, in one step or many."""

import argparse
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.console import progress, show_facts, show_json
from abut.cli.operands import add_choice, add_length, add_report, load_operands
from abut.cli.report import Stages, run_timed, show_first, sizes_of, times_line
from abut.cli.self_collide import NO_WELD
from abut.errors import FileError, MeshError
from abut.io import reading
from abut.io.numpy_files import read_archive
from abut.mesh import Mesh
from abut.motion import Motion
from abut.options import Solver
from abut.query.ccd import ccd
from abut.query.tracker import Tracker
from abut.results import ImpactKind, Impacts

NAMES = {kind: kind.name.lower().replace("_", "-") for kind in ImpactKind}
MESH_FILES = (".ply", ".obj", ".stl", ".off", ".npz")
Frame = tuple[str, np.ndarray, np.ndarray]  # name, vertices, faces


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
    parser.add_argument(
        "--follow",
        action="store_true",
        help="all steps of an animation, one line each: a folder of frames, or a .npz "
        "with vertices (frames, n, 3) and faces",
    )
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
    parser.add_argument("--no-weld", **NO_WELD)
    add_report(parser, "impacts")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when there is contact."""
    if args.follow:
        return _follow(args)
    if args.end is None:
        raise FileError("abut ccd takes two frames, or one folder with --follow.")
    operands = load_operands(args, ("start", "end"))
    start, end = (mesh for _, mesh in operands.values())
    if not np.array_equal(start.faces.numpy(), end.faces.numpy()):
        raise MeshError(f"{args.end} does not have the faces of the frame before it.")
    hits, stages = run_timed(_ccd, operands, **_options(args))
    _show(hits, start, args, stages)
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
    tracker = Tracker(mesh, method=args.method, weld=options.pop("weld"))
    steps = []
    for name, vertices, _ in progress(frames, "steps", count - 1):
        hits = tracker.advance(vertices, **options)
        steps.append({"frame": name, "impact_count": len(hits), **_times(hits)})
        if not args.json:
            print(f"{name}: {_verdict(hits)}", flush=True)
    if args.json:
        first = str(Path(args.start, start))
        show_json({"start": first, "device": str(mesh.device), "steps": steps})
    return int(any(step["impact_count"] for step in steps))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    names = ("min_distance", "tolerance", "first", "solver", "weld")
    return {name: getattr(args, name) for name in names}


def _show(hits: Impacts, mesh: Mesh, args: argparse.Namespace, stages: Stages) -> None:
    rows = hits.numpy()
    if args.json:
        size = {"vertices": mesh.vertex_count, "faces": mesh.face_count}
        about = {"start": args.start, "end": args.end, **size, "device": str(mesh.device)}
        plain = {name: array[: args.pairs].tolist() for name, array in rows.items()}
        found = {"impact_count": len(hits), **_times(hits), **plain}
        show_json({**about, **found, "milliseconds": stages})
        return
    frames = f"{args.start}, {args.end}: {sizes_of(mesh)}"
    facts = [("frames", frames), ("contact", _verdict(hits)), ("device", str(mesh.device))]
    show_facts([*facts, ("time", times_line(stages))])
    kinds = [NAMES[ImpactKind(kind)] for kind in rows["kind"]]
    features = {"of a": rows["features"][:, 0], "of b": rows["features"][:, 1]}
    show_first({"kind": kinds, **features, "time": rows["time"]}, len(hits), args.pairs)


def _times(hits: Impacts) -> dict[str, float | None]:
    return {"first": hits.first if isfinite(hits.first) else None, "safe_step": hits.safe_step}


def _verdict(hits: Impacts) -> str:
    if not hits:
        return "no"
    return f"{len(hits):,} impacts, the first at {hits.first:.6g} of the step"


def frames_of(path: Path) -> Iterator[Frame]:
    """Yield the name, vertices and faces of all frames; refuses frames with other faces."""
    first = None
    for name, vertices, faces in _all_frames(path):
        first = faces if first is None else first
        if faces is not first and not np.array_equal(faces, first):
            raise MeshError(f"{name} does not have the faces of the frame before it.")
        if not np.isfinite(vertices).all():
            raise MeshError(f"{path}: a vertex of {name} is not finite.")
        yield name, vertices, faces


def frame_count(path: Path) -> int:
    """Number of frames; refuses fewer than two."""
    count = len(_files(path)) if path.is_dir() else len(_arrays(path)[0])
    if count < 2:
        what = "mesh files" if path.is_dir() else "frames"
        raise FileError(f"{path} has {count} {what}; a step takes two.")
    return count


def _all_frames(path: Path) -> Iterator[Frame]:
    if path.is_dir():
        for file in _files(path):
            if file.suffix.lower() == ".npz":
                shapes, faces = _arrays(file)
                if len(shapes) != 1:
                    raise FileError(f"{file} has {len(shapes)} frames; in a folder each has one.")
                yield file.name, shapes[0], faces
            else:
                mesh = Mesh.load(file, "cpu")
                yield file.name, mesh.vertices.numpy(), mesh.faces.numpy()
        return
    shapes, faces = _arrays(path)
    for k, vertices in enumerate(shapes):
        yield f"frame {k}", vertices, faces


def _files(folder: Path) -> list[Path]:
    """Mesh files of a folder, sorted by the numbers in their names."""
    with reading(folder, "frames"):
        files = [p for p in folder.iterdir() if p.suffix.lower() in MESH_FILES]
    return sorted(files, key=lambda p: [(int(n or -1), s) for n, s in _words(p.name)])


def _words(name: str) -> Iterator[tuple[str, str]]:
    return iter(re.findall(r"(\d+)|(\D+)", name))


def _arrays(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Load vertices of all frames (k, n, 3) and faces (m, 3) from an .npz file."""
    if file.suffix.lower() != ".npz":
        raise FileError(
            f"{file} is not a folder; --follow wants one with a file for each frame, or one .npz."
        )
    held = read_archive(file, "frames")
    vertices, faces = (_named(held, file, *names) for names in (("vertices", "V"), ("faces", "F")))
    if not len(faces):
        raise FileError(f"{file} has no faces.")
    vertices = vertices[None] if vertices.ndim == 2 else vertices
    if vertices.ndim != 3 or vertices.shape[2] != 3 or vertices.dtype.kind not in "fiu":
        found = f"{vertices.shape} of {vertices.dtype}"
        raise FileError(f"{file} has vertices of shape {found}, not (frames, n, 3) of numbers.")
    return vertices, faces


def _named(held: dict[str, np.ndarray], file: Path, *names: str) -> np.ndarray:
    for name in names:
        if name in held and held[name].ndim:
            return held[name]
    raise FileError(f"{file} cannot be read as frames: there is no array {' or '.join(names)}.")
