"""``abut self A``: the pairs of faces of one mesh that meet beyond what they share."""

import argparse
from typing import Any

from abut.cli.collide import show_pairs
from abut.cli.console import show_facts, show_json
from abut.cli.operands import (
    ROWS_SHOWN,
    add_query_options,
    describe,
    facts,
    load,
    measured,
    report,
)
from abut.query.self_collide import self_collide


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "self",
        help="the pairs of faces of one mesh that cut each other",
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
    add_query_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Answer; 1 when there is contact."""
    mesh = load(args.a, args.device)
    hits, stages = measured(self_collide, (mesh,), weld=args.weld, method=args.method)
    if args.json:
        show_json(report(hits, args.pairs, stages))
    else:
        show_facts([("mesh", describe(args.a, mesh)), *facts(hits, stages)])
        show_pairs(hits, ROWS_SHOWN if args.pairs is None else args.pairs)
    return int(bool(hits))
