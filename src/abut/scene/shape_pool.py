"""Pool: the shapes of a scene, each once however many objects share it."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.lbvh import frame_origin
from abut.bvh.morton import cells_per_length
from abut.mesh import Mesh
from abut.scene.grove import BatchedTrees
from abut.scene.rearrange import LabelOrder, gather_faces, scatter_points
from abut.scene.store import copy_rows


class Pool(BatchedTrees):
    """Bodies: shapes that objects have, each once however many objects share it.

    Attributes:
        users: How many objects have each body; 0: the row is free.
        meshes: Of each body as given or as made, while it has the body's shape.
        shape_version: Grows when points change.
    """

    def __init__(self, device: wp.Device) -> None:
        super().__init__(device)
        self.users = np.zeros(0, np.int64)
        self.meshes: list[Mesh | None] = []
        self.shape_version = 0
        self._body_of: dict[int, int] = {}
        self._followed: dict[int, tuple[Mesh, int]] = {}  # meshes given, and their versions
        self._pieces: set[int] = set()  # share the points of what they were broken from
        self._broken: set[int] = set()  # their faces are those of their pieces now
        self._label_order = LabelOrder(device)

    def new_rows(self, count: int) -> np.ndarray:
        """Rows of bodies that nobody has yet."""
        rows = super().new_rows(count)
        more = len(self.table) - len(self.users)
        self.users = np.concatenate([self.users, np.zeros(more, np.int64)])
        self.meshes += [None] * more
        return rows

    def add(self, mesh: Mesh) -> int:
        """The body of a mesh; one that is there already is used again."""
        known = self._body_of.get(id(mesh))
        if known is not None and self._followed[known][1] == mesh.version:
            return known
        if known is not None:
            self.follow()
            return known
        body = int(self.new_rows(1)[0])
        self.place(body, mesh.face_count, mesh.vertex_count, frame_origin(mesh.bounds))
        row = self.table[body]
        copy_rows(self.points, mesh.points, int(row["first_point"]))
        copy_rows(self.faces, mesh.faces, int(row["first_face"]))
        self.meshes[body] = mesh
        self._body_of[id(mesh)] = body
        self._followed[body] = (mesh, mesh.version)
        if mesh.face_count:
            self.to_build(body, [*mesh.bounds[0], cells_per_length(mesh.bounds)])
        return body

    def are_pieces(self, bodies: np.ndarray) -> np.ndarray:
        """Which bodies share the points of what they were broken from, used or not."""
        return np.isin(bodies, list(self._pieces))

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
            points, faces = self.arrays(body)
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
        for body in bodies.tolist():
            if self.meshes[body] is not None:
                self._forget_mesh(body)
        self.wear(bodies)
        self.shape_version += 1

    def split(self, body: int, labels: Any) -> np.ndarray:
        """New bodies, one for each label of the faces of a body, with users yet to come.

        The faces of a body with one user are put in order where they are.
        """
        self.flush()
        order, counts = self._label_order.sort(labels)
        row = self.table[body].copy()
        first = int(row["first_face"])
        in_place = self.users[body] == 1
        start = first if in_place else self.take_faces(int(row["face_count"]))
        gather_faces(self.faces, order, first, start)
        pieces = self.new_rows(len(counts))
        self.table[pieces] = row
        self.table["first_face"][pieces] = start + np.cumsum(counts) - counts
        self.table["face_count"][pieces] = counts
        self.share_points(body, len(counts))
        self._pieces |= set(pieces.tolist())
        self._table_changed = True
        self.plant_within(pieces, body)
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
                copy_rows(self.points, mesh.points, int(self.table["first_point"][body]))
                self._followed[body] = (mesh, mesh.version)
                self.wear([body])
                self.shape_version += 1

    def flush(self) -> None:
        """Let trees follow what has changed."""
        self.follow()
        self.grow()

    def _drop(self, body: int) -> None:
        """Free what a body holds."""
        if body not in self._broken:
            self.give_faces(body)
        self._broken.discard(body)
        self.leave_points(body)
        self._forget_mesh(body)
        self._pieces.discard(body)
        self.free_row(body)

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
        fresh = int(self.new_rows(1)[0])
        self.place(fresh, int(row["face_count"]), int(row["point_count"]), row["origin"])
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
            if self.shares_points(body):
                self.move_points(body, wp.clone(self.arrays(body)[0]))
            return
        mesh = self.mesh(body)
        self.move_points(body, mesh.points)
        copy_rows(self.faces, mesh.faces, int(self.table["first_face"][body]))
        self._pieces.discard(body)
