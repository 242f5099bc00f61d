"""The objects of a scene: a row each for its shape, its pose and whom it may meet."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.core.launch import launch
from abut.errors import PoseError, SceneError
from abut.geometry.poses import checked_poses

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NOBODY = -1
EVERY_GROUP = -1  # all bits
MOST_OBJECTS = 1 << 26


@wp.kernel
def spread_kernel(
    # in
    span: wp.vec3i,
    source: wp.int32,
    rows: wp.array[wp.int32],
    # out
    poses_out: wp.array[wp.mat44d],
):
    """Let rows have the pose of one of them, or of another."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        poses_out[rows[i]] = poses_out[source]


class Objects:
    """Rows of objects; those of removed ones are given to new ones, the lowest first.

    Attributes:
        body: (n,) int32, the shape of each; NOBODY where an object was removed.
        static, group, mask: (n,) whether it never moves, the groups it is in and those it meets.
        poses: (n,) matrices on the device.
        version: Grows with every change other than of poses.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.body = np.empty(0, np.int32)
        self.static = np.empty(0, np.int32)
        self.group = np.empty(0, np.int32)
        self.mask = np.empty(0, np.int32)
        self.names: dict[str, int] = {}
        self.name_of: dict[int, str] = {}
        self.ignored: set[tuple[int, int]] = set()
        self.version = 0
        self._free: list[int] = []
        self._store = wp.empty(0, dtype=wp.mat44d, device=device)
        self.poses = self._store

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return len(self.body)

    @property
    def living(self) -> np.ndarray:
        """Indices of the objects there are."""
        return np.flatnonzero(self.body != NOBODY)

    def add(
        self, bodies: np.ndarray, poses: np.ndarray, static: Any, group: Any, mask: Any
    ) -> np.ndarray:
        """Rows of new objects; the same for all, or a value for each."""
        rows = self._new_rows(len(bodies))
        self.body[rows] = bodies
        self.static[rows] = static
        self.group[rows] = group
        self.mask[rows] = mask
        self.write_poses(rows, poses)
        self.version += 1
        return rows

    def replace(self, row: int, bodies: np.ndarray) -> np.ndarray:
        """Rows of objects in the place of one that is no more, at its pose and in its groups."""
        self.remove(np.array([row]))
        rows = self._new_rows(len(bodies))
        self.body[rows] = bodies
        for about in (self.static, self.group, self.mask):
            about[rows] = about[row]
        if self.device.is_cpu:
            poses = self.poses.numpy()
            poses[rows] = poses[row].copy()
        else:
            where = wp.array(rows.astype(np.int32), device=self.device)
            launch(spread_kernel, len(rows), [row, where, self.poses], self.device)
        self.version += 1
        return rows

    def remove(self, rows: np.ndarray) -> None:
        """Forget objects, their names and their ignored pairs."""
        self.body[rows] = NOBODY
        gone = set(rows.tolist())
        for row in gone & self.name_of.keys():
            del self.names[self.name_of.pop(row)]
        self.ignored = {p for p in self.ignored if p[0] not in gone and p[1] not in gone}
        self._free = sorted([*self._free, *gone])
        self.version += 1

    def named(self, row: int, name: str) -> None:
        """Give an object a name, which no other may have."""
        if name in self.names:
            raise SceneError(f"there is an object {name!r} already, number {self.names[name]}.")
        self.names[name] = row
        self.name_of[row] = name

    def rows(self, handles: Any) -> np.ndarray:
        """Rows of living objects, given by index or name, one or several."""
        if isinstance(handles, str | int | np.integer):
            handles = [handles]
        if isinstance(handles, wp.array):
            handles = handles.numpy()
        if isinstance(handles, Sequence):
            handles = [self._index(h) if isinstance(h, str) else h for h in handles]
        rows = np.asarray(handles)
        if rows.size == 0:
            return np.empty(0, np.int64)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise SceneError("objects are given by their indices or names.")
        bad = (rows < 0) | (rows >= len(self))
        bad[~bad] = self.body[rows[~bad]] == NOBODY
        if bad.any():
            raise SceneError(f"there is no object {rows[np.argmax(bad)]} in the scene.")
        return rows.astype(np.int64)

    def one(self, handle: Any) -> int:
        """The row of one living object."""
        rows = self.rows(handle)
        if len(rows) != 1:
            raise SceneError(f"one object was expected, not {len(rows)}.")
        return int(rows[0])

    def write_poses(self, rows: np.ndarray, poses: np.ndarray) -> None:
        """Give objects poses that are known to be rigid."""
        if self.device.is_cpu:
            self.poses.numpy()[rows] = poses
            return
        if len(rows) == len(self) and (rows == np.arange(len(rows))).all():
            self.poses.assign(poses)
            return
        new = wp.array(poses, dtype=wp.mat44d, device=self.device)
        into = wp.indexedarray(self.poses, [wp.array(rows.astype(np.int32), device=self.device)])
        wp.copy(into, new)

    def ignore(self, rows: np.ndarray, others: np.ndarray) -> None:
        """Never test these pairs of objects, row by row."""
        pairs = np.sort(np.stack(np.broadcast_arrays(rows, others), axis=1), axis=1)
        self.ignored |= set(map(tuple, pairs.tolist()))
        self.version += 1

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise SceneError(f"there is no object named {name!r} in the scene.")
        return self.names[name]

    def _new_rows(self, count: int) -> np.ndarray:
        """Rows of no object: those of removed ones, then more."""
        reused, self._free = self._free[:count], self._free[count:]
        first = len(self)
        fresh = count - len(reused)
        if first + fresh > MOST_OBJECTS:
            raise SceneError(f"a scene holds at most {MOST_OBJECTS} objects.")
        self._grow(first + fresh)
        return np.concatenate([np.array(reused, np.int64), np.arange(first, first + fresh)])

    def _grow(self, count: int) -> None:
        more = count - len(self)
        if more <= 0:
            return
        for name in ("body", "static", "group", "mask"):
            held = getattr(self, name)
            setattr(self, name, np.concatenate([held, np.zeros(more, held.dtype)]))
        if count > self._store.shape[0]:
            store = wp.empty(
                max(count, 2 * self._store.shape[0]), dtype=wp.mat44d, device=self.device
            )
            if self.poses.shape[0]:
                wp.copy(store, self.poses, count=self.poses.shape[0])
            self._store = store
        self.poses = self._store[:count]


def given_poses(pose: Any, count: int | None, name: str = "pose") -> np.ndarray:
    """Poses (k, 4, 4), one for each of ``count`` objects; None gives identities."""
    if pose is None:
        return np.broadcast_to(np.eye(4), (count or 1, 4, 4))
    poses = checked_poses(pose, name)
    assert poses is not None
    if count is not None and len(poses) != count:
        raise SceneError(f"{len(poses)} poses were given for {count} objects.")
    return poses


class Batch:
    """Poses of all objects of several copies of a scene, in one array as long as it fits."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.poses = wp.empty(0, dtype=wp.mat44d, device=device)

    def take(self, poses: Any, count: int) -> tuple[wp.array, int]:
        """Poses (B, n, 4, 4) on the device, and B. Whether they are rigid is seen later."""
        plain = to_plain(poses)
        if len(plain.shape) != 4 or tuple(plain.shape[1:]) != (count, 4, 4):
            raise PoseError(
                f"poses must have shape (B, {count}, 4, 4), one for each object, "
                f"not {tuple(plain.shape)}."
            )
        copies = plain.shape[0]
        if self.poses.shape[0] != copies * count:
            self.poses = wp.empty(copies * count, dtype=wp.mat44d, device=self.device)
        if isinstance(plain, np.ndarray) or plain.dtype != wp.float64:
            host = plain if isinstance(plain, np.ndarray) else plain.numpy()
            rows = np.ascontiguousarray(host, dtype=np.float64).reshape(-1, 4, 4)
            self.poses.assign(rows)
        elif copies * count:
            wp.copy(self.poses, plain.contiguous().reshape((-1, 4, 4)).view(wp.mat44d))
        return self.poses, copies


def require_bits(**groups: Any) -> None:
    """Refuse groups that are not 32 bits of a whole number."""
    for name, bits in groups.items():
        if not isinstance(bits, int | np.integer) or not -(2**31) <= bits < 2**31:
            raise SceneError(f"{name} must be a whole number of 32 bits, not {bits!r}.")
