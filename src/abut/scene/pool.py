"""Pool: the shapes of a scene side by side in one forest."""

import bisect
from typing import Any

import numpy as np
import warp as wp

from abut.arrays import scalar_dtype, to_rows
from abut.errors import MeshError
from abut.extent import Extent, widen_kernel
from abut.hierarchy.forest import Body, Forest, Parts, grids_of, plant, regrowth
from abut.hierarchy.lbvh import frame_origin
from abut.hierarchy.morton import cells_per_length
from abut.mesh import Mesh
from abut.runtime import Kept, launch, stage
from abut.scene.rearrange import gather_faces, scatter_points, sorted_labels

REBUILD_EVERY = 32  # refits
LEAST_ROOM = 256


class Ranges:
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


class Pool:
    """Bodies: shapes that objects have, each once however many objects share it.

    Attributes:
        table: One row a body: where its faces and points lie, what its boxes are relative to.
        users: How many objects have each body; 0: the row is free.
        grown: How often the tree of each body has become another.
        generation: Grows when kernels must be given new arrays.
        shape_version: Grows when points change.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.table = np.zeros(0, dtype=Body.numpy_dtype())
        self.users = np.zeros(0, np.int64)
        self.grown = np.zeros(0, np.int64)
        self.meshes: list[Mesh | None] = []  # as given or as made, while it has the body's shape
        self.generation = 0
        self.shape_version = 0
        self._body_of: dict[int, int] = {}
        self._followed: dict[int, tuple[Mesh, int]] = {}  # meshes given, and their versions
        self._faces, self._points = Ranges(), Ranges()
        self._point_users: dict[int, int] = {}
        self._pieces: set[int] = set()  # share the points of what they were broken from
        self._broken: set[int] = set()  # their faces are those of their pieces now
        self._free: list[int] = []
        self._unbuilt: dict[int, list[float]] = {}  # bodies without a tree, and their grids
        self._worn: dict[int, None] = {}
        self._refits = 0
        self._regrowing = Kept()
        self.known = Kept()  # buffers of points that come in
        self._table_changed = True
        self._bodies: wp.array | None = None
        self._view: tuple[int, Any] = (-1, None)
        self._make_room(LEAST_ROOM, LEAST_ROOM)

    @property
    def most_faces(self) -> int:
        """Of any body."""
        return int(self.table["face_count"].max(initial=1))

    def add(self, mesh: Mesh) -> int:
        """The body of a mesh; one that is there already is used again."""
        known = self._body_of.get(id(mesh))
        if known is not None and self._followed[known][1] == mesh.version:
            return known
        if known is not None:
            self.follow()
            return known
        body = self._new_body(mesh.face_count, mesh.vertex_count, frame_origin(mesh.bounds))
        row = self.table[body]
        _copy(self.points, mesh.points, int(row["first_point"]))
        _copy(self.faces, mesh.faces, int(row["first_face"]))
        self.meshes[body] = mesh
        self._body_of[id(mesh)] = body
        self._followed[body] = (mesh, mesh.version)
        if mesh.face_count:
            self._unbuilt[body] = [*mesh.bounds[0], cells_per_length(mesh.bounds)]
        return body

    def use(self, bodies: np.ndarray) -> None:
        """Count objects that have these bodies."""
        np.add.at(self.users, bodies, 1)

    def release(self, bodies: np.ndarray) -> None:
        """Forget objects that had these bodies, and bodies that no object has any more."""
        np.subtract.at(self.users, bodies, 1)
        for body in np.unique(bodies[self.users[bodies] == 0]).tolist():
            self._drop(body)

    def mesh(self, body: int) -> Mesh:
        """The mesh of a body."""
        held = self.meshes[body]
        if held is None:
            points, faces = self._arrays(body)
            if body in self._pieces:
                used, corners = np.unique(faces.numpy(), return_inverse=True)
                host = corners.reshape(-1, 3).astype(np.int32)
                held = Mesh(points.numpy()[used], host, self.device)
            else:
                held = Mesh(wp.clone(points), wp.clone(faces), self.device)
            self.meshes[body] = held
        return held

    def own(self, bodies: np.ndarray) -> np.ndarray:
        """Bodies with the same shapes for one object each, whose points are theirs alone."""
        shared = self.users[bodies] > 1
        if self._pieces:  # which share their points with each other, and with what is not broken
            shared[:] = True
        if not shared.any():
            return bodies
        out = bodies.copy()
        for k in np.flatnonzero(shared).tolist():
            if self.users[out[k]] > 1:
                out[k] = self._cloned(int(out[k]))
            self._own_points(int(out[k]))
        return out

    def deform(self, bodies: np.ndarray, points: wp.array) -> None:
        """Write the points of bodies, all of their own, one body's after the other's."""
        firsts, counts = (self.table[name][bodies] for name in ("first_point", "point_count"))
        scatter_points(points, firsts, counts, self.points)
        numbers = bodies.tolist()
        for body in numbers:
            if self.meshes[body] is not None:
                self._forget_mesh(body)
        self._worn.update(dict.fromkeys(numbers))
        self.shape_version += 1

    def split(self, body: int, labels: Any) -> np.ndarray:
        """New bodies, one for each label of the faces of a body, with users yet to come.

        The faces of a body with one user are put in order where they are.
        """
        self.flush()
        order, counts = sorted_labels(labels, self.device)
        row = self.table[body].copy()
        first = int(row["first_face"])
        in_place = self.users[body] == 1
        start = first if in_place else self._take_faces(int(row["face_count"]))
        gather_faces(self.faces, order, first, start)
        pieces = self._rows(len(counts))
        self.table[pieces] = row
        self.table["first_face"][pieces] = start + np.cumsum(counts) - counts
        self.table["face_count"][pieces] = counts
        self._point_users[int(row["first_point"])] += len(counts)
        self._pieces |= set(pieces.tolist())
        self._table_changed = True
        self._plant(pieces, np.full(len(pieces), body))
        if in_place:
            self.table["face_count"][body] = 0
            self._broken.add(body)
        self.shape_version += 1
        return pieces

    def bounds(self, bodies: np.ndarray) -> np.ndarray:
        """(k, 2, 3) lower and upper corners of what bodies with faces hold, in their frames."""
        self.flush()
        roots = 4 * (self.table["first_face"][bodies] + self.table["face_count"][bodies]) - 4
        nodes = self.nodes.numpy()
        rows = np.stack([nodes[roots, :3], nodes[roots + 1, :3]], axis=1).astype(np.float64)
        return rows + self.table["origin"][bodies][:, None]

    def follow(self) -> None:
        """Take over what meshes that were given have become since."""
        for body, (mesh, version) in list(self._followed.items()):
            if mesh.version != version:
                self._own_points(body)
                _copy(self.points, mesh.points, int(self.table["first_point"][body]))
                self._followed[body] = (mesh, mesh.version)
                self._worn[body] = None
                self.shape_version += 1

    def flush(self) -> None:
        """Let trees follow what has changed."""
        self.follow()
        self._update_table()
        with stage("hierarchy", self.device):
            if self._unbuilt:
                new, rows = np.array(list(self._unbuilt)), np.array(list(self._unbuilt.values()))
                grids = wp.array(rows, dtype=wp.vec4d, device=self.device)
                self._grow(new, grids)
                self._worn = {body: None for body in self._worn if body not in self._unbuilt}
                self._unbuilt = {}
            if self._worn:
                worn, self._worn = np.array(list(self._worn)), {}
                worn = worn[self.table["face_count"][worn] > 0]
                self._follow_shape(worn)

    @property
    def forest(self) -> Forest:
        """The struct to pass to kernels, the same one until arrays have moved."""
        if self._view[0] == self.generation:
            return self._view[1]
        out = Forest()
        out.points, out.faces, out.nodes = self.points, self.faces, self.nodes
        out.leaf_slots, out.split_slots = self.leaf_slots, self.split_slots
        out.arrivals, out.bodies = self.arrivals, self._bodies
        self._view = (self.generation, out)
        return out

    def _follow_shape(self, worn: np.ndarray) -> None:
        """Refit, or build anew now and then: a refit keeps a tree that was for another shape."""
        if not len(worn):
            return
        parts = self.parts(worn)
        about = (self.generation, parts)
        self._regrowing.get(about, lambda: regrowth(self.forest, parts, self.device)).run()
        self._refits += 1
        if self._refits % REBUILD_EVERY == 0:
            self._grow(worn, grids_of(self.forest, worn, self.device))

    def parts(self, bodies: np.ndarray) -> Parts:
        """Bodies with faces, to be handled together."""
        counts = self.table["face_count"][bodies]
        held, parts = self.__dict__.get("_last_parts", (None, None))
        if held is None or not all(map(np.array_equal, held, (bodies, counts))):
            parts = Parts.of(bodies, counts, self.device)
            self._last_parts = ((bodies, counts.copy()), parts)
        return parts

    def _plant(self, bodies: np.ndarray, sources: np.ndarray) -> None:
        """Build trees with the grids of other bodies."""
        grids = grids_of(self.forest, sources, self.device)
        self._update_table()
        self._grow(bodies, grids)

    def _grow(self, bodies: np.ndarray, grids: wp.array) -> None:
        """Build trees."""
        plant(self.forest, self.parts(bodies), grids, self.device)
        self.grown[bodies] += 1

    def _update_table(self) -> None:
        if not self._table_changed:
            return
        if self._bodies is None or self._bodies.shape[0] < len(self.table):
            room = max(2 * len(self.table), LEAST_ROOM)
            self._bodies = wp.zeros(room, dtype=Body, device=self.device)
            self.generation += 1
        if len(self.table):
            rows = wp.array(self.table, dtype=Body, device=self.device)
            wp.copy(self._bodies, rows, count=len(self.table))
        self._table_changed = False

    def _arrays(self, body: int) -> tuple[wp.array, wp.array]:
        row = self.table[body]
        point, face = int(row["first_point"]), int(row["first_face"])
        return (
            self.points[point : point + int(row["point_count"])],
            self.faces[face : face + int(row["face_count"])],
        )

    def _new_body(self, face_count: int, point_count: int, origin: np.ndarray) -> int:
        """A row and room for a body."""
        body = int(self._rows(1)[0])
        point = self._points.take(max(point_count, 1))
        self._point_users[point] = 1
        face = self._take_faces(face_count)
        self._make_room(self._faces.end, self._points.end)
        self.table[body] = (face, face_count, point, point_count, origin)
        return body

    def _rows(self, count: int) -> np.ndarray:
        """Free rows of the table."""
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        first, more = len(self.table), count - len(reused)
        self.table = np.concatenate([self.table, np.zeros(more, self.table.dtype)])
        self.users = np.concatenate([self.users, np.zeros(more, np.int64)])
        self.grown = np.concatenate([self.grown, np.zeros(more, np.int64)])
        self.meshes += [None] * more
        self._table_changed = True
        rows = np.concatenate([np.array(reused, np.int64), np.arange(first, first + more)])
        self.grown[rows] += 1
        return rows

    def _take_faces(self, count: int) -> int:
        start = self._faces.take(max(count, 1))
        self._make_room(self._faces.end, self._points.end)
        return start

    def _drop(self, body: int) -> None:
        """Free what a body holds."""
        row = self.table[body]
        if body not in self._broken:
            self._faces.give(int(row["first_face"]), max(int(row["face_count"]), 1))
        self._broken.discard(body)
        self._leave_points(body)
        self._forget_mesh(body)
        self._pieces.discard(body)
        self._worn.pop(body, None)
        self._unbuilt.pop(body, None)
        row["face_count"] = row["point_count"] = 0
        self._table_changed = True
        self._free.append(body)

    def _leave_points(self, body: int) -> None:
        row = self.table[body]
        first = int(row["first_point"])
        self._point_users[first] -= 1
        if not self._point_users[first]:
            del self._point_users[first]
            self._points.give(first, max(int(row["point_count"]), 1))

    def _forget_mesh(self, body: int) -> None:
        """A body goes its own way: it is not the mesh that was given any more."""
        mesh, self.meshes[body] = self.meshes[body], None
        if body in self._followed:
            del self._followed[body]
            del self._body_of[id(mesh)]

    def _cloned(self, body: int) -> int:
        """A copy of a body, tree and all, for one of its users."""
        self.flush()
        row = self.table[body].copy()
        fresh = self._new_body(int(row["face_count"]), int(row["point_count"]), row["origin"])
        new = self.table[fresh]
        self.users[body] -= 1
        self.users[fresh] = 1
        if body in self._pieces:
            self._pieces.add(fresh)
        scales = {"points": ("first_point", "point_count", 1)}
        scales |= {"nodes": ("first_face", "face_count", 4)}
        names = ("faces", "leaf_slots", "split_slots", "arrivals")
        scales |= dict.fromkeys(names, ("first_face", "face_count", 1))
        for name, (first, count, rows) in scales.items():
            array, start = getattr(self, name), rows * int(row[first])
            size = rows * int(row[count])
            if size:
                wp.copy(array, array, rows * int(new[first]), start, size)
        return fresh

    def _own_points(self, body: int) -> None:
        """Give a body points of its own; a piece those that it uses, in their order."""
        if body not in self._pieces:
            if self._point_users[int(self.table["first_point"][body])] > 1:
                self._move_points(body, wp.clone(self._arrays(body)[0]))
            return
        mesh = self.mesh(body)
        self._move_points(body, mesh.points)
        _copy(self.faces, mesh.faces, int(self.table["first_face"][body]))
        self._pieces.discard(body)

    def _move_points(self, body: int, points: wp.array) -> None:
        """Put the points of a body elsewhere."""
        self._leave_points(body)
        row = self.table[body]
        first = self._points.take(max(points.shape[0], 1))
        self._point_users[first] = 1
        self._make_room(self._faces.end, self._points.end)
        row["first_point"], row["point_count"] = first, points.shape[0]
        _copy(self.points, points, first)
        self._table_changed = True

    def _make_room(self, face_count: int, point_count: int) -> None:
        """Let arrays grow."""
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


def _copy(into: wp.array, rows: wp.array, start: int) -> None:
    if rows.shape[0]:
        wp.copy(into, rows, dest_offset=start, count=rows.shape[0])


def checked_rows(vertices: Any, device: wp.Device, known: Kept) -> wp.array:
    """Vertices (n, 3) as float64 points on the device; refuses what is not finite.

    ``known`` keeps buffers: the points are to be used before the next call.
    """
    kind = scalar_dtype(vertices)
    if kind.kind in "iu":
        vertices, kind = vertices.astype(np.float64), np.dtype(np.float64)
    if kind not in (np.float32, np.float64):
        raise MeshError(f"vertices must be float32 or float64, not {kind}.")
    rows = to_rows(vertices, wp.vec3f if kind == np.float32 else wp.vec3d, device)
    points = rows
    if kind == np.float32:
        count = rows.shape[0]
        points = known.get((count,), lambda: wp.empty(count, dtype=wp.vec3d, device=device))
        launch(widen_kernel, count, [rows, points], device)
    where = (points.ptr or 0, points.shape[0])  # an array may come as a new view each time
    extent = known.get(where, lambda: Extent(points))
    extent.start()
    first_bad, _ = extent.read()
    if first_bad >= 0:
        value = rows[first_bad : first_bad + 1].numpy()[0]
        raise MeshError(f"vertices[{first_bad}] is {value}; coordinates must be finite.")
    return points
