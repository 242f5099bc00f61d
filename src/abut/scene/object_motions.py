"""ObjectMotions: the motions of the objects of a scene over one step."""

from dataclasses import dataclass

import numpy as np

from abut.geometry.poses import poses_between, rotated_by, rotation_vectors
from abut.motion import MIX_ROUNDING, PIECE_DEVIATION, POSE_ROUNDING, require_rigid_range


@dataclass
class ObjectMotions:
    """Motions of k objects over one step, each as in ``abut.Motion``.

    Attributes:
        start, end: (k, 4, 4) poses.
        deforms: (k,) whether vertices move in straight lines to given positions.
        reach: (k,) upper bound of the distance of vertices from the origin of the frame.
    """

    start: np.ndarray
    end: np.ndarray
    deforms: np.ndarray
    reach: np.ndarray

    def __post_init__(self) -> None:
        """Compute the rotations."""
        self.vector = rotation_vectors(self.start, self.end)
        self.vector[self.deforms] = 0.0
        self.angle = np.linalg.norm(self.vector, axis=1)
        self.rotates = self.angle > 0.0
        if self.rotates.any():
            shifts = np.abs(np.stack([self.start, self.end])[:, :, :3, 3])
            require_rigid_range(float(self.reach.max() + shifts.max()))
        last = rotated_by(self.start, self.vector) - self.end[:, :3, :3]
        self.skew = np.where(self.rotates, np.linalg.norm(last, axis=(1, 2)), 0.0)

    def subset(self, chosen: np.ndarray) -> "ObjectMotions":
        """The motions of some of the objects."""
        rows = (self.start, self.end, self.deforms, self.reach)
        return ObjectMotions(*(row[chosen] for row in rows))

    @property
    def piece_count(self) -> int:
        """Number of straight pieces that keep all deviations from true paths small."""
        most = self.angle.max(initial=0.0)
        return max(1, int(np.ceil(most / np.sqrt(8.0 * PIECE_DEVIATION))))

    def poses(self, t: float) -> np.ndarray:
        """Poses at a time; those given at 0 and 1."""
        return poses_between(self.start, self.end, self.vector, t)

    def deviation(self, count: int, far: float) -> float:
        """Largest deviation from ``count`` straight pieces, for coordinates up to ``far``."""
        if not self.rotates.any() and count == 1:
            return 0.0
        deviation = self.reach * ((self.angle / count) ** 2 / 8.0 + self.skew)
        rounding = POSE_ROUNDING * (self.reach + far)
        return float(max((deviation + rounding).max(), MIX_ROUNDING * far))

    def deviations(self) -> np.ndarray:
        """(k,) deviation of each object from one straight piece."""
        return self.reach * (self.angle**2 / 8.0 + self.skew) + POSE_ROUNDING * self.reach

    def rounding(self, far: float) -> np.ndarray:
        """(k,) rounding of positions on true paths."""
        shift = np.abs(np.stack([self.start[:, :3, 3], self.end[:, :3, 3]])).max(axis=(0, 2))
        rigid = POSE_ROUNDING * (self.reach + shift) + self.reach * self.skew
        return np.where(self.rotates, rigid, MIX_ROUNDING * far)
