"""``abut within A [B] D``: face pairs at most D apart."""

import argparse
from typing import Any

from abut.cli.console import show_json
from abut.cli.operands import add_poses, add_query_options, length, load, load_poses
from abut.cli.report import (
    ROWS_SHOWN,
    pair_columns,
    plain_operands,
    run_timed,
    show_answer,
    show_first,
)
from abut.mesh import Mesh
from abut.query.within import within
from abut.results import Gaps


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "within",
        description="Find every pair of faces of two meshes at most D apart; of one mesh, every "
        "pair that is no neighbour or meets beyond what it shares.",
    )
    parser.add_argument("a", metavar="A", help="mesh file")
    parser.add_argument("b", metavar="B", nargs="?", help="mesh file; without it, A with itself")
    parser.add_argument("distance", metavar="D", type=length, help="distance, in units of the mesh")
    add_poses(parser)
    add_query_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer."""
    paths = {"a": args.a} if args.b is None else {"a": args.a, "b": args.b}
    meshes = tuple(load(path, args.device) for path in paths.values())
    near, stages = run_timed(
        _within,
        meshes,
        then=lambda answer: answer.points,
        distance=args.distance,
        pose_a=load_poses(args.pose_a),
        pose_b=load_poses(args.pose_b),
        method=args.method,
    )
    files = {name: (paths[name], mesh) for name, mesh in zip(paths, meshes, strict=True)}
    if args.json:
        rows = {name: array[: args.pairs].tolist() for name, array in near.numpy().items()}
        report = plain_operands(files) | {"pair_count": len(near), **rows}
        show_json(report | {"milliseconds": stages})
        return 0
    met = int((near.distance.numpy() == 0).sum())
    show_answer(files, [("pairs", f"{len(near):,}, {met:,} of them in contact")], stages)
    _show_pairs(near, ROWS_SHOWN if args.pairs is None else args.pairs)
    return 0


def _within(a: Mesh, b: Mesh | None = None, **options: Any) -> Gaps:
    return within(a, b, **options)


def _show_pairs(near: Gaps, limit: int) -> None:
    """Print the first pairs."""
    columns = pair_columns(near)
    columns["distance"] = [f"{x:.9g}" for x in near.distance.numpy()[:limit]]
    show_first(columns, len(near), limit)
