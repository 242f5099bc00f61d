"""RobotClearance: how far a robot is from contact in configurations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from abut.core.pickling import PicklableResult

if TYPE_CHECKING:
    from abut.scene.robots.robot import Robot

CLEARANCE_CHUNK = 4096  # configurations that are posed at a time
PADDED_CHUNK = 64  # whose distances are searched up to one bound, where objects are padded


@dataclass(frozen=True, eq=False, repr=False)
class RobotClearance(PicklableResult):
    """Least distances of a robot: in one configuration, or in a batch of them (B, …).

    Attributes:
        distance: A float, or (B,) float64: 0 exactly where the robot is in contact, also where one
            object is inside another; infinite where no two objects are tested. Paddings of both
            objects are taken off.
        objects: (2,) or (B, 2) int32, the two objects that are nearest; -1 where none are tested,
            or where one is inside another.
        faces: (2,) or (B, 2) int32, their nearest faces, or two that meet; -1 as for objects.
    """

    distance: Any
    objects: Any
    faces: Any

    def numpy(self) -> dict[str, np.ndarray]:
        """The fields as NumPy arrays."""
        columns = vars(self).items()
        return {k: v.numpy() if isinstance(v, wp.array) else np.asarray(v) for k, v in columns}


def clearance_of(robot: "Robot", rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """((n,) distances, (n, 2) objects, (n, 2) faces) of (n, k) joint values."""
    count = len(rows)
    distance, objects = np.full(count, np.inf), np.full((count, 2), -1, np.int32)
    faces, own = np.full((count, 2), -1, np.int32), robot.objects
    if not len(own):
        return distance, objects, faces
    for first in range(0, count, CLEARANCE_CHUNK):
        part = slice(first, first + CLEARANCE_CHUNK)
        near = robot.scene.least_distance(which=own, poses=robot.poses(rows[part]))
        distance[part] = near.distance.numpy()
        objects[part], faces[part] = near.objects.numpy(), near.faces.numpy()
    apart = np.flatnonzero(distance > 0)
    inside = apart[~robot.free_of_contact(rows[apart])]
    distance[inside], objects[inside], faces[inside] = 0.0, -1, -1
    if robot.padding and len(apart):
        _take_off_paddings(robot, rows, (distance, objects, faces))
    return distance, objects, faces


def _take_off_paddings(robot: "Robot", rows: np.ndarray, found: tuple[np.ndarray, ...]) -> None:
    """Lower clearances by the paddings of both objects; another pair may be the nearest then."""
    pads = np.zeros(len(robot.scene._objects))
    pads[list(robot.padding)] = list(robot.padding.values())
    most = float(np.sort(pads)[-2:].sum())
    distance, objects, faces = found
    apart = np.flatnonzero((distance > 0) & np.isfinite(distance))
    apart = apart[np.argsort(distance[apart])]  # alike ones together, so that bounds are near
    for first in range(0, len(apart), PADDED_CHUNK):
        part = apart[first : first + PADDED_CHUNK]
        bound = float(distance[part[-1]]) + most
        options = {"which": robot.objects, "upper_bound": bound}
        near = robot.scene.distance(**options, poses=robot.poses(rows[part])).numpy()
        left = np.maximum(near["distance"] - pads[near["objects"]].sum(axis=1), 0.0)
        order = np.lexsort((left, near["pose"]))
        best = order[np.diff(near["pose"][order], prepend=-1) > 0]
        at = part[near["pose"][best]]
        distance[at] = left[best]
        objects[at], faces[at] = near["objects"][best], near["faces"][best]
    met = np.flatnonzero((distance > 0) & ~robot.valid(rows).numpy())  # by rounding
    distance[met] = 0.0
