"""Camera: where a picture is taken from."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Camera:
    """A pinhole camera with z up.

    Attributes:
        eye: Where it stands.
        right, up, ahead: Unit vectors of its frame.
        tangent: Half the picture's height over its distance.
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
        """The nearest camera in a direction that has all points (n, 3) in its picture.

        Args:
            points: What must be seen.
            azimuth, elevation: Where the camera stands, seen from the points [degrees].
            view_angle: Height of the picture [degrees].
            aspect: Width over height of the picture.
            margin: Size of the picture over that of the points in it.
        """
        turn, rise = np.radians([azimuth, elevation])
        ahead = -np.array([np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn), np.sin(rise)])
        right = np.array([-np.sin(turn), np.cos(turn), 0.0])
        up = np.cross(right, ahead)
        frame = points @ np.stack([right, up, ahead], axis=1)
        centre = (frame.min(axis=0) + frame.max(axis=0)) / 2
        across = np.abs(frame - centre)
        tangent = float(np.tan(np.radians(view_angle) / 2))
        needed = np.maximum(across[:, 0] / aspect, across[:, 1]) * margin / tangent
        back = float((needed - (frame - centre)[:, 2]).max())
        eye = centre @ np.stack([right, up, ahead]) - back * ahead
        return Camera(eye, right, up, ahead, tangent)
