"""``abut collide A B``: intersecting face pairs of two meshes."""

import argparse
from typing import Any

from abut.cli.operands import add_poses, add_query_options, load, load_poses
from abut.cli.report import run_timed, show_contacts
from abut.options import CONTACT_METHODS, Bound
from abut.query.collide import collide


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "collide",
        description="Find every pair of faces of two meshes that share a point, exactly. "
        "Exit status: 0 no contact, 1 contact, 2 error.",
    )
    parser.add_argument("a", metavar="A", help="mesh file")
    parser.add_argument("b", metavar="B", help="mesh file")
    add_poses(parser)
    parser.add_argument("--first", action="store_true", help="stop at one pair for each pose")
    parser.add_argument(
        "--solid", action="store_true", help="one closed mesh inside the other is contact too"
    )
    parser.add_argument(
        "--bound", choices=[str(b) for b in Bound], default="aabb", help="default: aabb"
    )
    add_query_options(parser, CONTACT_METHODS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when there is contact."""
    meshes = load(args.a, args.device), load(args.b, args.device)
    hits, stages = run_timed(
        collide,
        meshes,
        pose_a=load_poses(args.pose_a),
        pose_b=load_poses(args.pose_b),
        first=args.first,
        solid=args.solid,
        method=args.method,
        bound=args.bound,
    )
    files = {"a": (args.a, meshes[0]), "b": (args.b, meshes[1])}
    show_contacts(hits, files, stages, limit=args.pairs, as_json=args.json)
    return int(bool(hits))
