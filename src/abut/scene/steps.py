"""A step of a whole scene: how all objects get from where they are to where they will be."""

from dataclasses import dataclass

import numpy as np

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
        self.vector = turn_vectors(self.start, self.end)
        self.vector[self.bends] = 0.0
        self.angle = np.linalg.norm(self.vector, axis=1)
        self.turns = self.angle > 0.0
        last = turned(self.start, self.vector) - self.end[:, :3, :3]
        self.skew = np.where(self.turns, np.linalg.norm(last, axis=(1, 2)), 0.0)

    @property
    def piece_count(self) -> int:
        """Straight pieces needed so that no object strays far from its true path."""
        most = self.angle.max(initial=0.0)
        return max(1, int(np.ceil(most / np.sqrt(8.0 * PIECE_DEVIATION))))

    def poses(self, t: float) -> np.ndarray:
        """Where all are at a time; the poses given themselves at 0 and 1."""
        if t in (0.0, 1.0):
            return self.end if t else self.start
        poses = self.start.copy()
        poses[:, :3, 3] = (1.0 - t) * self.start[:, :3, 3] + t * self.end[:, :3, 3]
        poses[:, :3, :3] = turned(self.start, t * self.vector)
        return poses

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


def turn_vectors(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(k, 3) axis times angle of the turns from poses to others, the shorter way round."""
    turn = end[:, :3, :3] @ start[:, :3, :3].swapaxes(1, 2)
    sines = np.stack(
        [
            turn[:, 2, 1] - turn[:, 1, 2],
            turn[:, 0, 2] - turn[:, 2, 0],
            turn[:, 1, 0] - turn[:, 0, 1],
        ],
        axis=1,
    )
    size = np.linalg.norm(sines, axis=1)
    angle = np.arctan2(size, np.trace(turn, axis1=1, axis2=2) - 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        out = np.where(size[:, None] > 0, sines * (angle / size)[:, None], 0.0)
    for k in np.flatnonzero(angle >= 3.0):  # near half a turn the axis is in the symmetric part
        outer = (turn[k] + turn[k].T) / 2.0 - np.cos(angle[k]) * np.eye(3)
        column = outer[:, np.argmax(np.diag(outer))]
        axis = column / np.linalg.norm(column)
        out[k] = angle[k] * (axis if axis @ sines[k] >= 0.0 else -axis)
    same = (start[:, :3, :3] == end[:, :3, :3]).all(axis=(1, 2))
    out[same] = 0.0
    return out


def turned(poses: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(k, 3, 3) rotations of poses, turned further about axes (Rodrigues)."""
    angle = np.linalg.norm(vectors, axis=1)[:, None]
    axis = np.divide(vectors, angle, out=np.zeros_like(vectors), where=angle > 0)
    cross = np.zeros((len(poses), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
    cross -= cross.swapaxes(1, 2)
    angle = angle[:, None]
    turn = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)
    return turn @ poses[:, :3, :3]
