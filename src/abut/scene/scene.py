"""Scene: many objects that move, deform and break, and the questions asked of them all."""

from typing import Any

import numpy as np
import warp as wp

from abut.arrays import to_plain
from abut.errors import DeviceError, SceneError
from abut.mesh import Mesh, require_meshes
from abut.options import Method, chosen
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.runtime import resolve_device
from abut.scene.contacts import SceneContacts
from abut.scene.objects import EVERY_GROUP, NOBODY, Objects, given_poses


class Scene:
    """Objects on one device: meshes, each at its pose, several of which may share a mesh.

    An object is known by its index, which ``add`` returns, or by its name. Every pair of objects
    is tested unless both are static, their groups do not meet, or the pair is ignored.

    Args:
        device: Where the scene lives; None is the first CUDA device, else the CPU.
    """

    def __init__(self, device: Any = None) -> None:
        self.device = resolve_device(device)
        self._objects = Objects(self.device)
        self._bodies: list[Mesh | None] = []
        self._empty = Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32), self.device)

    def __len__(self) -> int:
        """Number of objects."""
        return len(self._objects.living)

    def __repr__(self) -> str:
        """Counts and device."""
        return f"Scene({len(self)} objects, {self.device})"

    @property
    def indices(self) -> np.ndarray:
        """Indices of the objects there are, ascending."""
        return self._objects.living

    @property
    def names(self) -> dict[str, int]:
        """The objects that have a name, and their indices."""
        return dict(self._objects.names)

    @property
    def poses(self) -> wp.array:
        """(n,) matrices on the device, by index. Write into them to move objects in place.

        Poses written like this are not checked to be rigid. The array is another one after
        objects were added.
        """
        return self._objects.poses

    @property
    def meshes(self) -> list[Mesh]:
        """The mesh of each object, by index; one without faces for an index that is not used."""
        bodies = self._objects.body.tolist()
        return [self._empty if b == NOBODY else self.mesh(i) for i, b in enumerate(bodies)]

    def mesh(self, handle: Any) -> Mesh:
        """The mesh of an object, in its own frame."""
        mesh = self._bodies[self._objects.body[self._objects.one(handle)]]
        assert mesh is not None
        return mesh

    def add(
        self,
        mesh: Mesh,
        pose: Any = None,
        name: str | None = None,
        *,
        static: bool = False,
        group: int = 1,
        mask: int = EVERY_GROUP,
    ) -> Any:
        """Add an object; with a batch of poses (k, 4, 4), k objects that share the mesh.

        Args:
            mesh: The mesh, on the scene's device.
            pose: Where it is; None leaves it in place.
            name: How to call the object, beside its index.
            static: The object does not move: it is not tested against other static ones.
            group: Bits of the groups the object is in.
            mask: Bits of the groups it may meet. Two objects are tested when each is in a group
                that the other may meet.

        Returns:
            The index of the object; for a batch a (k,) array.

        Raises:
            SceneError: The name is taken, or a batch has one.
            DeviceError: The mesh lives on another device.
        """
        require_meshes(mesh=mesh)
        if mesh.device != self.device:
            raise DeviceError(
                f"the mesh lives on {mesh.device} and the scene on {self.device}; "
                "bring it there with .to(device)."
            )
        poses = given_poses(pose, None)
        single = pose is None or len(np.shape(to_plain(pose))) == 2
        if name is not None and not single:
            raise SceneError("a name is for one object, not for a batch.")
        if name is not None and name in self._objects.names:
            raise SceneError(f"there is an object named {name!r} already.")
        bodies = np.full(len(poses), self._body_of(mesh), np.int32)
        rows = self._objects.add(bodies, poses, static, group, mask)
        if name is not None:
            self._objects.named(int(rows[0]), name)
        return int(rows[0]) if single else rows

    def move(self, handles: Any, pose: Any) -> None:
        """Give an object a pose, or many objects one each.

        Args:
            handles: An index or a name; or several.
            pose: (4, 4), or (k, 4, 4) for k objects.
        """
        rows = self._objects.rows(handles)
        self._objects.write_poses(rows, given_poses(pose, len(rows)))

    def deform(self, handles: Any, vertices: Any) -> None:
        """Move the vertices of an object, or of many.

        Objects that share its mesh keep their shape.

        Args:
            handles: An index or a name; or several.
            vertices: (n, 3) in the object's frame; of several objects one after the other.
        """
        vertices = to_plain(vertices)
        rows = self._objects.rows(handles)
        counts = [self.mesh(row).vertex_count for row in rows.tolist()]
        if tuple(vertices.shape) != (sum(counts), 3):
            raise SceneError(
                f"these objects have {sum(counts)} vertices, so deform needs shape "
                f"({sum(counts)}, 3), not {tuple(vertices.shape)}."
            )
        stops = np.cumsum(counts)
        for row, stop, count in zip(rows.tolist(), stops.tolist(), counts, strict=True):
            mesh = self.mesh(row)
            own = Mesh(vertices[stop - count : stop], mesh.faces, self.device)
            self._objects.body[row] = self._body_of(own)
        self._drop_unused()

    def remove(self, handles: Any) -> None:
        """Take objects out of the scene. Their indices will be those of objects added later."""
        self._objects.remove(np.unique(self._objects.rows(handles)))
        self._drop_unused()

    def split(self, handle: Any, labels: Any) -> np.ndarray:
        """Break an object: faces with the same label become an object of their own, in its place.

        Pieces keep pose, groups and ignored pairs of the object, which is no more.

        Args:
            handle: The index or name of the object.
            labels: (m,) integers, one for each face.

        Returns:
            Indices of the pieces, in ascending order of their labels. Faces of a piece keep their
            order, and so do the vertices that they use.
        """
        row = self._objects.one(handle)
        mesh = self.mesh(row)
        labels = np.asarray(labels.numpy() if isinstance(labels, wp.array) else labels)
        if labels.shape != (mesh.face_count,) or labels.dtype.kind not in "iu":
            raise SceneError(
                f"the object has {mesh.face_count} faces, so labels must be as many integers, "
                f"not {labels.dtype} of shape {labels.shape}."
            )
        objects = self._objects
        pose = objects.poses.numpy()[row]
        about = bool(objects.static[row]), int(objects.group[row]), int(objects.mask[row])
        shunned = [p[0] + p[1] - row for p in objects.ignored if row in p]
        vertices, faces = mesh.vertices.numpy(), mesh.faces.numpy()
        objects.remove(np.array([row]))
        bodies = []
        for label in np.unique(labels):
            used, corners = np.unique(faces[labels == label], return_inverse=True)
            piece = Mesh(vertices[used], corners.reshape(-1, 3).astype(np.int32), self.device)
            bodies.append(self._body_of(piece))
        poses = np.broadcast_to(pose, (len(bodies), 4, 4))
        rows = objects.add(np.array(bodies, np.int32), poses, *about)
        for other in shunned:
            objects.ignore(rows, np.array(other))
        self._drop_unused()
        return rows

    def ignore(self, handles: Any, others: Any) -> None:
        """Never test pairs of objects: each of ``handles`` with its partner in ``others``.

        One against many is all of these pairs.
        """
        self._objects.ignore(self._objects.rows(handles), self._objects.rows(others))

    def collide(self, *, self_collisions: bool = False, method: str = "bvh") -> SceneContacts:
        """Find every pair of faces of different objects that share a point.

        Args:
            self_collisions: Also faces of one object that meet, as in ``abut.self_collide``.
            method: ``bvh``; or ``brute`` for the slow truth.

        Returns:
            Sorted rows: objects, then faces.

        Guarantee:
            Exact and complete. Faces are closed: touching and coplanar overlap count.
        """
        method = chosen(Method, method, "method")
        poses = self.poses.numpy()
        objects, pairs = [np.empty((0, 2), np.int32)], [np.empty((0, 2), np.int32)]
        for i, j in self._candidates(poses, self_collisions, method):
            if i == j:
                hits = self_collide(self.mesh(i), method=method)
            else:
                sides = self.mesh(i), self.mesh(j)
                hits = collide(*sides, pose_a=poses[i], pose_b=poses[j], method=method)
            pairs.append(hits.pairs.numpy())
            objects.append(np.full((len(hits), 2), (i, j), np.int32))
        rows = np.concatenate(pairs)
        return SceneContacts(
            wp.array(np.concatenate(objects), device=self.device),
            wp.array(rows, device=self.device),
            None,
            len(rows) > 0,
        )

    def _candidates(self, poses: np.ndarray, own: bool, method: Method) -> list[tuple[int, int]]:
        """Pairs of objects whose boxes overlap, ascending."""
        held, rows = self._objects, self._objects.living
        bounds = (
            np.stack([self._box(i, poses[i]) for i in rows]) if len(rows) else np.empty((0, 2, 3))
        )
        low, high = bounds[:, None, 0], bounds[:, None, 1]
        meets = (held.group[rows, None] & held.mask[rows]) != 0
        meets &= meets.T & ~((held.static[rows, None] & held.static[rows]) != 0)
        if method is not Method.BRUTE:
            meets &= ((low <= high.swapaxes(0, 1)) & (low.swapaxes(0, 1) <= high)).all(axis=2)
        meets = np.triu(meets, 1) | (np.eye(len(rows), dtype=bool) & own)
        found = rows[np.argwhere(meets)].tolist()
        return [(i, j) for i, j in found if (i, j) not in held.ignored]

    def _box(self, row: int, pose: np.ndarray) -> np.ndarray:
        bounds = self.mesh(row).bounds
        corners = np.stack(np.meshgrid(*bounds.T, indexing="ij"), axis=-1).reshape(-1, 3)
        moved = corners @ pose[:3, :3].T + pose[:3, 3]
        slack = 2.0**-40 * (np.abs(bounds).max() + np.abs(moved).max())
        return np.array([moved.min(axis=0) - slack, moved.max(axis=0) + slack])

    def _body_of(self, mesh: Mesh) -> int:
        for number, held in enumerate(self._bodies):
            if held is mesh:
                return number
        if None in self._bodies:
            number = self._bodies.index(None)
            self._bodies[number] = mesh
            return number
        self._bodies.append(mesh)
        return len(self._bodies) - 1

    def _drop_unused(self) -> None:
        used = set(self._objects.body.tolist())
        self._bodies = [m if n in used else None for n, m in enumerate(self._bodies)]
