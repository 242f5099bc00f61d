"""ObjectTable: the objects of a scene, a row each for shape, pose, groups and ignored pairs."""

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import BOTH_ROLES, Filters, make_filters
from abut.core.arrays import extended, scalar_dtype, to_plain, wait_for_readers
from abut.core.launch import Task
from abut.errors import PoseError, SceneError
from abut.geometry.poses import checked_poses
from abut.scene.ignored_pairs import IgnoredPairs
from abut.scene.inputs import VertexCheck
from abut.scene.move_log import MoveLog
from abut.scene.scene_object import SceneObject
from abut.scene.shape_pool import NO_SHAPE, ShapePool

ALL_GROUPS = -1  # all bits
MOST_OBJECTS = 1 << 26
FILTERS = ("static", "group", "mask")  # columns
FEW_POSES = 8  # that are written one by one on CUDA
MOST_COMPARED = 1 << 12  # poses that are compared, to find those that a caller has written

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def write_pose_kernel(
    # in
    span: wp.vec3i,
    row: wp.int32,
    pose: wp.mat44d,
    # out
    poses_out: wp.array[wp.mat44d],
):
    """Write one pose."""
    poses_out[row] = pose


class ObjectTable:
    """Rows of objects; new objects take the rows of removed ones, the lowest first.

    Attributes:
        pool: The shapes of the objects.
        shapes: (n,) int32, rows of the pool; NO_SHAPE where an object was removed.
        static, group, mask: (n,) filters, as ``Scene.add`` takes them.
        names: Rows of objects that have a name.
        ignored: Pairs of rows that are never tested.
        poses: (n,) matrices on the device.
        moves: The rows that were moved.
        exposed: Whether a caller holds the poses and may move objects without a call.
        version: Grows with every change other than of poses.
    """

    def __init__(self, pool: ShapePool) -> None:
        self.pool, self.device = pool, pool.device
        self.shapes, self.static, self.group, self.mask = (np.empty(0, np.int32) for _ in range(4))
        self.names: dict[str, int] = {}
        self.ignored = IgnoredPairs()
        self.moves = MoveLog()
        self.exposed = False
        self._compared = np.empty((0, 16))
        self.version = 0
        self._name_of: dict[int, str] = {}
        self._free: list[int] = []  # a heap
        self._vertex_check = VertexCheck(self.device)
        self._deformed: tuple[int, np.ndarray | None, Any] = (-1, None, None)  # of the last call
        self._pose_buffer = wp.empty(0, dtype=wp.mat44d, device=self.device)
        self.poses = self._pose_buffer
        self._writing: tuple[wp.array, Task] | None = None  # of the poses there
        self._viewed: tuple[wp.array | None, Any] = (None, None)  # poses, and a view of them

    def __len__(self) -> int:
        """Rows, removed ones included."""
        return len(self.shapes)

    @property
    def count(self) -> int:
        """Number of objects that were not removed."""
        return len(self) - len(self._free)

    @property
    def living(self) -> np.ndarray:
        """Rows of objects that were not removed."""
        return np.flatnonzero(self.shapes != NO_SHAPE)

    def add(
        self, shapes: np.ndarray, poses: np.ndarray, static: Any, group: Any, mask: Any
    ) -> np.ndarray:
        """Add objects and return their rows; filters are one value for all, or one for each."""
        self.pool.use(shapes)
        rows = self._new_rows(len(shapes))
        self.shapes[rows] = shapes
        self.static[rows] = static
        self.group[rows] = group
        self.mask[rows] = mask
        self.write_poses(rows, poses)
        self.version += 1
        return rows

    def replace(self, shapes: np.ndarray, group: np.ndarray, mask: np.ndarray) -> None:
        """Hold these objects alone, without names; poses have to be written."""
        self.shapes, self.group, self.mask = shapes, group, mask
        self.static = np.zeros_like(shapes)
        if self.poses.shape[0] != len(shapes):
            self.poses = wp.empty(len(shapes), dtype=wp.mat44d, device=self.device)
        self.version += 1

    def state(self) -> dict[str, Any]:
        """Everything but the shapes, to pickle."""
        state = {name: getattr(self, name) for name in (*FILTERS, "names")}
        gone = np.flatnonzero(self.shapes == NO_SHAPE)
        ignored = self.ignored.pairs
        return {**state, "ignored": ignored, "poses": self.poses.numpy(), "gone": gone}

    def restore(
        self,
        shapes: np.ndarray,
        poses: np.ndarray,
        gone: np.ndarray,
        names: dict[str, int],
        ignored: np.ndarray,
        **filters: np.ndarray,
    ) -> None:
        """Fill an empty table with the state that was pickled; removed rows have any shape."""
        self.add(shapes, poses, **filters)
        self.remove(gone)
        for name, row in names.items():
            self.set_name(row, name)
        self.ignored.set(ignored[:, 0], ignored[:, 1], True)

    def remove(self, rows: np.ndarray) -> None:
        """Remove objects, their names and their ignored pairs."""
        shapes = self.shapes[rows]
        self._forget(rows)
        self.pool.release(shapes)
        self.pool.version += 1  # rows and ranges of arrays are used again

    def split(self, row: int, labels: Any) -> np.ndarray:
        """Replace an object by its pieces, one for each label of its faces.

        Pieces inherit pose, filters and ignored pairs.
        """
        whole = self.shapes[row : row + 1].copy()
        labels = to_plain(labels)
        count = int(self.pool.arrays.table["face_count"][whole[0]])
        if tuple(labels.shape) != (count,) or scalar_dtype(labels).kind not in "iu" or not count:
            raise SceneError(
                f"the object has {count} faces, so labels must be as many integers, "
                f"not {scalar_dtype(labels)} of shape {tuple(labels.shape)}."
            )
        pieces = self.pool.split(int(whole[0]), labels).astype(np.int32)
        ignored = self.ignored.partners(row)
        self._forget(np.array([row]))
        rows = self._new_rows(len(pieces))
        self.shapes[rows] = pieces
        for name in FILTERS:
            getattr(self, name)[rows] = getattr(self, name)[row]
        sources = np.full(len(rows), row)
        wp.copy(*(self._poses_at(at) for at in (rows, sources)))
        self.version += 1
        self.pool.use(pieces)
        self.pool.release(whole)
        for other in ignored:
            self.ignored.set(rows, np.array(other), True)
        return rows

    def deform(self, handles: Any, vertices: Any) -> None:
        """Move the vertices of objects, one object's after the other's."""
        shapes = self._shapes_to_deform(handles)
        self.pool.deform(shapes, self._points(shapes, vertices))
        wait_for_readers(vertices, self.device)

    def end_points(self, handle: Any, vertices: Any) -> tuple[int, np.ndarray]:
        """Row of an object and its points at the end of a step; the shape becomes its own."""
        row = self.row(handle)
        points = self._points(self._own_shapes(np.array([row])), vertices).numpy().copy()
        self.pool.flush()
        return row, points

    def _shapes_to_deform(self, handles: Any) -> np.ndarray:
        """Shapes of objects, each its own; those of the last call for an equal array of rows."""
        version, known, shapes = self._deformed
        if isinstance(handles, np.ndarray) and version == self.version:
            if known is not None and np.array_equal(handles, known):
                return shapes
        rows = self.rows(handles)
        if len(np.unique(rows)) < len(rows):
            raise SceneError("an object was named twice; deform each once.")
        shapes = self._own_shapes(rows)
        self._deformed = (self.version, rows, shapes)
        return shapes

    def _points(self, shapes: np.ndarray, vertices: Any) -> wp.array:
        """Checked points of shapes."""
        plain = to_plain(vertices)
        count = int(self.pool.arrays.table["point_count"][shapes].sum())
        if tuple(plain.shape) != (count, 3):
            raise SceneError(
                f"these objects have {count} vertices, so theirs must have shape ({count}, 3), "
                f"not {tuple(plain.shape)}."
            )
        return self._vertex_check.points(plain)

    def _own_shapes(self, rows: np.ndarray) -> np.ndarray:
        """Give every object a shape that no other object uses, and return these shapes."""
        owned = self.pool.own(self.shapes[rows])
        if (owned != self.shapes[rows]).any():
            self.shapes[rows] = owned
            self.version += 1
        return owned

    def set_name(self, row: int, name: str | None) -> None:
        """Name an object; None takes its name away, and a name of another one is refused."""
        if name is not None and self.names.get(name, row) != row:
            raise SceneError(f"there is an object {name!r} already, number {self.names[name]}.")
        if row in self._name_of:
            del self.names[self._name_of.pop(row)]
        if name is not None:
            self.names[name] = row
            self._name_of[row] = name

    def names_of(self, indices: Any) -> np.ndarray:
        """Names of living objects in an array of any shape; None where there is none."""
        indices = np.asarray(indices.numpy() if isinstance(indices, wp.array) else indices)
        names = [self._name_of.get(row) for row in self.rows(indices.reshape(-1)).tolist()]
        return np.array(names, object).reshape(indices.shape)

    def set_filters(self, rows: np.ndarray, **filters: int | None) -> None:
        """Set filters of objects, other than those that are None."""
        for name, value in filters.items():
            if value is not None:
                getattr(self, name)[rows] = value
        self.version += 1

    def rows(self, handles: Any) -> np.ndarray:
        """Rows of living objects, given by index or name, one or several."""
        if type(handles) is int and 0 <= handles < len(self) and self.shapes[handles] != NO_SHAPE:
            return np.array([handles])  # the usual case
        if isinstance(handles, str | int | np.integer | SceneObject):
            handles = [handles]
        if isinstance(handles, wp.array):
            handles = handles.numpy()
        if isinstance(handles, Sequence):
            handles = [self._index(handle) for handle in handles]
        rows = np.asarray(handles)
        if rows.size == 0:
            return np.empty(0, np.int64)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise SceneError("objects are given by their indices or names.")
        bad = (rows < 0) | (rows >= len(self))
        bad[~bad] = self.shapes[rows[~bad]] == NO_SHAPE
        if bad.any():
            raise SceneError(f"there is no object {rows[np.argmax(bad)]} in the scene.")
        return rows.astype(np.int64)

    def row(self, handle: Any) -> int:
        """Row of one living object."""
        rows = self.rows(handle)
        if len(rows) != 1:
            raise SceneError(f"one object was expected, not {len(rows)}.")
        return int(rows[0])

    def write_poses(self, rows: np.ndarray, poses: np.ndarray) -> None:
        """Write poses that are known to be rigid."""
        self.moves.add(rows)
        if self.device.is_cpu:
            view = self._pose_view()
            if len(rows) == 1:
                view[rows[0]] = poses[0]
            else:
                view[rows] = poses
            return
        if len(rows) <= FEW_POSES:
            for row, pose in zip(rows.tolist(), poses, strict=True):
                self._write_pose(row, pose)
            return
        if len(rows) == len(self) and (rows == np.arange(len(rows))).all():
            self.poses.assign(poses)
            return
        wp.copy(self._poses_at(rows), wp.array(poses, dtype=wp.mat44d, device=self.device))

    def tracks_moves(self) -> bool:
        """Whether ``moves`` names all objects that have moved.

        On the CPU, poses that a caller may have written are compared with those of the last time.
        A pose that is not rigid is left to a search, which refuses it.
        """
        if not self.exposed:
            return True
        if self.device.is_cuda or len(self) > MOST_COMPARED:
            return False
        now = self._pose_view().reshape(-1, 16)
        rows = np.arange(len(self))
        if self._compared.shape == now.shape:
            rows = np.flatnonzero((now != self._compared).any(axis=1))
        try:
            checked_poses(now[rows[self.shapes[rows] != NO_SHAPE]].reshape(-1, 4, 4), "poses")
        except PoseError:
            return False
        if len(rows):
            self.moves.add(rows)
            self._compared = now.copy()
        return True

    def _pose_view(self) -> np.ndarray:
        """The poses on the CPU as a NumPy array."""
        if self._viewed[0] is not self.poses:
            self._viewed = (self.poses, self.poses.numpy())
        return self._viewed[1]

    def _write_pose(self, row: int, pose: np.ndarray) -> None:
        """Write one pose as arguments of a launch, which is faster than a copy."""
        if self._writing is None or self._writing[0] is not self.poses:
            args = [0, wp.mat44d(), self.poses]
            self._writing = (self.poses, Task(write_pose_kernel, 1, args, self.device))
        task = self._writing[1]
        task.set_arg(0, row)
        task.set_arg(1, wp.mat44d(*pose.ravel().tolist()))
        task.run()

    def _poses_at(self, rows: np.ndarray) -> Any:
        """The poses of these rows, to read or to write."""
        return wp.indexedarray(self.poses, [wp.array(rows.astype(np.int32), device=self.device)])

    def set_ignored(self, rows: np.ndarray, others: np.ndarray, ignored: bool) -> None:
        """Never test these pairs of objects, row by row, or test them again."""
        self.ignored.set(rows, others, ignored)
        self.version += 1

    def set_ignored_matrix(self, handles: Any, matrix: Any) -> None:
        """Ignore or test each two of these objects, as a (k, k) symmetric matrix says."""
        rows, matrix = self.rows(handles), np.asarray(matrix)
        if matrix.shape != (len(rows), len(rows)) or matrix.dtype != bool:
            raise SceneError(
                f"of {len(rows)} objects the matrix must be bool of shape {(len(rows), len(rows))},"
                f" not {matrix.dtype} of shape {matrix.shape}."
            )
        if len(np.unique(rows)) < len(rows) or (matrix != matrix.T).any():
            raise SceneError("the matrix must be symmetric, and name each object once.")
        order = np.argsort(rows)
        self.ignored.set_matrix(rows[order], matrix[np.ix_(order, order)])
        self.version += 1

    def filters(self, roles: Any = BOTH_ROLES) -> Filters:
        """The filters of object pairs, as kernels receive them; ``roles`` as in Part."""
        columns = (self.static, self.group, self.mask, self.ignored.padded_keys)
        return make_filters(*columns, self.device, roles)

    def tested(self, pairs: np.ndarray, with_static: bool = True) -> np.ndarray:
        """(n,) which pairs (n, 2) of rows the filters leave; an object and itself always.

        Without ``with_static`` the filter of static objects leaves all pairs.
        """
        a, b = pairs.T
        out = (self.static[a] == 0) | (self.static[b] == 0) | (not with_static)
        out &= (self.group[a] & self.mask[b] != 0) & (self.group[b] & self.mask[a] != 0)
        keys = np.minimum(a, b).astype(np.int64) << 32 | np.maximum(a, b)
        return (out & ~np.isin(keys, self.ignored.keys)) | (a == b)

    def _forget(self, rows: np.ndarray) -> None:
        self.shapes[rows] = NO_SHAPE
        gone = rows.tolist()
        for row in gone:
            self.set_name(row, None)
            heapq.heappush(self._free, row)
        self.ignored.forget(gone)
        self.version += 1

    def _index(self, handle: Any) -> Any:
        """The index of a name or a SceneObject; anything else as it is."""
        if isinstance(handle, SceneObject):
            return handle.index
        if not isinstance(handle, str):
            return handle
        if handle not in self.names:
            raise SceneError(f"there is no object named {handle!r} in the scene.")
        return self.names[handle]

    def _new_rows(self, count: int) -> np.ndarray:
        """Allocate rows, free ones first, the lowest of them."""
        reused = [heapq.heappop(self._free) for _ in range(min(count, len(self._free)))]
        first = len(self)
        fresh = count - len(reused)
        if first + fresh > MOST_OBJECTS:
            raise SceneError(f"a scene holds at most {MOST_OBJECTS} objects.")
        self._grow(first + fresh)
        return np.concatenate([np.array(reused, np.int64), np.arange(first, first + fresh)])

    def _grow(self, count: int) -> None:
        if count <= len(self):
            return
        for name in ("shapes", *FILTERS):
            setattr(self, name, extended(getattr(self, name), count))
        if count > self._pose_buffer.shape[0]:
            capacity = max(count, 2 * self._pose_buffer.shape[0])
            buffer = wp.empty(capacity, dtype=wp.mat44d, device=self.device)
            if self.poses.shape[0]:
                wp.copy(buffer, self.poses, count=self.poses.shape[0])
            self._pose_buffer, self.exposed, self._compared = buffer, False, np.empty((0, 16))
        self.poses = self._pose_buffer[:count]
