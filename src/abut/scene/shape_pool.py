"""ShapePool: the shapes of a scene, each stored once however many objects share it."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.lbvh import frame_origin
from abut.bvh.morton import cells_per_length
from abut.core.arrays import extended
from abut.core.pair_sort import sort_with_order
from abut.mesh import Mesh, shape_changes
from abut.scene.shape_arrays import ShapeArrays, copy_rows
from abut.scene.shape_trees import ShapeTrees

NO_SHAPE = -1  # of a removed object
UINT16_RANGE = 1 << 16


class ShapePool:
    """Shapes of objects, counted by the objects that use them.

    Attributes:
        arrays: Where the shapes lie.
        trees: Their hierarchies.
        users: (n,) objects that use each shape; 0: the row is free.
        meshes: The mesh of each shape, given or made, while it equals the shape.
        version: Grows when points change.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.arrays = ShapeArrays(device)
        self.trees = ShapeTrees(self.arrays)
        self.users = np.zeros(0, np.int64)
        self.meshes: list[Mesh | None] = []
        self.version = 0
        self._shape_of: dict[int, int] = {}  # by the id of a mesh that was given
        self._given: dict[int, tuple[Mesh, int]] = {}  # meshes that were given, their versions
        self._followed = -1  # changes of all meshes that the shapes have followed
        self._pieces: set[int] = set()  # share the points of the shape they were split from
        self._empty = Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32), device)
        self._split: set[int] = set()  # their faces belong to their pieces now

    def add(self, mesh: Mesh) -> int:
        """The shape of a mesh, stored if it is not there yet."""
        known = self._shape_of.get(id(mesh))
        if known is not None:
            self._follow_mesh(known)
            return known
        shape = int(self._new_rows(1)[0])
        counts = mesh.face_count, mesh.vertex_count
        point, face = self.arrays.allocate(shape, *counts, frame_origin(mesh.bounds))
        copy_rows(self.arrays.points, mesh.points, point)
        copy_rows(self.arrays.faces, mesh.faces, face)
        self.meshes[shape] = mesh
        self._shape_of[id(mesh)] = shape
        self._given[shape], self._followed = (mesh, mesh.version), -1
        if mesh.face_count:
            self.trees.build_later(shape, [*mesh.bounds[0], cells_per_length(mesh.bounds)])
        return shape

    def are_pieces(self, shapes: np.ndarray) -> np.ndarray:
        """(n,) bool: shapes that share the points of the shape they were split from."""
        return np.isin(shapes, list(self._pieces))

    def use(self, shapes: np.ndarray) -> None:
        """Count objects that use these shapes."""
        np.add.at(self.users, shapes, 1)

    def release(self, shapes: np.ndarray) -> None:
        """Forget objects that used these shapes, and free shapes that no object uses any more."""
        np.subtract.at(self.users, shapes, 1)
        for shape in np.unique(shapes[self.users[shapes] == 0]).tolist():
            self._free(shape)

    def mesh(self, shape: int) -> Mesh:
        """The mesh of a shape; one without faces for NO_SHAPE."""
        if shape == NO_SHAPE:
            return self._empty
        held = self.meshes[shape]
        if held is None:
            points, faces = self.arrays.points_and_faces(shape)
            if shape in self._pieces:
                used, corners = np.unique(faces.numpy(), return_inverse=True)
                host = corners.reshape(-1, 3).astype(np.int32)
                held = Mesh(points.numpy()[used], host, self.device)
            else:
                held = Mesh(wp.clone(points), wp.clone(faces), self.device)
            self.meshes[shape] = held
        return held

    def point_rows(self, shape: int, vertices: np.ndarray) -> np.ndarray:
        """Rows of the points of vertices of a shape's mesh; a piece shares those of the whole."""
        if shape not in self._pieces:
            return vertices
        _, faces = self.arrays.points_and_faces(shape)
        return np.unique(faces.numpy())[vertices]

    def own(self, shapes: np.ndarray) -> np.ndarray:
        """Shapes equal to these, each of one object alone and with points of its own."""
        shared = self.users[shapes] > 1
        if self._pieces:  # pieces share points with each other, and with shapes that are whole
            shared[:] = True
        if not shared.any():
            return shapes
        out = shapes.copy()
        for k in np.flatnonzero(shared).tolist():
            if self.users[out[k]] > 1:
                out[k] = self._copy_for_one(int(out[k]))
            self._own_points(int(out[k]))
        return out

    def deform(self, shapes: np.ndarray, points: wp.array) -> None:
        """Write the points of shapes with points of their own, one shape's after the other's."""
        self.arrays.write_points(shapes, points)
        for shape in shapes.tolist():
            if self.meshes[shape] is not None:
                self._forget_mesh(shape)
        self.trees.refit_later(shapes)
        self.version += 1

    def split(self, shape: int, labels: Any) -> np.ndarray:
        """New shapes, one for each label of the faces of a shape, which no object uses yet.

        The faces of a shape with one user are reordered in place.
        """
        self._flush_one(shape)
        arrays = self.arrays
        order, counts = sort_labels(labels, self.device)
        first, face_count = (int(arrays.table[n][shape]) for n in ("first_face", "face_count"))
        in_place = self.users[shape] == 1
        start = first if in_place else arrays.take_faces(face_count)
        faces = wp.clone(wp.indexedarray(arrays.faces[first : first + face_count], [order]))
        copy_rows(arrays.faces, faces, start)
        pieces = self._new_rows(len(counts))
        arrays.divide(shape, start, counts, pieces)
        self._pieces |= set(pieces.tolist())
        self.trees.build_pieces(pieces, shape)
        if in_place:
            arrays.table["face_count"][shape] = 0
            self._split.add(shape)
        self.version += 1
        return pieces

    def flush(self) -> None:
        """Bring points up to date with the meshes that were given, and trees with the points."""
        self._follow_meshes()
        self.trees.flush()

    def _flush_one(self, shape: int) -> None:
        """Bring the points of one shape up to date, and trees that are due."""
        self._follow_mesh(shape)
        self.trees.flush()

    def _new_rows(self, count: int) -> np.ndarray:
        """Rows of shapes that no object uses yet."""
        rows = self.arrays.new_rows(count)
        self.trees.new_rows(rows)
        self.users = extended(self.users, len(self.arrays.table))
        self.meshes += [None] * (len(self.users) - len(self.meshes))
        return rows

    def _follow_meshes(self) -> None:
        """Copy the points of given meshes that have deformed since."""
        changes = shape_changes[0]
        if changes == self._followed:
            return
        deformed = [shape for shape, (mesh, then) in self._given.items() if mesh.version != then]
        for shape in deformed:
            self._follow_mesh(shape)
        self._followed = changes

    def _follow_mesh(self, shape: int) -> None:
        """Copy the points of the mesh that was given for a shape, if it has deformed since."""
        mesh, version = self._given.get(shape, (None, -1))
        if mesh is None or mesh.version == version:
            return
        self._own_points(shape)
        first = int(self.arrays.table["first_point"][shape])
        copy_rows(self.arrays.points, mesh.points, first)
        self._given[shape] = (mesh, mesh.version)
        self.trees.refit_later(shape)
        self.version += 1

    def _free(self, shape: int) -> None:
        if shape not in self._split:
            self.arrays.give_faces(shape)
        self._split.discard(shape)
        self.arrays.give_points(shape)
        self._forget_mesh(shape)
        self._pieces.discard(shape)
        self.trees.free_row(shape)
        self.arrays.free_row(shape)

    def _forget_mesh(self, shape: int) -> None:
        """Detach a shape from the mesh that was given for it."""
        mesh, self.meshes[shape] = self.meshes[shape], None
        if shape in self._given:
            del self._given[shape]
            del self._shape_of[id(mesh)]

    def _copy_for_one(self, shape: int) -> int:
        """Copy a shape, tree included, for one of its users."""
        self._flush_one(shape)
        fresh = int(self._new_rows(1)[0])
        self.arrays.copy(shape, fresh)
        self.users[shape] -= 1
        self.users[fresh] = 1
        if shape in self._pieces:
            self._pieces.add(fresh)
        return fresh

    def _own_points(self, shape: int) -> None:
        """Give a shape points of its own; a piece keeps the ones its faces use, in their order."""
        if shape not in self._pieces:
            if self.arrays.shares_points(shape):
                points, _ = self.arrays.points_and_faces(shape)
                self.arrays.replace_points(shape, wp.clone(points))
            return
        mesh = self.mesh(shape)
        self.arrays.replace_points(shape, mesh.points)
        copy_rows(self.arrays.faces, mesh.faces, int(self.arrays.table["first_face"][shape]))
        self._pieces.discard(shape)


