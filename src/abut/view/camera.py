"""Camera: a pinhole camera."""

from dataclasses import dataclass

import numpy as np

from abut.errors import OptionError

TURNS = {  # world to studio, where z is up
    "z": np.eye(3),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
}


@dataclass(frozen=True)
class Camera:
    """A pinhole camera.

    Attributes:
        eye: Position.
        right, up, ahead: Unit vectors of its frame.
        tangent: Tangent of half the vertical angle of view.
        vertical: The axis of the world that points upwards, ``"z"`` or ``"y"``.
    """

    eye: np.ndarray
    right: np.ndarray
    up: np.ndarray
    ahead: np.ndarray
    tangent: float
    vertical: str = "z"

    @staticmethod
    def around(
        points: np.ndarray,
        *,
        azimuth: float = -60.0,
        elevation: float = 25.0,
        view_angle: float = 28.0,
        aspect: float = 1.5,
        margin: float = 1.1,
        vertical: str = "z",
    ) -> "Camera":
        """Place a camera as near as possible, in a direction, with all points (n, 3) in view.

        Args:
            points: Points to keep in view.
            azimuth, elevation: Direction from the points to the camera [degrees].
            view_angle: Vertical angle of view [degrees].
            aspect: Width over height of the picture.
            margin: Size of the picture over the size of the points in it.
            vertical: The axis that points upwards, ``"z"`` or ``"y"``.
        """
        a, e = np.radians([azimuth, elevation])
        turn = turn_of(vertical)
        ahead = -np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]) @ turn
        right = np.array([-np.sin(a), np.cos(a), 0.0]) @ turn
        up = np.cross(right, ahead)
        frame = points @ np.stack([right, up, ahead], axis=1)
        centre = (frame.min(axis=0) + frame.max(axis=0)) / 2
        across = np.abs(frame - centre)
        tangent = float(np.tan(np.radians(view_angle) / 2))
        needed = np.maximum(across[:, 0] / aspect, across[:, 1]) * margin / tangent
        back = float((needed - (frame - centre)[:, 2]).max()) or 1.0
        eye = centre @ np.stack([right, up, ahead]) - back * ahead
        return Camera(eye, right, up, ahead, tangent, vertical)

    def in_studio(self, origin: np.ndarray) -> "Camera":
        """The camera relative to ``origin``, turned until z is up."""
        turn = turn_of(self.vertical).T
        frame = (self.right @ turn, self.up @ turn, self.ahead @ turn)
        return Camera((self.eye - origin) @ turn, *frame, self.tangent)


def turn_of(vertical: str) -> np.ndarray:
    """The rotation (3, 3) that makes an axis of the world point along z."""
    if vertical not in TURNS:
        raise OptionError(f"vertical must be 'y' or 'z', not {vertical!r}.")
    return TURNS[vertical]
