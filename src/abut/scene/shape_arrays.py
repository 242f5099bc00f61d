"""ShapeArrays: the arrays of a scene's shapes, one shape after the other, with room for more.

A shape is a row of the table: a ``MeshSlice`` that says where its faces, points and nodes lie.
"""

import numpy as np
import warp as wp

from abut.bvh.batched import BatchedBvh, MeshSlice, slice_of_item
from abut.core.arrays import extended
from abut.core.free_ranges import FreeRanges
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LEAST_CAPACITY = 256
PER_FACE = {"faces": (wp.vec3i, 1), "nodes": (wp.vec4f, 4)}  # dtype, entries for each face
PER_FACE |= dict.fromkeys(("leaf_slots", "split_slots", "arrivals"), (wp.int32, 1))


class ShapeArrays:
    """Points, faces and tree nodes of all shapes, and the table that says where each shape lies.

    Several shapes may use the same range of points.

    Attributes:
        table: One MeshSlice a shape.
        rss: Swept spheres of nodes, which searches on the CPU fit (see rss_on_demand); or empty.
        generation: Grows when kernels must be given new arrays.
    """

    points: wp.array
    faces: wp.array
    nodes: wp.array
    leaf_slots: wp.array
    split_slots: wp.array
    arrivals: wp.array

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.table = np.zeros(0, dtype=np.dtype(MeshSlice.numpy_dtype()))
        self.generation = 0
        self._outdated = (0, 0)  # rows of the table that have changed: first, stop
        self._slices: wp.array | None = None  # the table, on the device
        self._view: tuple[int, BatchedBvh | None] = (-1, None)
        self._face_ranges, self._point_ranges = FreeRanges(), FreeRanges()
        self._point_users: dict[int, int] = {}  # shapes that use the points from an index on
        self._free_rows: list[int] = []
        self.rss = wp.empty(0, dtype=wp.vec4f, device=device)
        self._grow()

    @property
    def most_faces(self) -> int:
        """Face count of the largest shape, at least 1."""
        return int(self.table["face_count"].max(initial=1))

    @property
    def bvhs(self) -> BatchedBvh:
        """The struct to pass to kernels, the same one until arrays have moved."""
        if self._view[0] == self.generation:
            return self._view[1]
        out = BatchedBvh()
        out.points, out.faces, out.nodes = self.points, self.faces, self.nodes
        out.leaf_slots, out.split_slots = self.leaf_slots, self.split_slots
        out.arrivals, out.rss, out.slices = self.arrivals, self.rss, self._slices
        self._view = (self.generation, out)
        return out

    def points_and_faces(self, shape: int) -> tuple[wp.array, wp.array]:
        """Points and faces of a shape, as slices of the arrays."""
        face, face_count, point, point_count, _ = self.table[shape].tolist()
        return self.points[point : point + point_count], self.faces[face : face + face_count]

    def new_rows(self, count: int) -> np.ndarray:
        """Allocate rows of the table, free ones first."""
        reused = [self._free_rows.pop() for _ in range(min(count, len(self._free_rows)))]
        first, more = len(self.table), count - len(reused)
        self.table = extended(self.table, first + more)
        rows = np.concatenate([np.array(reused, np.int64), np.arange(first, first + more)])
        self._outdate(rows)
        return rows

    def free_row(self, shape: int) -> None:
        """Free a row whose faces and points are free already."""
        self.table["face_count"][shape] = self.table["point_count"][shape] = 0
        self._outdate(np.array([shape]))
        self._free_rows.append(shape)

    def allocate(
        self, shape: int, face_count: int, point_count: int, origin: np.ndarray
    ) -> tuple[int, int]:
        """Allocate points and faces of a shape; returns (first point, first face)."""
        point, face = self._take_points(point_count), self.take_faces(face_count)
        self.table[shape] = (face, face_count, point, point_count, origin)
        return point, face

    def copy(self, source: int, target: int) -> None:
        """Allocate ``target`` and copy the points, faces and tree of ``source``."""
        old_face, face_count, old_point, point_count, origin = self.table[source].tolist()
        point, face = self.allocate(target, face_count, point_count, origin)
        if point_count:
            wp.copy(self.points, self.points, point, old_point, point_count)
        for name, (_, each) in PER_FACE.items():
            array = getattr(self, name)
            if face_count:
                wp.copy(array, array, each * face, each * old_face, each * face_count)

    def divide(self, shape: int, start: int, counts: np.ndarray, pieces: np.ndarray) -> None:
        """Let pieces use the points of a shape, and ``counts`` faces each from ``start`` on."""
        self.table[pieces] = self.table[shape]
        self.table["first_face"][pieces] = start + np.cumsum(counts) - counts
        self.table["face_count"][pieces] = counts
        self._point_users[int(self.table["first_point"][shape])] += len(counts)
        self._outdate(pieces)

    def take_faces(self, count: int) -> int:
        """Allocate ``count`` faces and return the first."""
        start = self._face_ranges.take(max(count, 1))
        self._grow()
        return start

    def give_faces(self, shape: int) -> None:
        """Free the faces of a shape."""
        row = self.table[shape]
        self._face_ranges.give(int(row["first_face"]), max(int(row["face_count"]), 1))

    def give_points(self, shape: int) -> None:
        """Free the points of a shape, once no other shape uses them."""
        row = self.table[shape]
        first = int(row["first_point"])
        self._point_users[first] -= 1
        if not self._point_users[first]:
            del self._point_users[first]
            self._point_ranges.give(first, max(int(row["point_count"]), 1))

    def shares_points(self, shape: int) -> bool:
        """Whether other shapes use the points of a shape too."""
        return self._point_users[int(self.table["first_point"][shape])] > 1

    def replace_points(self, shape: int, points: wp.array) -> None:
        """Copy ``points`` to a range that this shape alone uses."""
        self.give_points(shape)
        first = self._take_points(points.shape[0])
        row = self.table[shape]
        row["first_point"], row["point_count"] = first, points.shape[0]
        copy_rows(self.points, points, first)
        self._outdate(np.array([shape]))

    def write_points(self, shapes: np.ndarray, points: wp.array) -> None:
        """Overwrite the points of shapes; ``points`` holds one shape's after the other's."""
        firsts, counts = (self.table[name][shapes] for name in ("first_point", "point_count"))
        if (firsts[:-1] + counts[:-1] == firsts[1:]).all():  # adjacent
            wp.copy(self.points, points, dest_offset=int(firsts[0]), count=points.shape[0])
            return
        starts = np.concatenate([[0], np.cumsum(counts)])
        indices = [wp.array(x.astype(np.int32), device=self.device) for x in (starts, firsts)]
        launch(scatter_points_kernel, points.shape[0], [points, *indices, self.points], self.device)

    def clear_rss(self, shapes: np.ndarray) -> None:
        """Make room for the swept spheres of all nodes, and take those of some shapes away."""
        if self.rss.shape[0] < 2 * self.nodes.shape[0]:
            rows = np.zeros((2 * self.nodes.shape[0], 4), np.float32)  # touched when it is used
            self.rss = wp.array(rows, dtype=wp.vec4f, device="cpu", copy=False)
            self.generation += 1
            return
        rows = self.rss.numpy()
        for first, count in self.table[["first_face", "face_count"]][shapes].tolist():
            rows[8 * first : 8 * (first + count)] = 0.0

    def upload_table(self) -> None:
        """Copy the rows of the table that have changed to the device."""
        if self._slices is None or self._slices.shape[0] < len(self.table):
            capacity = max(2 * len(self.table), LEAST_CAPACITY)
            self._slices = wp.zeros(capacity, dtype=MeshSlice, device=self.device)
            self.generation += 1
            self._outdated = (0, len(self.table))
        first, stop = self._outdated
        if first < stop:
            rows = wp.array(self.table[first:stop], dtype=MeshSlice, device=self.device)
            copy_rows(self._slices, rows, first)
        self._outdated = (len(self.table), 0)

    def _outdate(self, rows: np.ndarray) -> None:
        """Upload these rows of the table, and all between, before the next query."""
        if len(rows):
            first, stop = self._outdated
            self._outdated = (min(first, int(rows.min())), max(stop, int(rows.max()) + 1))

    def _take_points(self, count: int) -> int:
        """Allocate ``count`` points for one shape and return the first."""
        first = self._point_ranges.take(max(count, 1))
        self._point_users[first] = 1
        self._grow()
        return first

    def _grow(self) -> None:
        """Make every array at least as long as its allocated ranges."""
        sizes = {"points": (wp.vec3d, 1, self._point_ranges.end)}
        sizes |= {name: (*kind, self._face_ranges.end) for name, kind in PER_FACE.items()}
        for name, (dtype, each, count) in sizes.items():
            held = self.__dict__.get(name)
            if held is not None and held.shape[0] >= each * count:
                continue
            before = 0 if held is None else held.shape[0] // each
            grown = max(count, LEAST_CAPACITY, 3 * before // 2)
            array = wp.zeros(each * grown, dtype=dtype, device=self.device)
            if held is not None:
                wp.copy(array, held, count=held.shape[0])
            setattr(self, name, array)
            self.generation += 1


@wp.kernel
def scatter_points_kernel(
    # in
    span: wp.vec3i,
    rows: wp.array[wp.vec3d],
    starts: wp.array[wp.int32],
    firsts: wp.array[wp.int32],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Write the rows from ``starts[k]`` on to ``firsts[k]`` on."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        part = slice_of_item(starts, i)
        points_out[firsts[part] + i - starts[part]] = rows[i]


def copy_rows(into: wp.array, rows: wp.array, start: int) -> None:
    """Copy rows to ``start`` on."""
    if rows.shape[0]:
        wp.copy(into, rows, dest_offset=start, count=rows.shape[0])