def sort_labels(labels: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """The order that sorts (n,) integers, stable, and how many there are of each label."""
    if device.is_cpu:
        return _sort_by_counting(np.asarray(labels))
    return sort_on_device(labels, device)


def sort_on_device(labels: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """``sort_labels`` of labels on a device; only the number of each label reaches the host."""
    count = labels.shape[0]
    keys = wp.empty(2 * count, dtype=wp.int32, device=device)
    if isinstance(labels, wp.array) and labels.dtype == wp.int32:
        wp.copy(keys, labels, count=count)
    else:
        host = labels.numpy() if isinstance(labels, wp.array) else labels
        _, ranks = np.unique(host, return_inverse=True)  # any integers
        keys[:count].assign(ranks.reshape(-1).astype(np.int32))
    order = sort_with_order(keys, count)
    unique, counts = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
    kinds = wp.utils.runlength_encode(keys, unique, counts, value_count=count)
    return order, counts[:kinds].numpy()


def _sort_by_counting(labels: np.ndarray) -> tuple[wp.array, np.ndarray]:
    low, high = int(labels.min()), int(labels.max())
    if high - low < UINT16_RANGE:
        labels = (labels - low).astype(np.uint16)  # NumPy sorts these by counting
    order = np.argsort(labels, kind="stable").astype(np.int32)
    changes = np.flatnonzero(np.diff(labels[order])) + 1
    counts = np.diff(np.concatenate([[0], changes, [len(labels)]]))
    return wp.array(order, device="cpu"), counts
