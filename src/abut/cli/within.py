"""``abut within A [B] D``: face pairs at most D apart."""

import argparse
from typing import Any

import numpy as np

from abut.cli.contacts import row_of
from abut.cli.operands import add_poses, add_query_options, length, load_operands, load_poses
from abut.cli.pictures import add_picture, check_picture, draw_picture
from abut.cli.report import pair_columns, run_timed, show_answer, show_first, show_json_answer
from abut.cli.where import where_facts, where_plain
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
    add_picture(parser, "the meshes and, in red, the gaps between their faces")
    add_query_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer."""
    check_picture(args)
    operands, poses = load_operands(args), load_poses(args)
    options = {"distance": args.distance, "method": args.method, **poses}
    near, stages = run_timed(_within, operands, then=lambda answer: answer.points, **options)
    row = row_of(near)
    chosen = np.ones(len(near), bool) if near.pose is None else near.pose.numpy() == row
    points = near.points.numpy()[chosen] if len(near) else np.empty((0, 2, 3))
    about = (near, operands, poses, row, points)
    draw_picture(args, args.a, stages, lambda made: made.of_gaps(*about))
    where = points.reshape(-1, 3)
    if args.json:
        rows = {name: array[: args.pairs].tolist() for name, array in near.numpy().items()}
        found = {"pair_count": len(near), "where": where_plain(where), **rows}
        show_json_answer(operands, found, stages, args.picture)
        return 0
    distance = near.distance.numpy()
    met = int((distance == 0).sum())
    pairs = f"{len(near):,}" + (f", {met:,} of them in contact" if len(near) else "")
    found = [("pairs", pairs), *where_facts(where, row)]
    show_answer(operands, found, stages, args.picture)
    columns = pair_columns(near) | {"distance": [f"{x:.9g}" for x in distance]}
    show_first(columns, len(near), args.pairs)
    return 0


def _within(a: Mesh, b: Mesh | None = None, **options: Any) -> Gaps:
    return within(a, b, **options)
