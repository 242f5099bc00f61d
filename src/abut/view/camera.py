"""Camera: a pinhole camera."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Camera:
    """A pinhole camera with z up.

    Attributes:
        eye: Position.
        right, up, ahead: Unit vectors of its frame.
        tangent: Tangent of half the vertical angle of view.
    """

    eye: np.ndarray
    right: np.ndarray
    up: np.ndarray
    ahead: np.ndarray
    tangent: float

    @staticmethod
    def around(
        points: np.ndarray,
        *,
        azimuth: float = -60.0,
        elevation: float = 25.0,
        view_angle: float = 28.0,
        aspect: float = 1.5,
        margin: float = 1.1,
    ) -> "Camera":
        """Place a camera as near as possible, in a direction, with all points (n, 3) in view.

        Args:
            points: Points to keep in view.
            azimuth, elevation: Direction from the points to the camera [degrees].
            view_angle: Vertical angle of view [degrees].
            aspect: Width over height of the picture.
            margin: Size of the picture over the size of the points in it.
        """
        a, e = np.radians([azimuth, elevation])
        ahead = -np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        up = np.cross(right, ahead)
        frame = points @ np.stack([right, up, ahead], axis=1)
        centre = (frame.min(axis=0) + frame.max(axis=0)) / 2
        across = np.abs(frame - centre)
        tangent = float(np.tan(np.radians(view_angle) / 2))
        needed = np.maximum(across[:, 0] / aspect, across[:, 1]) * margin / tangent
        back = float((needed - (frame - centre)[:, 2]).max())
        eye = centre @ np.stack([right, up, ahead]) - back * ahead
        return Camera(eye, right, up, ahead, tangent)
