"""``abut within A [B] D``: face pairs at most D apart."""

import argparse
from typing import Any

from abut.cli.operands import add_poses, add_query_options, length, load_operands, load_poses
from abut.cli.report import pair_columns, run_timed, show_answer, show_first, show_json_answer
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
    operands = load_operands(args)
    options = {"distance": args.distance, "method": args.method, **load_poses(args)}
    near, stages = run_timed(_within, operands, then=lambda answer: answer.points, **options)
    if args.json:
        rows = {name: array[: args.pairs].tolist() for name, array in near.numpy().items()}
        show_json_answer(operands, {"pair_count": len(near), **rows}, stages)
        return 0
    distance = near.distance.numpy()
    met = int((distance == 0).sum())
    show_answer(operands, [("pairs", f"{len(near):,}, {met:,} of them in contact")], stages)
    columns = pair_columns(near) | {"distance": [f"{x:.9g}" for x in distance]}
    show_first(columns, len(near), args.pairs)
    return 0


def _within(a: Mesh, b: Mesh | None = None, **options: Any) -> Gaps:
    return within(a, b, **options)
