"""Poses: rigid motions of operands, one or a batch."""

from math import isfinite
from typing import Any

import numpy as np

from abut.arrays import to_plain
from abut.errors import PoseError

RIGID_TOLERANCE = 1e-5  # float32 matrices pass; a scale or shear does not
_LAST_ROW = np.array([0.0, 0.0, 0.0, 1.0])


def checked_poses(pose: Any, name: str) -> np.ndarray | None:
    """``pose`` as (B, 4, 4) float64, or None; refuses what is not a rigid motion."""
    if pose is None:
        return None
    pose = to_plain(pose)
    pose = np.array(pose if isinstance(pose, np.ndarray) else pose.numpy(), dtype=np.float64)
    if pose.shape[-2:] != (4, 4) or pose.ndim not in (2, 3):
        raise PoseError(f"{name} must have shape (4, 4) or (B, 4, 4), not {pose.shape}.")
    poses = pose.reshape(-1, 4, 4)
    rigid = _are_rigid(poses)
    if rigid.all():
        return poses
    first = int(np.argmin(rigid))
    if not np.isfinite(poses[first]).all():
        raise PoseError(f"{name}[{first}] is not finite.")
    raise PoseError(f"{name}[{first}] is not a rigid motion; scale and mirror the mesh instead.")


def _are_rigid(poses: np.ndarray) -> np.ndarray:
    """(B,) bool: finite, last row as it should be, columns orthonormal and right-handed."""
    if len(poses) == 1:
        return np.array([_is_rigid(*poses[0].tolist())])
    turn = poses[:, :3, :3]
    with np.errstate(all="ignore"):
        skew = np.abs(turn.transpose(0, 2, 1) @ turn - np.eye(3)).max(axis=(1, 2))
        rigid = (skew <= RIGID_TOLERANCE) & (np.linalg.det(turn) > 0)
    return rigid & np.isfinite(poses[:, :3, 3]).all(axis=1) & (poses[:, 3] == _LAST_ROW).all(axis=1)


def _is_rigid(u: list, v: list, w: list, last: list) -> bool:
    """The same for the rows of one pose, in plain numbers, which is ten times as fast."""
    (a, b, c, x), (d, e, f, y), (g, h, i, z) = u, v, w
    skew = (a * a + d * d + g * g - 1, b * b + e * e + h * h - 1, c * c + f * f + i * i - 1)
    skew += (a * b + d * e + g * h, b * c + e * f + h * i, c * a + f * d + i * g)
    right_handed = a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) > 0
    orthonormal = all(abs(s) <= RIGID_TOLERANCE for s in skew)
    return right_handed and orthonormal and isfinite(x + y + z) and last == [0, 0, 0, 1]


def batch_size(pose_a: Any, pose_b: Any) -> int | None:
    """B when one of the poses is a batch, None when neither is."""
    shapes = [to_plain(pose).shape for pose in (pose_a, pose_b) if pose is not None]
    sizes = {shape[0] for shape in shapes if len(shape) == 3}
    if len(sizes) > 1:
        raise PoseError(f"pose_a and pose_b have {' and '.join(map(str, sorted(sizes)))} poses.")
    return sizes.pop() if sizes else None
