"""``abut self A``: self-intersections of a mesh."""

import argparse
from typing import Any

from abut.cli.operands import add_query_options, load
from abut.cli.report import run_timed, show_contacts
from abut.options import SELF_METHODS
from abut.query.self_collide import self_collide


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "self",
        description="Find every pair of faces of one mesh that meet beyond the vertices and edges "
        "they share, exactly. Exit status: 0 no contact, 1 contact, 2 error.",
    )
    parser.add_argument("a", metavar="A", help="mesh file")
    parser.add_argument(
        "--no-weld",
        dest="weld",
        action="store_false",
        help="neighbours share vertices by index alone, not by position",
    )
    add_query_options(parser, SELF_METHODS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when there is contact."""
    mesh = load(args.a, args.device)
    hits, stages = run_timed(self_collide, (mesh,), weld=args.weld, method=args.method)
    show_contacts(hits, {"a": (args.a, mesh)}, stages, limit=args.pairs, as_json=args.json)
    return int(bool(hits))
