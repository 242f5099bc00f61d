"""Poses: rigid motions of operands, one or a batch."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.errors import PoseError

RIGID_TOLERANCE = 1e-5  # float32 matrices pass; a scale or shear does not


def checked_poses(pose: Any, name: str) -> np.ndarray | None:
    """``pose`` as (B, 4, 4) float64, or None; refuses what is not a rigid motion."""
    if pose is None:
        return None
    pose = to_plain(pose)
    pose = pose if isinstance(pose, np.ndarray) else pose.numpy()
    if pose.shape[-2:] != (4, 4) or pose.ndim not in (2, 3):
        raise PoseError(f"{name} must have shape (4, 4) or (B, 4, 4), not {pose.shape}.")
    if pose.dtype.kind not in "fiub":
        raise PoseError(f"{name} must be numbers, not {pose.dtype}.")
    poses = np.array(pose, dtype=np.float64).reshape(-1, 4, 4)
    if len(poses) == 1 and _rigid(*poses.ravel().tolist()):
        return poses
    rigid = _are_rigid(poses)
    if rigid.all():
        return poses
    first = int(np.argmin(rigid))
    if not np.isfinite(poses[first]).all():
        raise PoseError(f"{name}[{first}] is not finite.")
    raise PoseError(f"{name}[{first}] is not a rigid motion; scale and mirror the mesh instead.")


def _are_rigid(poses: np.ndarray) -> np.ndarray:
    """(B,) bool: finite, last row as it should be, columns orthonormal and right-handed."""
    with np.errstate(all="ignore"):
        return _rigid(*poses.reshape(-1, 16).T.copy())


def _rigid(
    a: Any, b: Any, c: Any, x: Any,
    d: Any, e: Any, f: Any, y: Any,
    g: Any, h: Any, i: Any, z: Any,
    *last: Any,
) -> Any:  # fmt: skip
    """The same for the entries of a pose, row by row: plain numbers, or arrays of poses."""
    t = RIGID_TOLERANCE
    unit = abs(a * a + d * d + g * g - 1) <= t
    unit &= (abs(b * b + e * e + h * h - 1) <= t) & (abs(c * c + f * f + i * i - 1) <= t)
    square = (abs(a * b + d * e + g * h) <= t) & (abs(b * c + e * f + h * i) <= t)
    square &= abs(c * a + f * d + i * g) <= t
    right_handed = a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) > 0
    finite = (x - x == 0) & (y - y == 0) & (z - z == 0)
    p, q, r, one = last
    return unit & square & right_handed & finite & (p == 0) & (q == 0) & (r == 0) & (one == 1)


def batch_size(pose_a: Any, pose_b: Any) -> int | None:
    """B when one of the poses is a batch, None when neither is."""
    shapes = [to_plain(pose).shape for pose in (pose_a, pose_b) if pose is not None]
    sizes = {shape[0] for shape in shapes if len(shape) == 3}
    if len(sizes) > 1:
        raise PoseError(f"pose_a and pose_b have {' and '.join(map(str, sorted(sizes)))} poses.")
    return sizes.pop() if sizes else None


@wp.func
def move_point(pose: wp.mat44d, p: wp.vec3d):
    """A moved point. Each operation rounds once, in this order, on every device."""
    return wp.vec3d(
        pose[0, 0] * p[0] + pose[0, 1] * p[1] + pose[0, 2] * p[2] + pose[0, 3],
        pose[1, 0] * p[0] + pose[1, 1] * p[1] + pose[1, 2] * p[2] + pose[1, 3],
        pose[2, 0] * p[0] + pose[2, 1] * p[1] + pose[2, 2] * p[2] + pose[2, 3],
    )


@wp.func
def is_identity(pose: wp.mat44d):
    """Whether a pose leaves everything where it is."""
    same = wp.bool(True)
    for i in range(3):
        for j in range(4):
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            if pose[i, j] != unit:
                same = False
    return same
