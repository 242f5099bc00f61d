"""``abut field build MESH -o F.npz`` and ``abut field query F.npz MESH``: distance fields."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.console import bar, show_facts, show_json, working
from abut.cli.operands import add_device, length, load, load_poses, natural
from abut.cli.report import ROWS_SHOWN, show_first
from abut.options import Sign
from abut.sdf.distance_field import DistanceField
from abut.sdf.field_files import require_known


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "field",
        description="Distance fields: the signed distance to a mesh on a regular grid.",
    )
    parser.set_defaults(run=lambda args: _help(parser))
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _add_build(actions)
    _add_query(actions)


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def _add_build(actions: Any) -> None:
    parser = actions.add_parser(
        "build",
        help="build the field of a mesh",
        description="Sample the signed distance to a mesh on a regular grid.",
    )
    parser.add_argument("mesh", metavar="MESH", help="mesh file")
    parser.add_argument(
        "-o", "--out", required=True, metavar="FILE", help="F.npz, or F.nvdb for NanoVDB"
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--resolution", type=natural, metavar="N", help="samples along the longest side (256)"
    )
    size.add_argument(
        "--spacing", type=length, metavar="D", help="distance between samples instead"
    )
    parser.add_argument(
        "--margin", type=length, metavar="D", help="margin around the mesh (default: a tenth)"
    )
    parser.add_argument("--band", type=length, metavar="D", help="clamp distances to D")
    parser.add_argument(
        "--sign", choices=["auto", *map(str, Sign)], default="auto", help="default: auto"
    )
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=build)


def _add_query(actions: Any) -> None:
    parser = actions.add_parser(
        "query",
        help="the closest or deepest point of a mesh",
        description="Find the sampled point of a mesh that is closest to the object of a field, or "
        "deepest inside it.",
    )
    parser.add_argument("field", metavar="F.npz", help="a field that was built")
    parser.add_argument("mesh", metavar="MESH", help="mesh file")
    parser.add_argument(
        "--pose", metavar="FILE", help="rigid motion of MESH: 4x4, or a batch Bx4x4 (.npy or text)"
    )
    parser.add_argument(
        "--pixels", type=natural, default=1024, metavar="N", help="along the longest side (1024)"
    )
    parser.add_argument("--pairs", type=natural, metavar="N", help="poses to list")
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=query)


def build(args: argparse.Namespace) -> int:
    """Build a field and save it."""
    require_known(Path(args.out))
    mesh = load(args.mesh, args.device)
    options = {"margin": args.margin, "band": args.band, "sign": args.sign}
    with bar("sampling") as progress:
        start = time.perf_counter()
        field = DistanceField(
            mesh, resolution=args.resolution, spacing=args.spacing, progress=progress, **options
        )
        spent = time.perf_counter() - start
    with working(f"writing {args.out}"):
        field.save(args.out)
    values = field.distance.numpy()
    if args.json:
        report = _plain(field) | {"file": args.out, "seconds": spent}
        show_json(report | {"least": float(values.min()), "most": float(values.max())})
        return 0
    facts = [("mesh", f"{args.mesh}: {mesh.vertex_count:,} vertices, {mesh.face_count:,} faces")]
    facts += _facts(field)
    facts.append(("distances", f"{values.min():.6g} to {values.max():.6g}"))
    facts.append(("file", f"{args.out}, {Path(args.out).stat().st_size:,} bytes"))
    show_facts([*facts, ("time", f"{spent:.3f} s, loading of kernels included")])
    return 0


def query(args: argparse.Namespace) -> int:
    """Query a field and print the answer."""
    with working(f"reading {args.field}"):
        field = DistanceField.load(args.field, args.device)
    mesh = load(args.mesh, args.device)
    poses = load_poses(args.pose)
    with working("sampling"):
        near = field.closest(mesh, poses, pixels=args.pixels)
        rows = near.numpy()
    if args.json:
        plain = {name: array.tolist() for name, array in rows.items()}
        show_json({"field": _plain(field), "mesh": args.mesh, "pixels": args.pixels} | plain)
        return 0
    files = [("mesh", f"{args.mesh}: {mesh.vertex_count:,} vertices, {mesh.face_count:,} faces")]
    show_facts([*_facts(field), *files, *_found(rows)])
    if rows["value"].ndim:
        value = rows["value"]
        columns = {"pose": range(len(value)), "distance": [f"{x:.9g}" for x in value]}
        limit = ROWS_SHOWN if args.pairs is None else args.pairs
        show_first(columns | {"face": rows["face"]}, len(value), limit)
    return 0


def _facts(field: DistanceField) -> list[tuple[str, str]]:
    shape = " x ".join(map(str, field.box.shape))
    return [
        ("field", f"{shape} samples, {field.box.spacing:.6g} apart"),
        ("memory", f"{field.nbytes:,} bytes on {field.device}"),
        ("inside", f"by {field.sign}"),
    ]


def _found(rows: dict[str, np.ndarray]) -> list[tuple[str, str]]:
    value = rows["value"]
    if value.ndim:
        inside = int((value < 0).sum())
        return [("poses", f"{len(value):,}, {inside:,} of them inside")]
    where = "deepest" if value < 0 else "closest"
    on_object, on_mesh = ("(" + ", ".join(f"{x:.9g}" for x in p) + ")" for p in rows["points"])
    return [
        ("distance", f"{float(value):.9g}"),
        (where, f"face {int(rows['face'])} of the mesh at {on_mesh}"),
        ("on the object", on_object),
    ]


def _plain(field: DistanceField) -> dict[str, Any]:
    return {
        "shape": list(field.box.shape),
        "lower": field.box.lower.tolist(),
        "spacing": field.box.spacing,
        "sign": str(field.sign),
        "bytes": field.nbytes,
        "device": str(field.device),
    }
