"""First contacts of paths of a robot: pieces straight in joint space, as far as they are free."""

from typing import TYPE_CHECKING

import numpy as np

from abut.scene.robots.joint_motions import first_of_pieces, nested_pairs
from abut.scene.robots.motion_search import FoundMotions, MotionSearch
from abut.scene.robots.robot_clearance import clearance_of

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
    begins = starts[::pieces]
    free = robot.valid(begins).numpy() if robot.padding else robot.free_of_contact(begins)
    left, first, width = np.flatnonzero(free), 0, PIECES
    out = None
    if len(left) < len(begins) or not len(begins):
        out = _contacts_at_starts(robot, begins, left, search.arrays.pairs[:, :2])
    while len(left) and first < pieces:
        stop = min(first + max(width // len(left), 1), pieces)
        rows = (left[:, None] * pieces + np.arange(first, stop)).reshape(-1)
        run = search.run_one if len(rows) == 1 else search.run
        part = first_of_pieces(run(starts[rows], ends[rows], gap, tolerance), stop - first)
        if out is None:
            out = part
        else:
            part.time = part.time + first
            for name, column in vars(part).items():
                getattr(out, name)[left] = column
        left, first, width = left[part.free], stop, 2 * width
    assert out is not None
    return out


def _contacts_at_starts(
    robot: "Robot", starts: np.ndarray, free: np.ndarray, pairs: np.ndarray
) -> FoundMotions:
    """Answers of motions that begin in contact, but for some that do not and are free so far.

    Faces are those of two objects without clearance; there are none where one object is inside
    another. A search for the first contact would list all faces that meet.
    """
    count, none = len(starts), np.full((len(starts), 2), -1, np.int32)
    out = FoundMotions(
        np.ones(count, bool), np.full(count, np.inf), np.ones(count, bool), none, none.copy()
    )
    met = np.setdiff1d(np.arange(count), free)
    if not count:
        return out
    out.free[met], out.time[met] = False, 0.0
    _, out.objects[met], out.faces[met] = clearance_of(robot, starts[met])
    inside = met[out.objects[met, 0] < 0]
    out.objects[inside] = nested_pairs(robot.scene._objects, pairs, robot.poses(starts[inside]))
    return out
