"""A step of a whole scene: how all objects get from where they are to where they will be."""

from dataclasses import dataclass

import numpy as np

from abut.geometry.poses import poses_between, rotated_by, rotation_vectors
from abut.motion import MIX_ROUNDING, PIECE_DEVIATION, POSE_ROUNDING


@dataclass
class Step:
    """Motions of k objects over one step, as in ``abut.Motion``.

    Attributes:
        start, end: (k, 4, 4) poses.
        bends: (k,) whether vertices go straight to places of their own, not with the pose.
        reach: (k,) the distance of the farthest vertex from the frame's origin, at most.
    """

    start: np.ndarray
    end: np.ndarray
    bends: np.ndarray
    reach: np.ndarray

    def __post_init__(self) -> None:
        """Find the turns."""
        self.vector = rotation_vectors(self.start, self.end)
        self.vector[self.bends] = 0.0
        self.angle = np.linalg.norm(self.vector, axis=1)
        self.turns = self.angle > 0.0
        last = rotated_by(self.start, self.vector) - self.end[:, :3, :3]
        self.skew = np.where(self.turns, np.linalg.norm(last, axis=(1, 2)), 0.0)

    @property
    def piece_count(self) -> int:
        """Straight pieces needed so that no object strays far from its true path."""
        most = self.angle.max(initial=0.0)
        return max(1, int(np.ceil(most / np.sqrt(8.0 * PIECE_DEVIATION))))

    def poses(self, t: float) -> np.ndarray:
        """Where all are at a time; the poses given themselves at 0 and 1."""
        return poses_between(self.start, self.end, self.vector, t)

    def deviation(self, count: int, far: float) -> float:
        """How far any object strays from ``count`` straight pieces, within coordinates ``far``."""
        if not self.turns.any() and count == 1:
            return 0.0
        stray = self.reach * ((self.angle / count) ** 2 / 8.0 + self.skew)
        rounding = POSE_ROUNDING * (self.reach + far)
        return float(max((stray + rounding).max(), MIX_ROUNDING * far))

    def stray(self) -> np.ndarray:
        """(k,) how far each strays from one straight piece."""
        return self.reach * (self.angle**2 / 8.0 + self.skew) + POSE_ROUNDING * self.reach

    def rounding(self, far: float) -> np.ndarray:
        """(k,) of positions on true paths."""
        shift = np.abs(np.stack([self.start[:, :3, 3], self.end[:, :3, 3]])).max(axis=(0, 2))
        rigid = POSE_ROUNDING * (self.reach + shift) + self.reach * self.skew
        return np.where(self.turns, rigid, MIX_ROUNDING * far)
