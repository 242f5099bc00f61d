"""Contents: the objects of a scene, and all that is done to them."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import warp as wp

from abut.core.arrays import scalar_dtype, to_plain, wait_for_readers
from abut.core.device import resolve_device
from abut.core.pickling import device_or_cpu
from abut.errors import DeviceError, SceneError
from abut.mesh import Mesh, require_meshes
from abut.scene.intake import Intake
from abut.scene.objects import EVERY_GROUP, NOBODY, Objects, given_poses, require_bits
from abut.scene.shape_pool import ShapePool

KNOWN = ("static", "group", "mask", "names", "ignored")  # of objects, beside mesh and pose

Options = ParamSpec("Options")
Answer = TypeVar("Answer")


def alone(
    method: Callable[Concatenate[Any, Options], Answer],
) -> Callable[Concatenate[Any, Options], Answer]:
    """A method of a scene into which one thread goes at a time: they share what a scene keeps."""

    @wraps(method)
    def entered(scene: Any, *args: Options.args, **options: Options.kwargs) -> Answer:
        with scene.lock:
            return method(scene, *args, **options)

    return entered


class Contents:
    """Objects on one device: meshes, each at its pose, several of which may share a mesh.

    Args:
        device: Where the scene lives; None is the first CUDA device, else the CPU.
    """

    def __init__(self, device: Any = None) -> None:
        self.device = resolve_device(device)
        self.lock = threading.RLock()
        self._objects = Objects(self.device)
        self._pool = ShapePool(self.device)
        self._intake = Intake(self.device)
        self._deformed: tuple[int, np.ndarray | None, Any] = (-1, None, None)  # last, see below
        self._empty = Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32), self.device)

    def __len__(self) -> int:
        """Number of objects."""
        return len(self._objects.living)

    def __repr__(self) -> str:
        """Counts and device."""
        return f"{type(self).__name__}({len(self)} objects, {self.device})"

    def __getstate__(self) -> dict[str, Any]:
        """Meshes, each once, and what is known of the objects; hierarchies are made anew."""
        with self.lock:
            held, meshes = self._objects, self.meshes
            each = {id(mesh): mesh for mesh in meshes}
            place = {key: k for k, key in enumerate(each)}
            about = {name: getattr(held, name) for name in KNOWN}
            about["mesh_of"] = np.array([place[id(mesh)] for mesh in meshes], np.int64)
            about |= {"meshes": list(each.values()), "poses": held.poses.numpy()}
            return about | {
                "gone": np.flatnonzero(held.body == NOBODY),
                "device": self.device.alias,
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go back to the device it was on, or to the CPU where that is missing."""
        self.__init__(device_or_cpu(state["device"]))
        bodies = np.array([self._pool.add(mesh) for mesh in state["meshes"]], np.int32)
        bodies, gone = bodies[state["mesh_of"]], state["gone"]
        self._pool.use(bodies)
        self._objects.add(bodies, state["poses"], *(state[name] for name in KNOWN[:3]))
        self._objects.remove(gone)
        self._pool.release(bodies[gone])
        for name, row in state["names"].items():
            self._objects.named(row, name)
        self._objects.ignored = set(state["ignored"])

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

        A matrix that is not a rigid motion is refused by the next query. The array is another one
        after objects were added.
        """
        return self._objects.poses

    @property
    def meshes(self) -> list[Mesh]:
        """The mesh of each object, by index; one without faces for an index that is not used."""
        bodies = self._objects.body.tolist()
        return [self._empty if body == NOBODY else self._pool.mesh(body) for body in bodies]

    def mesh(self, handle: Any) -> Mesh:
        """The mesh of an object, in its own frame."""
        return self._pool.mesh(int(self._objects.body[self._objects.one(handle)]))

    @alone
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
            SceneError: The name is taken or not a string, or a batch has one; groups that are not
                32 bits.
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
        if name is not None and not isinstance(name, str):
            raise SceneError(f"a name is a string, not {name!r}.")
        require_bits(group=group, mask=mask)
        if name is not None and name in self._objects.names:
            raise SceneError(f"there is an object named {name!r} already.")
        bodies = np.full(len(poses), self._pool.add(mesh), np.int32)
        self._pool.use(bodies)
        rows = self._objects.add(bodies, poses, static, group, mask)
        if name is not None:
            self._objects.named(int(rows[0]), name)
        return int(rows[0]) if single else rows

    @alone
    def move(self, handles: Any, pose: Any) -> None:
        """Give an object a pose, or many objects one each.

        Args:
            handles: An index or a name; or several.
            pose: (4, 4), or (k, 4, 4) for k objects.
        """
        rows = self._objects.rows(handles)
        self._objects.write_poses(rows, given_poses(pose, len(rows)))

    @alone
    def deform(self, handles: Any, vertices: Any) -> None:
        """Move the vertices of an object, or of many.

        Objects that share its mesh keep their shape.

        Args:
            handles: An index or a name; or several.
            vertices: (n, 3) in the object's frame; of several objects one after the other.
        """
        bodies = self._to_deform(handles)
        self._pool.deform(bodies, self._shapes(bodies, vertices))
        wait_for_readers(vertices, self.device)

    @alone
    def remove(self, handles: Any) -> None:
        """Take objects out of the scene. Their indices will be those of objects added later."""
        rows = np.unique(self._objects.rows(handles))
        bodies = self._objects.body[rows]
        self._objects.remove(rows)
        self._pool.release(bodies)
        self._pool.version += 1  # their indices and their room are used again

    @alone
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
        objects = self._objects
        row = objects.one(handle)
        body = objects.body[row : row + 1].copy()
        labels = to_plain(labels)
        count = int(self._pool.arrays.table["face_count"][body[0]])
        if tuple(labels.shape) != (count,) or scalar_dtype(labels).kind not in "iu" or not count:
            raise SceneError(
                f"the object has {count} faces, so labels must be as many integers, "
                f"not {scalar_dtype(labels)} of shape {tuple(labels.shape)}."
            )
        pieces = self._pool.split(int(body[0]), labels).astype(np.int32)
        shunned = [p[0] + p[1] - row for p in objects.ignored if row in p]
        rows = objects.replace(row, pieces)
        self._pool.use(pieces)
        self._pool.release(body)
        for other in shunned:
            objects.ignore(rows, np.array(other))
        return rows

    @alone
    def ignore(self, handles: Any, others: Any) -> None:
        """Never test pairs of objects: each of ``handles`` with its partner in ``others``.

        One against many is all of these pairs.
        """
        self._objects.ignore(self._objects.rows(handles), self._objects.rows(others))

    def _to_deform(self, handles: Any) -> np.ndarray:
        """Bodies of objects, each its own; soon for the same array of indices as last time."""
        version, known, bodies = self._deformed
        if isinstance(handles, np.ndarray) and version == self._objects.version:
            if np.array_equal(handles, known):
                return bodies
        rows = self._objects.rows(handles)
        if len(np.unique(rows)) < len(rows):
            raise SceneError("an object was named twice; deform each once.")
        bodies = self._own_bodies(rows)
        self._deformed = (self._objects.version, rows, bodies)
        return bodies

    def _own_bodies(self, rows: np.ndarray) -> np.ndarray:
        """Bodies of objects, which are theirs alone from now on."""
        held = self._objects.body
        owned = self._pool.own(held[rows])
        if (owned != held[rows]).any():
            held[rows] = owned
            self._objects.version += 1
        return owned

    def _shapes(self, bodies: np.ndarray, vertices: Any) -> wp.array:
        """Checked vertices of some bodies, one after the other."""
        plain = to_plain(vertices)
        count = int(self._pool.arrays.table["point_count"][bodies].sum())
        if tuple(plain.shape) != (count, 3):
            raise SceneError(
                f"these objects have {count} vertices, so theirs must have shape ({count}, 3), "
                f"not {tuple(plain.shape)}."
            )
        return self._intake.points(plain)
