"""``abut collide A B``: the pairs of faces of two meshes that meet."""

import argparse
from typing import Any

from abut.cli.console import show_facts, show_json, show_rows
from abut.cli.operands import (
    ROWS_SHOWN,
    add_query_options,
    describe,
    facts,
    load,
    load_poses,
    measured,
    report,
)
from abut.options import Bound
from abut.query.collide import collide
from abut.results import Contacts


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "collide",
        help="the pairs of faces of two meshes that meet",
        description="Find every pair of faces of two meshes that share a point, exactly. "
        "Exit status: 0 no contact, 1 contact, 2 error.",
    )
    parser.add_argument("a", metavar="A", help="mesh file")
    parser.add_argument("b", metavar="B", help="mesh file")
    for side in "ab":
        parser.add_argument(
            f"--pose-{side}",
            metavar="FILE",
            help=f"rigid motion of {side.upper()}: 4x4, or a batch Bx4x4 (.npy or text)",
        )
    parser.add_argument("--first", action="store_true", help="stop at one pair for each pose")
    parser.add_argument(
        "--solid", action="store_true", help="one closed mesh inside the other is contact too"
    )
    parser.add_argument("--bound", choices=[str(b) for b in Bound], default="aabb")
    add_query_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Answer; 1 when there is contact."""
    meshes = load(args.a, args.device), load(args.b, args.device)
    hits, stages = measured(
        collide,
        meshes,
        pose_a=load_poses(args.pose_a),
        pose_b=load_poses(args.pose_b),
        first=args.first,
        solid=args.solid,
        method=args.method,
        bound=args.bound,
    )
    if args.json:
        show_json(report(hits, args.pairs, stages))
    else:
        named = zip("ab", (args.a, args.b), meshes, strict=True)
        operands = [(name, describe(path, mesh)) for name, path, mesh in named]
        show_facts([*operands, *facts(hits, stages)])
        show_pairs(hits, ROWS_SHOWN if args.pairs is None else args.pairs)
    return int(bool(hits))


def show_pairs(hits: Contacts, limit: int) -> None:
    """The first pairs, and how many more there are."""
    count = min(limit, len(hits))
    if count == 0:
        return
    columns = {"face a": hits.pairs.numpy()[:count, 0], "face b": hits.pairs.numpy()[:count, 1]}
    if hits.pose is not None:
        columns = {"pose": hits.pose.numpy()[:count], **columns}
    print()
    show_rows(list(columns), zip(*columns.values(), strict=True))
    if len(hits) > count:
        print(f"… and {len(hits) - count:,} more (--pairs N)")
