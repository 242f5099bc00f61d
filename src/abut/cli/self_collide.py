"""``abut self A``: self-intersections of a mesh."""

import argparse
from typing import Any

from abut.cli.operands import add_meshes, add_query_options, load_operands
from abut.cli.report import run_timed, show_contacts
from abut.options import SELF_METHODS
from abut.query.self_collide import self_collide

NO_WELD = {
    "dest": "weld",
    "action": "store_false",
    "help": "neighbours share vertices by index alone, not by position",
}


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "self",
        description="Find every pair of faces of one mesh that meet beyond the vertices and edges "
        "they share, exactly. Exit status: 0 no contact, 1 contact, 2 error.",
    )
    add_meshes(parser, "a")
    parser.add_argument("--no-weld", **NO_WELD)
    add_query_options(parser, SELF_METHODS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when there is contact."""
    operands = load_operands(args, "a")
    hits, stages = run_timed(self_collide, operands, weld=args.weld, method=args.method)
    return show_contacts(hits, operands, stages, args)
