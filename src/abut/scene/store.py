"""Store: the arrays of a scene's shapes, one shape after the other, with room for more."""

import bisect

import numpy as np
import warp as wp

from abut.bvh.batched import BatchedBvh, MeshSlice

LEAST_ROOM = 256


class Stretches:
    """Which stretches of an array are free; the first that is long enough is taken."""

    def __init__(self) -> None:
        self.end = 0
        self._free: list[tuple[int, int]] = []  # (start, stop), ascending, apart

    def take(self, count: int) -> int:
        """The start of a stretch."""
        for k, (start, stop) in enumerate(self._free):
            if stop - start >= count:
                self._free[k : k + 1] = [(start + count, stop)] if stop - start > count else []
                return start
        self.end += count
        return self.end - count

    def give(self, start: int, count: int) -> None:
        """Give a stretch back."""
        if count == 0:
            return
        k = bisect.bisect(self._free, (start, start))
        stop = start + count
        if k < len(self._free) and self._free[k][0] == stop:
            stop = self._free.pop(k)[1]
        if k > 0 and self._free[k - 1][1] == start:
            start = self._free.pop(k - 1)[0]
            k -= 1
        if stop == self.end:
            self.end = start
        else:
            self._free.insert(k, (start, stop))


class Store:
    """Bodies side by side: where each lies, and the arrays they lie in.

    Attributes:
        table: One row a body: where its faces and points lie, what its boxes are relative to.
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
        self.table = np.zeros(0, dtype=MeshSlice.numpy_dtype())
        self.generation = 0
        self._table_changed = True
        self._bodies: wp.array | None = None
        self._view: tuple[int, BatchedBvh | None] = (-1, None)
        self._face_room, self._point_room = Stretches(), Stretches()
        self._point_users: dict[int, int] = {}
        self._free: list[int] = []
        self._make_room()

    @property
    def most_faces(self) -> int:
        """Of any body."""
        return int(self.table["face_count"].max(initial=1))

    @property
    def forest(self) -> BatchedBvh:
        """The struct to pass to kernels, the same one until arrays have moved."""
        if self._view[0] == self.generation:
            return self._view[1]
        out = BatchedBvh()
        out.points, out.faces, out.nodes = self.points, self.faces, self.nodes
        out.leaf_slots, out.split_slots = self.leaf_slots, self.split_slots
        out.arrivals, out.slices = self.arrivals, self._bodies
        self._view = (self.generation, out)
        return out

    def arrays(self, body: int) -> tuple[wp.array, wp.array]:
        """Points and faces of a body."""
        row = self.table[body]
        point, face = int(row["first_point"]), int(row["first_face"])
        return (
            self.points[point : point + int(row["point_count"])],
            self.faces[face : face + int(row["face_count"])],
        )

    def new_rows(self, count: int) -> np.ndarray:
        """Free rows of the table."""
        kept = max(len(self._free) - count, 0)
        self._free, reused = self._free[:kept], self._free[kept:]
        first, more = len(self.table), count - len(reused)
        self.table = np.concatenate([self.table, np.zeros(more, self.table.dtype)])
        self._table_changed = True
        return np.concatenate([np.array(reused, np.int64), np.arange(first, first + more)])

    def place(self, body: int, face_count: int, point_count: int, origin: np.ndarray) -> None:
        """Give a body room of its own."""
        point, face = self.take_points(point_count), self.take_faces(face_count)
        self.table[body] = (face, face_count, point, point_count, origin)

    def take_faces(self, count: int) -> int:
        """Where there is room for so many faces."""
        start = self._face_room.take(max(count, 1))
        self._make_room()
        return start

    def take_points(self, count: int) -> int:
        """Where there is room for so many points, for one user."""
        first = self._point_room.take(max(count, 1))
        self._point_users[first] = 1
        self._make_room()
        return first

    def give_faces(self, body: int) -> None:
        """The faces of a body are no more."""
        row = self.table[body]
        self._face_room.give(int(row["first_face"]), max(int(row["face_count"]), 1))

    def leave_points(self, body: int) -> None:
        """A body has no use for its points any more; others may."""
        row = self.table[body]
        first = int(row["first_point"])
        self._point_users[first] -= 1
        if not self._point_users[first]:
            del self._point_users[first]
            self._point_room.give(first, max(int(row["point_count"]), 1))

    def share_points(self, body: int, count: int) -> None:
        """So many more bodies use the points of one."""
        self._point_users[int(self.table["first_point"][body])] += count

    def shares_points(self, body: int) -> bool:
        """Whether other bodies use its points too."""
        return self._point_users[int(self.table["first_point"][body])] > 1

    def move_points(self, body: int, points: wp.array) -> None:
        """Give a body points of its own."""
        self.leave_points(body)
        first = self.take_points(points.shape[0])
        row = self.table[body]
        row["first_point"], row["point_count"] = first, points.shape[0]
        copy_rows(self.points, points, first)
        self._table_changed = True

    def free_row(self, body: int) -> None:
        """A body is no more."""
        self.table["face_count"][body] = self.table["point_count"][body] = 0
        self._table_changed = True
        self._free.append(body)

    def update_table(self) -> None:
        """Let kernels see the table as it is."""
        if not self._table_changed:
            return
        if self._bodies is None or self._bodies.shape[0] < len(self.table):
            room = max(2 * len(self.table), LEAST_ROOM)
            self._bodies = wp.zeros(room, dtype=MeshSlice, device=self.device)
            self.generation += 1
        if len(self.table):
            rows = wp.array(self.table, dtype=MeshSlice, device=self.device)
            wp.copy(self._bodies, rows, count=len(self.table))
        self._table_changed = False

    def _make_room(self) -> None:
        """Let arrays grow to what was taken of them."""
        face_count, point_count = self._face_room.end, self._point_room.end
        sizes = {"points": (wp.vec3d, 1, point_count), "faces": (wp.vec3i, 1, face_count)}
        sizes |= {"nodes": (wp.vec4f, 4, face_count)}
        for name in ("leaf_slots", "split_slots", "arrivals"):
            sizes[name] = (wp.int32, 1, face_count)
        for name, (dtype, rows, count) in sizes.items():
            held = self.__dict__.get(name)
            if held is not None and held.shape[0] >= rows * count:
                continue
            grown = max(count, LEAST_ROOM, 0 if held is None else 3 * held.shape[0] // (2 * rows))
            array = wp.zeros(rows * grown, dtype=dtype, device=self.device)
            if held is not None:
                wp.copy(array, held, count=held.shape[0])
            setattr(self, name, array)
            self.generation += 1


def copy_rows(into: wp.array, rows: wp.array, start: int) -> None:
    """Write rows from ``start`` on."""
    if rows.shape[0]:
        wp.copy(into, rows, dest_offset=start, count=rows.shape[0])
