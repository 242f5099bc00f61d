"""Checks of the arguments of scenes: poses, vertices, bits of groups."""

from collections.abc import Container
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.core.cache import RecentCache
from abut.core.point_check import PointCheck, not_finite_error, vertex_rows
from abut.errors import OptionError, PoseError, SceneError
from abut.geometry.poses import checked_poses


def given_poses(pose: Any, count: int | None = None) -> np.ndarray:
    """Poses (k, 4, 4), one for each of ``count`` objects; None gives identities."""
    if pose is None:
        return np.broadcast_to(np.eye(4), (count or 1, 4, 4))
    poses = checked_poses(pose, "pose")
    assert poses is not None
    if count is not None and len(poses) != count:
        raise SceneError(f"{len(poses)} poses were given for {count} objects.")
    return poses


def is_one_pose(pose: Any) -> bool:
    """Whether a pose is one (4, 4) or None, not a batch."""
    return pose is None or len(np.shape(to_plain(pose))) == 2


def require_bits(**groups: Any) -> None:
    """Refuse groups that are not 32 bits of a whole number."""
    for name, bits in groups.items():
        if not isinstance(bits, int | np.integer) or not -(2**31) <= bits < 2**31:
            raise SceneError(f"{name} must be a whole number of 32 bits, not {bits!r}.")


def require_count(count: Any, name: str) -> int:
    """Refuse a number that is not a whole one from 1 up."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise OptionError(f"{name} must be a whole number from 1 up, not {count!r}.")
    return int(count)


def require_name(name: Any, single: bool = True, taken: Container[str] = ()) -> None:
    """Refuse a name of a batch, one that is not a string, and one that is taken."""
    if name is None:
        return
    if not single:
        raise SceneError("a name is for one object, not for a batch.")
    if not isinstance(name, str):
        raise SceneError(f"a name is a string, not {name!r}.")
    if name in taken:
        raise SceneError(f"there is an object named {name!r} already.")


class EnvironmentPoses:
    """Poses of all objects in a batch of environments, in one buffer while its size stays."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.poses = wp.empty(0, dtype=wp.mat44d, device=device)

    def take(self, poses: Any, count: int, externals: Any = None) -> tuple[wp.array, int]:
        """Copy poses (B, n, 4, 4) to the device; returns them and B. A search checks rigidity.

        Poses of external objects follow those of the n objects in every environment.
        """
        plain = to_plain(poses)
        if len(plain.shape) != 4 or tuple(plain.shape[1:]) != (count, 4, 4):
            raise PoseError(
                f"poses must have shape (B, {count}, 4, 4), one for each object, "
                f"not {tuple(plain.shape)}."
            )
        environments = plain.shape[0]
        if externals is not None:
            host = plain if isinstance(plain, np.ndarray) else plain.numpy()
            more = np.broadcast_to(externals.numpy(), (environments, len(externals), 4, 4))
            plain, count = np.concatenate([host, more], axis=1), count + len(externals)
        if self.poses.shape[0] != environments * count:
            self.poses = wp.empty(environments * count, dtype=wp.mat44d, device=self.device)
        if isinstance(plain, np.ndarray) or plain.dtype != wp.float64:
            host = plain if isinstance(plain, np.ndarray) else plain.numpy()
            self.poses.assign(np.ascontiguousarray(host, dtype=np.float64).reshape(-1, 4, 4))
        elif environments * count:
            wp.copy(self.poses, plain.contiguous().reshape((-1, 4, 4)).view(wp.mat44d))
        return self.poses, environments


class VertexCheck:
    """Converts vertices to float64 points, in buffers that the next call may use again."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._kept = RecentCache()

    def points(self, vertices: Any) -> wp.array:
        """Points of (n, 3) vertices, a plain array on the device; refuses non-finite ones."""
        rows = points = vertex_rows(vertices, self.device)
        source = rows if rows.dtype is wp.vec3f else None
        if source is not None:
            points = self._kept.get((rows.shape[0],), lambda: self._buffer(rows.shape[0]))
        where = (points.ptr or 0, points.shape[0])  # an array may come as a new view each time
        about = (*where, int(source is not None))
        check = self._kept.get(about, lambda: PointCheck(points, vertices=source))
        check.start(source)
        first_bad, _ = check.read()
        if first_bad >= 0:
            raise not_finite_error("vertices", rows, first_bad)
        return points

    def _buffer(self, count: int) -> wp.array:
        return wp.empty(count, dtype=wp.vec3d, device=self.device)
