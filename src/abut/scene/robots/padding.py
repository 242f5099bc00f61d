"""Padding: a distance around objects below which a robot counts as in contact."""

from typing import TYPE_CHECKING, Any

import numpy as np

from abut.errors import SceneError

if TYPE_CHECKING:
    from abut.scene.robots.robot import Robot


def set_padding(robot: "Robot", distances: Any) -> None:
    """Pad objects, as ``Robot.pad`` does."""
    if isinstance(distances, int | float | np.number):
        distances = dict.fromkeys(robot.links, distances)
    found: dict[int, float] = {}
    for name, distance in distances.items():
        plain = isinstance(distance, int | float | np.number) and not isinstance(distance, bool)
        if not plain or not 0 <= distance < np.inf:
            raise SceneError(f"the padding of {name} must be a distance, not {distance!r}.")
        whole = isinstance(name, str) and name in robot.links
        rows = robot.objects_of(name) if whole else robot.scene._objects.rows(name).tolist()
        found |= dict.fromkeys(rows, float(distance))
    held = robot._state.padding
    held |= found
    for row in [row for row, distance in held.items() if distance == 0]:
        del held[row]
