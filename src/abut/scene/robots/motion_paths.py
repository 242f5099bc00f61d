"""First contacts of paths of a robot: pieces straight in joint space, as far as they are free."""

from typing import TYPE_CHECKING

import numpy as np

from abut.scene.robots.joint_motions import first_of_pieces, nested_pairs
from abut.scene.robots.motion_search import FoundMotions, MotionSearch

if TYPE_CHECKING:
    from abut.scene.robots.robot import Robot

PIECES = 8  # of all paths together that are searched first; then twice as many, and so on


def path_contacts(
    robot: "Robot",
    search: MotionSearch,
    starts: np.ndarray,
    ends: np.ndarray,
    pieces: int,
    gap: float,
    tolerance: float,
) -> FoundMotions:
    """Answers of paths of so many pieces (n * pieces, k); a contact ends the search of its path."""
    paths = len(starts) // pieces
    left, answers = np.arange(paths), []
    first, width = 0, max(PIECES // max(paths, 1), 1)
    while first == 0 or (len(left) and first < pieces):
        stop = min(first + width, pieces)
        rows = (left[:, None] * pieces + np.arange(first, stop)).reshape(-1)
        run = search.run_one if len(rows) == 1 else search.run
        found = run(starts[rows], ends[rows], gap, tolerance)
        if first == 0:  # later an object cannot come to be inside another without a contact
            _mark_nested(robot, found, slice(None, None, stop), starts[rows], search.arrays.pairs)
        part = first_of_pieces(found, stop - first)
        part.time = part.time + first
        answers.append((left, part))
        left, first, width = left[part.free], stop, 2 * width
    out = answers[0][1]
    for rows, part in answers[1:]:
        for name, column in vars(part).items():
            getattr(out, name)[rows] = column
    return out


def _mark_nested(
    robot: "Robot", found: FoundMotions, rows: slice, starts: np.ndarray, pairs: np.ndarray
) -> None:
    """Let some motions begin in contact where one object is inside another at the start.

    Surfaces that never meet cannot change that.
    """
    some = np.arange(len(starts))[rows]
    late = some[found.time[some] > 0.0]
    nested = late[~robot.free_of_contact(starts[late])]
    found.free[nested], found.time[nested], found.converged[nested] = False, 0.0, True
    if len(nested):
        objects, poses = robot.scene._objects, robot.poses(starts[nested])
        inside = nested_pairs(objects, pairs[:, :2], poses)
        found.objects[nested], found.faces[nested] = inside, -1
