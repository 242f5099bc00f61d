"""``abut field build MESH -o F.npz`` and ``abut field query F.npz MESH``: distance fields."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.console import bar, show_facts, show_json, working
from abut.cli.operands import (
    add_choice,
    add_length,
    add_output,
    add_report,
    load,
    natural,
    read_poses,
)
from abut.cli.pictures import add_picture, check_picture, draw_picture, drawn, vertical_of
from abut.cli.report import show_first, size_of, sizes_of
from abut.cli.where import Facts, hint_facts, hint_plain, point_text
from abut.io.write import require_writable
from abut.options import Sign
from abut.sdf.distance_field import DistanceField
from abut.sdf.field_files import require_known


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "field",
        description="Distance fields: the signed distance to a mesh on a regular grid.",
    )
    parser.set_defaults(run=lambda args: parser.print_help() or 0)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _add_build(actions)
    _add_query(actions)


def _add_build(actions: Any) -> None:
    parser = actions.add_parser(
        "build",
        help="build the field of a mesh",
        description="Sample the signed distance to a mesh on a regular grid.",
    )
    parser.add_argument("mesh", metavar="MESH", help="mesh file")
    out = {"required": True, "metavar": "FILE", "help": "F.npz, or F.nvdb for NanoVDB"}
    parser.add_argument("-o", "--out", **out)
    size = parser.add_mutually_exclusive_group()
    about = "samples along the longest side (256)"
    size.add_argument("--resolution", type=natural, metavar="N", help=about)
    add_length(size, "--spacing", "distance between samples instead")
    add_length(parser, "--margin", "margin around the mesh (default: a tenth)")
    add_length(parser, "--band", "clamp distances to D")
    add_choice(parser, "--sign", ["auto", *Sign], "auto")
    add_picture(parser, "a section through the field, its inside in red,")
    add_output(parser)
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
    about = "rigid motion of MESH: 4x4, or a batch Bx4x4 (.npy or text)"
    parser.add_argument("--pose", metavar="FILE", help=about)
    about = "along the longest side (1024)"
    parser.add_argument("--pixels", type=natural, default=1024, metavar="N", help=about)
    add_picture(parser, "the object, the mesh and, in red, the way between them")
    add_report(parser, "poses")
    parser.set_defaults(run=query)


def build(args: argparse.Namespace) -> int:
    """Build a field and save it."""
    check_picture(args)
    require_known(Path(args.out))
    require_writable(args.out)
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
    draw_picture(
        args, args.mesh, {}, lambda made: made.of_section(field, mesh, vertical_of(args, args.mesh))
    )
    if args.json:
        report = _plain(field) | {"file": args.out, "seconds": spent, **drawn(args)}
        show_json(report | {"least": float(values.min()), "most": float(values.max())})
        return 0
    facts = [("mesh", f"{args.mesh}: {sizes_of(mesh)}"), *_facts(field)]
    facts.append(("distances", f"{values.min():.6g} to {values.max():.6g}"))
    facts.append(("file", f"{args.out}, {Path(args.out).stat().st_size:,} bytes"))
    facts.append(("time", f"{spent:.3f} s, loading of kernels included"))
    show_facts([*facts, *drawn(args).items()])
    return 0


def query(args: argparse.Namespace) -> int:
    """Query a field and print the answer."""
    check_picture(args)
    with working(f"reading {args.field}"):
        field = DistanceField.load(args.field, args.device)
    mesh = load(args.mesh, args.device)
    poses = read_poses(args.pose)
    with working("sampling"):
        near = field.closest(mesh, poses, pixels=args.pixels)
        rows = near.numpy()
    draw_picture(args, args.mesh, {}, lambda made: made.of_closest(field, mesh, poses, rows))
    sizes = {"the mesh": size_of(mesh), "the field": field.box.spacing * np.array(field.box.shape)}
    if args.json:
        plain = {name: array.tolist() for name, array in rows.items()}
        plain |= hint_plain(sizes) | drawn(args)
        show_json({"field": _plain(field), "mesh": args.mesh, "pixels": args.pixels} | plain)
        return 0
    facts = [*_facts(field), ("mesh", f"{args.mesh}: {sizes_of(mesh)}"), *hint_facts(sizes)]
    show_facts([*facts, *_found(rows), *drawn(args).items()])
    if rows["value"].ndim:
        value = rows["value"]
        columns = {"pose": range(len(value)), "distance": [f"{x:.9g}" for x in value]}
        show_first(columns | {"face": rows["face"]}, len(value), args.pairs)
    return 0


def _facts(field: DistanceField) -> Facts:
    shape = " x ".join(map(str, field.box.shape))
    return [
        ("field", f"{shape} samples, {field.box.spacing:.6g} apart"),
        ("memory", f"{field.nbytes:,} bytes on {field.device}"),
        ("inside", f"by {field.sign}"),
    ]


def _found(rows: dict[str, np.ndarray]) -> Facts:
    value = rows["value"]
    if value.ndim:
        inside = int((value < 0).sum())
        return [("poses", f"{len(value):,}, {inside:,} of them inside")]
    where = "deepest" if value < 0 else "closest"
    on_object, on_mesh = map(point_text, rows["points"])
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
