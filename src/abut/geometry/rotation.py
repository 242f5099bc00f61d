"""Turns from poses to others, and where poses are on the way, for many at once."""

import numpy as np


def poses_between(start: np.ndarray, end: np.ndarray, vectors: np.ndarray, t: float) -> np.ndarray:
    """(k, 4, 4) where poses are that turn by ``vectors``; those given themselves at 0 and 1."""
    if t in (0.0, 1.0):
        return end if t else start
    poses = start.copy()
    poses[:, :3, 3] = (1.0 - t) * start[:, :3, 3] + t * end[:, :3, 3]
    poses[:, :3, :3] = turned(start, t * vectors)
    return poses


def rotation_vectors(start: np.ndarray, end: np.ndarray) -> np.ndarray:
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
