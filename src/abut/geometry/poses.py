"""Poses: rigid motions of operands, one or a batch, and rotations between them."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.core.launch import launch
from abut.errors import PoseError

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

RIGID_TOLERANCE = 1e-5  # float32 matrices pass; a scale or shear does not
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
TOLERANCE = wp.constant(wp.float64(RIGID_TOLERANCE))


def plain_poses(pose: Any, name: str) -> np.ndarray | None:
    """Return a copy of ``pose`` as (B, 4, 4) float64, or None, without a check that it is rigid."""
    if pose is None:
        return None
    pose = to_plain(pose)
    pose = pose if isinstance(pose, np.ndarray) else pose.numpy()
    if pose.shape[-2:] != (4, 4) or pose.ndim not in (2, 3):
        raise PoseError(f"{name} must have shape (4, 4) or (B, 4, 4), not {pose.shape}.")
    if pose.dtype.kind not in "fiub":
        raise PoseError(f"{name} must be numbers, not {pose.dtype}.")
    return np.array(pose, dtype=np.float64).reshape(-1, 4, 4)


def checked_poses(pose: Any, name: str) -> np.ndarray | None:
    """Return a copy of ``pose`` as (B, 4, 4) float64, or None; refuse what is not rigid."""
    poses = plain_poses(pose, name)
    if poses is None or (len(poses) == 1 and _rigid(*poses.ravel().tolist())):
        return poses
    rigid = _are_rigid(poses)
    if rigid.all():
        return poses
    first = int(np.argmin(rigid))
    if not np.isfinite(poses[first]).all():
        raise PoseError(f"{name}[{first}] is not finite.")
    raise PoseError(f"{name}[{first}] is not a rigid motion; scale and mirror the mesh instead.")


def is_plain_pose(pose: Any) -> bool:
    """Return whether a pose is None or one (4, 4) NumPy array of floats, rigid or not."""
    if pose is None:
        return True
    return type(pose) is np.ndarray and pose.shape == (4, 4) and pose.dtype in FLOATS


def _are_rigid(poses: np.ndarray) -> np.ndarray:
    """Return (B,) bool: finite, last row 0 0 0 1, columns orthonormal and right-handed."""
    rows = wp.array(poses, dtype=wp.mat44d, device="cpu", copy=False)
    rigid = wp.empty(len(poses), dtype=wp.bool, device="cpu")
    launch(rigid_kernel, len(poses), [rows, rigid], rows.device)
    return rigid.numpy()


def _rigid(
    a: Any, b: Any, c: Any, x: Any,
    d: Any, e: Any, f: Any, y: Any,
    g: Any, h: Any, i: Any, z: Any,
    *last: Any,
) -> Any:  # fmt: skip
    """``is_rigid`` for the entries of one pose, row by row, as Python numbers."""
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
    """Return B if one of the poses is a batch, None if neither is."""
    shapes = [_shape(pose) for pose in (pose_a, pose_b) if pose is not None]
    sizes = {shape[0] for shape in shapes if len(shape) == 3}
    if len(sizes) > 1:
        raise PoseError(f"pose_a and pose_b have {' and '.join(map(str, sorted(sizes)))} poses.")
    return sizes.pop() if sizes else None


def _shape(pose: Any) -> tuple[int, ...]:
    """Return the shape of poses, without making an array of those that are one."""
    if isinstance(pose, np.ndarray):
        return pose.shape
    if isinstance(pose, wp.array):
        return (*pose.shape, *getattr(pose.dtype, "_shape_", ()))
    return to_plain(pose).shape


def poses_between(start: np.ndarray, end: np.ndarray, vectors: np.ndarray, t: float) -> np.ndarray:
    """Return (k, 4, 4) interpolated poses that rotate by ``vectors``; exact at t = 0 and 1."""
    if t in (0.0, 1.0):
        return end if t else start
    poses = start.copy()
    poses[:, :3, 3] = (1.0 - t) * start[:, :3, 3] + t * end[:, :3, 3]
    poses[:, :3, :3] = rotated_by(start, t * vectors)
    return poses


def rotation_vectors(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return (k, 3) rotation vectors (axis times angle) between poses, the shorter way round."""
    rotation = end[:, :3, :3] @ start[:, :3, :3].swapaxes(1, 2)
    sines = np.stack(
        [
            rotation[:, 2, 1] - rotation[:, 1, 2],
            rotation[:, 0, 2] - rotation[:, 2, 0],
            rotation[:, 1, 0] - rotation[:, 0, 1],
        ],
        axis=1,
    )
    size = np.linalg.norm(sines, axis=1)
    angle = np.arctan2(size, np.trace(rotation, axis1=1, axis2=2) - 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        out = np.where(size[:, None] > 0, sines * (angle / size)[:, None], 0.0)
    for k in np.flatnonzero(angle >= 3.0):  # near pi the axis is in the symmetric part
        outer = (rotation[k] + rotation[k].T) / 2.0 - np.cos(angle[k]) * np.eye(3)
        column = outer[:, np.argmax(np.diag(outer))]
        axis = column / np.linalg.norm(column)
        out[k] = angle[k] * (axis if axis @ sines[k] >= 0.0 else -axis)
    same = (start[:, :3, :3] == end[:, :3, :3]).all(axis=(1, 2))
    out[same] = 0.0
    return out


def rotated_by(poses: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return (k, 3, 3) rotations of poses followed by rotation vectors (Rodrigues)."""
    angle = np.linalg.norm(vectors, axis=1)[:, None]
    axis = np.divide(vectors, angle, out=np.zeros_like(vectors), where=angle > 0)
    cross = np.zeros((len(poses), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
    cross -= cross.swapaxes(1, 2)
    angle = angle[:, None]
    rotation = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)
    return rotation @ poses[:, :3, :3]


@wp.func
def move_point(pose: wp.mat44d, p: wp.vec3d):
    """Return the moved point. Each operation rounds once, in this order, on every device."""
    return wp.vec3d(
        pose[0, 0] * p[0] + pose[0, 1] * p[1] + pose[0, 2] * p[2] + pose[0, 3],
        pose[1, 0] * p[0] + pose[1, 1] * p[1] + pose[1, 2] * p[2] + pose[1, 3],
        pose[2, 0] * p[0] + pose[2, 1] * p[1] + pose[2, 2] * p[2] + pose[2, 3],
    )


@wp.func
def is_identity(pose: wp.mat44d):
    """Return whether a pose is the identity."""
    same = wp.bool(True)
    for i in range(3):
        for j in range(4):
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            if pose[i, j] != unit:
                same = False
    return same


@wp.func
def rotation_of(pose: wp.mat44d):
    """Return the rotation of a pose."""
    return wp.mat33d(
        pose[0, 0], pose[0, 1], pose[0, 2],
        pose[1, 0], pose[1, 1], pose[1, 2],
        pose[2, 0], pose[2, 1], pose[2, 2],
    )  # fmt: skip


@wp.func
def translation_of(pose: wp.mat44d):
    """Return the translation of a pose."""
    return wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])


@wp.func
def is_rigid(pose: wp.mat44d):
    """Return whether a pose is finite, orthonormal and right-handed with last row 0 0 0 1."""
    square = wp.bool(True)
    for i in range(3):
        for j in range(i, 3):
            dot = pose[0, i] * pose[0, j] + pose[1, i] * pose[1, j] + pose[2, i] * pose[2, j]
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            if not (wp.abs(dot - unit) <= TOLERANCE):
                square = False
    zero = wp.float64(0.0)
    last = pose[3, 0] == zero and pose[3, 1] == zero and pose[3, 2] == zero
    at = wp.abs(pose[0, 3]) + wp.abs(pose[1, 3]) + wp.abs(pose[2, 3])
    return (
        square
        and wp.determinant(rotation_of(pose)) > zero
        and last
        and pose[3, 3] == wp.float64(1.0)
        and (at - at == zero)
    )


@wp.kernel
def rigid_kernel(
    # in
    span: wp.vec3i,
    poses: wp.array[wp.mat44d],
    # out
    rigid_out: wp.array[wp.bool],
):
    """Check every pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        rigid_out[i] = is_rigid(poses[i])
