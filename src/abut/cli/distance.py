"""``abut distance A B``: distance and witness points of two meshes."""

import argparse
from typing import Any

import numpy as np

from abut.cli.console import show_json
from abut.cli.operands import add_poses, add_query_options, length, load, load_poses
from abut.cli.report import ROWS_SHOWN, Meshes, plain_operands, run_timed, show_answer, show_first
from abut.options import Bound
from abut.query.distance import distance
from abut.results import Distances


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "distance",
        description="Find the smallest distance between two meshes, the faces and the points that "
        "are so far apart. 0 exactly when the meshes meet.",
    )
    parser.add_argument("a", metavar="A", help="mesh file")
    parser.add_argument("b", metavar="B", help="mesh file")
    add_poses(parser)
    parser.add_argument(
        "--upper-bound", type=length, default=np.inf, metavar="D", help="look no farther than this"
    )
    parser.add_argument(
        "--tolerance", type=length, default=0.0, metavar="D", help="error allowed in the distance"
    )
    parser.add_argument(
        "--bound",
        choices=[str(bound) for bound in Bound if bound is not Bound.KDOP],
        help="default: by the number of poses",
    )
    add_query_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer."""
    meshes = load(args.a, args.device), load(args.b, args.device)
    near, stages = run_timed(
        distance,
        meshes,
        then=lambda answer: answer.points,
        pose_a=load_poses(args.pose_a),
        pose_b=load_poses(args.pose_b),
        upper_bound=args.upper_bound,
        tolerance=args.tolerance,
        method=args.method,
        bound=args.bound,
    )
    files = {"a": (args.a, meshes[0]), "b": (args.b, meshes[1])}
    if args.json:
        show_json(plain_operands(files) | _plain(near, args.pairs) | {"milliseconds": stages})
    elif isinstance(near.value, float):
        show_answer(files, _found(near), stages)
    else:
        _show_batch(near, files, stages, ROWS_SHOWN if args.pairs is None else args.pairs)
    return 0


def _found(near: Distances) -> list[tuple[str, str]]:
    if np.isinf(near.value):
        return [("distance", "above the upper bound")]
    faces, points = near.faces.numpy(), near.points.numpy()
    where = [
        (f"nearest {side}", f"face {face} at {_point(point)}")
        for side, face, point in zip("ab", faces, points, strict=True)
    ]
    return [("distance", f"{near.value:.17g}"), *where]


def _show_batch(near: Distances, files: Meshes, stages: dict[str, float], limit: int) -> None:
    value, faces = near.value.numpy(), near.faces.numpy()
    found = [("poses", f"{len(value):,}, {np.sum(value == 0):,} of them in contact")]
    if len(value):
        nearest = int(np.argmin(value))
        found.append(("least distance", f"{value[nearest]:.17g} in pose {nearest}"))
    show_answer(files, found, stages)
    columns = {"pose": range(len(value)), "distance": [f"{x:.9g}" for x in value]}
    show_first(columns | {"face a": faces[:, 0], "face b": faces[:, 1]}, len(value), limit)


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


def _point(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.9g}" for x in point) + ")"
