"""``abut distance A B``: distance and witness points of two meshes."""

import argparse
from typing import Any

import numpy as np

from abut.cli.operands import (
    add_choice,
    add_length,
    add_meshes,
    add_poses,
    add_query_options,
    load_operands,
    load_poses,
)
from abut.cli.pictures import add_picture, check_picture, draw_picture
from abut.cli.report import run_timed, show_answer, show_first, show_json_answer
from abut.cli.where import Facts, point_text
from abut.options import DISTANCE_BOUNDS
from abut.query.distance import distance
from abut.results import Distances


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "distance",
        description="Find the smallest distance between two meshes, the faces and the points that "
        "are so far apart. 0 exactly when the meshes meet.",
    )
    add_meshes(parser)
    add_poses(parser)
    add_length(parser, "--upper-bound", "look no farther than this", np.inf)
    add_length(parser, "--tolerance", "error allowed in the distance", 0.0)
    add_choice(parser, "--bound", DISTANCE_BOUNDS, None)
    add_picture(parser, "the meshes and, in red, the shortest segment between them")
    add_query_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer."""
    check_picture(args)
    operands, poses = load_operands(args), load_poses(args)
    names = ("upper_bound", "tolerance", "method", "bound")
    options = {name: getattr(args, name) for name in names} | poses
    near, stages = run_timed(distance, operands, then=lambda answer: answer.points, **options)
    draw_picture(args, args.a, stages, lambda made: made.of_distance(near, operands, poses))
    if args.json:
        show_json_answer(operands, _plain(near, args.pairs), stages, args.picture)
    elif isinstance(near.distance, float):
        show_answer(operands, _found(near), stages, args.picture)
    else:
        value, faces = near.distance.numpy(), near.faces.numpy()
        show_answer(operands, _found_in_batch(value), stages, args.picture)
        columns = {"pose": range(len(value)), "distance": [f"{x:.9g}" for x in value]}
        columns |= {"face a": faces[:, 0], "face b": faces[:, 1]}
        show_first(columns, len(value), args.pairs)
    return 0


def _found(near: Distances) -> Facts:
    if np.isinf(near.distance):
        return [("distance", "above the upper bound")]
    faces, points = near.faces.numpy(), near.points.numpy()
    where = [
        (f"nearest {side}", f"face {face} at {point_text(point)}")
        for side, face, point in zip("ab", faces, points, strict=True)
    ]
    return [("distance", f"{near.distance:.17g}"), *where]


def _found_in_batch(value: np.ndarray) -> Facts:
    found = [("poses", f"{len(value):,}, {np.sum(value == 0):,} of them in contact")]
    if len(value):
        nearest = int(np.argmin(value))
        found.append(("least distance", f"{value[nearest]:.17g} in pose {nearest}"))
    return found


def _plain(near: Distances, limit: int | None) -> dict[str, Any]:
    """Rows for JSON, where infinity and NaN become null."""
    rows = near.numpy()
    if rows["value"].ndim:
        rows = {name: array[:limit] for name, array in rows.items()}
    return {"distance": _finite(rows.pop("value"))} | {k: _finite(v) for k, v in rows.items()}


def _finite(values: np.ndarray) -> Any:
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values.tolist()
    finite = values.astype(object)
    finite[~np.isfinite(values)] = None
    return finite.tolist()
