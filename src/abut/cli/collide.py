"""``abut collide A B``: intersecting face pairs of two meshes."""

import argparse
from typing import Any

from abut.cli.contacts import load_segments, show_contacts
from abut.cli.operands import (
    add_choice,
    add_meshes,
    add_poses,
    add_query_options,
    load_operands,
    load_poses,
)
from abut.cli.pictures import add_picture, check_picture
from abut.cli.report import run_timed
from abut.options import CONTACT_METHODS, Bound
from abut.query.collide import collide


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "collide",
        description="Find every pair of faces of two meshes that share a point, exactly. "
        "Exit status: 0 no contact, 1 contact, 2 error.",
    )
    add_meshes(parser)
    add_poses(parser)
    parser.add_argument("--first", action="store_true", help="stop at one pair for each pose")
    about = "one closed mesh inside the other is contact too"
    parser.add_argument("--solid", action="store_true", help=about)
    add_choice(parser, "--bound", Bound, "aabb")
    add_picture(parser, "the meshes and, in red, where they meet")
    add_query_options(parser, CONTACT_METHODS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when there is contact."""
    check_picture(args)
    operands, poses = load_operands(args), load_poses(args)
    options = {name: getattr(args, name) for name in ("first", "solid", "method", "bound")}
    hits, stages = run_timed(collide, operands, then=load_segments, **poses, **options)
    return show_contacts(hits, operands, stages, args, **poses)
