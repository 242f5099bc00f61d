"""CollisionManager with the methods of ``trimesh.collision``, answered by a Scene.

Meshes are surfaces, as everywhere in abut: one inside another does not collide with it, and no
distance is negative. Where trimesh takes a convex mesh, it asks FCL about the solid.
"""

import weakref
from collections.abc import Callable, Hashable
from typing import Any, NoReturn

import numpy as np
from trimesh import Trimesh

from abut.errors import AbutError, PoseError, SceneError
from abut.mesh import Mesh
from abut.scene import Scene

EXTERNAL = "__external"  # trimesh's name of a mesh that is not in a manager


class ContactData:
    """Two faces that meet.

    Attributes:
        names: The two objects; "__external" is the mesh that was asked about.
        point: (3,) float64, the middle of the segment in which the faces meet.
    """

    def __init__(self, names: tuple[Any, Any], faces: Any, point: np.ndarray) -> None:
        self.names, self.point = set(names), point
        self._faces = dict(zip(names, faces, strict=True))

    def index(self, name: Hashable) -> int:
        """The face of an object."""
        return self._faces[name]

    @property
    def depth(self) -> NoReturn:
        """Raises: faces that meet have no depth; solids do."""
        raise AbutError("two faces have no depth; ask manager.scene.overlap() how deep solids are.")

    @property
    def normal(self) -> NoReturn:
        """Raises: faces that meet have no common normal."""
        raise AbutError("two faces have no common normal; the regions of abut.overlap have one.")


class DistanceData:
    """The nearest faces of two objects.

    Attributes:
        names: The two objects; "__external" is the mesh that was asked about.
        distance: Their distance; 0 where they meet.
    """

    def __init__(
        self, names: tuple[Any, Any], distance: float, faces: Any, points: np.ndarray
    ) -> None:
        self.names, self.distance = set(names), distance
        self._faces, self._points = (dict(zip(names, x, strict=True)) for x in (faces, points))

    def index(self, name: Hashable) -> int:
        """The nearest face of an object."""
        return self._faces[name]

    def point(self, name: Hashable) -> np.ndarray:
        """(3,) float64, the nearest point of an object."""
        return self._points[name]


class CollisionManager:
    """Named meshes at transforms, and which of them collide or are nearest.

    Meshes have ``vertices`` and ``faces``, as those of trimesh; they are copied. Methods are those
    of ``trimesh.collision.CollisionManager``.

    Args:
        device: Where the scene lives; None is the first CUDA device, else the CPU.

    Attributes:
        scene: The scene behind it, for questions that trimesh does not have.

    Guarantee:
        Those of ``Scene.collide`` and ``Scene.least_distance``.
    """

    def __init__(self, device: Any = None) -> None:
        self.scene = Scene(device)
        self._indices: dict[Hashable, int] = {}
        self._names: dict[int, Hashable] = {}
        self._meshes: dict[int, tuple[weakref.ref, int, Mesh]] = {}  # by the id of what was given

    def add_object(self, name: Hashable, mesh: Any, transform: Any = None) -> int:
        """Add an object, or replace the one with this name; returns its index in the scene."""
        index = self.scene.add(self._mesh(mesh), _pose(transform))
        if name in self._indices:
            self.remove_object(name)
        self._indices[name], self._names[index] = index, name
        return index

    def remove_object(self, name: Hashable) -> None:
        """Remove an object."""
        self.scene.remove(self._index(name))
        del self._names[self._indices.pop(name)]

    def set_transform(self, name: Hashable, transform: Any) -> None:
        """Move an object."""
        self.scene.move(self._index(name), _pose(transform))

    def in_collision_single(
        self,
        mesh: Any,
        transform: Any = None,
        return_names: bool = False,
        return_data: bool = False,
    ) -> Any:
        """Whether a mesh collides; on request also the set of names and the list of contacts."""
        part = {"against": self._mesh(mesh), "pose": _pose(transform)}
        return self._collisions(part, _external, _first, return_names, return_data)

    def in_collision_internal(self, return_names: bool = False, return_data: bool = False) -> Any:
        """Whether any two objects collide; names are in alphabetical order."""
        return self._collisions({}, self._names.get, _sorted, return_names, return_data)

    def in_collision_other(
        self,
        other_manager: "CollisionManager",
        return_names: bool = False,
        return_data: bool = False,
    ) -> Any:
        """Whether objects of two managers collide; the name of this one comes first."""
        part, name_b = {"against": other_manager.scene}, other_manager._names.get
        return self._collisions(part, name_b, tuple, return_names, return_data)

    def min_distance_single(
        self,
        mesh: Any,
        transform: Any = None,
        return_name: bool = False,
        return_data: bool = False,
    ) -> Any:
        """Distance of a mesh to the nearest object; infinite where there is none."""
        part = {"against": self._mesh(mesh), "pose": _pose(transform)}
        return self._least(part, _external, _first, return_name, return_data)

    def min_distance_internal(
        self, name: Hashable = None, return_names: bool = False, return_data: bool = False
    ) -> Any:
        """Distance of the two nearest objects, or of one of them and the object nearest to it."""
        part = {} if name is None else {"which": self._index(name)}
        return self._least(part, self._names.get, _sorted, return_names, return_data)

    def min_distance_other(
        self,
        other_manager: "CollisionManager",
        return_names: bool = False,
        return_data: bool = False,
    ) -> Any:
        """Distance of the nearest objects of two managers; the name of this one comes first."""
        part, name_b = {"against": other_manager.scene}, other_manager._names.get
        return self._least(part, name_b, tuple, return_names, return_data)

    def _collisions(
        self,
        part: dict[str, Any],
        name_b: Callable[[int], Any],
        named: Callable[[Any], Any],
        return_names: bool,
        return_data: bool,
    ) -> Any:
        """Ask about a part of the scene; ``named`` makes the name of a row of its two names."""
        if not (return_names or return_data):
            return self.scene.colliding(**part)
        hits = self.scene.collide(first=not return_data, **part)
        pairs = [(self._names[a], name_b(b)) for a, b in hits.objects.numpy().tolist()]
        data: list[ContactData] = []
        if return_data and pairs:
            points = hits.segments.numpy().mean(axis=1)
            rows = zip(pairs, hits.pairs.numpy().tolist(), points, strict=True)
            data = [ContactData(*row) for row in rows]
        names = set(map(named, pairs))
        return _answer(bool(pairs), (names, return_names), (data, return_data))

    def _least(
        self,
        part: dict[str, Any],
        name_b: Callable[[int], Any],
        named: Callable[[Any], Any],
        return_names: bool,
        return_data: bool,
    ) -> Any:
        near = self.scene.least_distance(**part)
        a, b = near.objects.numpy().tolist()
        if a < 0:
            return _answer(near.value, (None, return_names), (None, return_data))
        names, data = (self._names[a], name_b(b)), None
        if return_data:
            faces, points = near.faces.numpy().tolist(), near.points.numpy()
            data = DistanceData(names, near.value, faces, points)
        return _answer(near.value, (named(names), return_names), (data, return_data))

    def _index(self, name: Hashable) -> int:
        if name not in self._indices:
            raise SceneError(f"there is no object named {name!r} in the manager.")
        return self._indices[name]

    def _mesh(self, mesh: Any) -> Mesh:
        """A mesh on the device; the same one for an equal Trimesh that was given before.

        The hash of a Trimesh changes with its vertices and faces.
        """
        if isinstance(mesh, Mesh):
            return mesh
        if not isinstance(mesh, Trimesh):
            return Mesh(mesh.vertices, mesh.faces, self.scene.device)
        given, version, made = self._meshes.get(id(mesh), (None, 0, None))
        if given is None or made is None or given() is not mesh or version != hash(mesh):
            made = Mesh.from_trimesh(mesh, self.scene.device)
            forget = _forget_id(self._meshes, id(mesh))
            self._meshes[id(mesh)] = (weakref.ref(mesh, forget), hash(mesh), made)
        return made


def scene_to_collision(scene: Any) -> tuple[CollisionManager, dict[Any, int]]:
    """A manager of the nodes of a ``trimesh.Scene``, and the index of each node."""
    manager, objects = CollisionManager(), {}
    for node in scene.graph.nodes_geometry:
        transform, geometry = scene.graph[node]
        objects[node] = manager.add_object(node, scene.geometry[geometry], transform)
    return manager, objects


def _pose(transform: Any) -> Any:
    if transform is not None and np.shape(transform) != (4, 4):
        raise PoseError(f"transform must be (4, 4), not {np.shape(transform)}.")
    return transform


def _forget_id(meshes: dict[int, Any], key: int) -> Callable[[Any], Any]:
    return lambda _: meshes.pop(key, None)


def _external(_: int) -> str:
    return EXTERNAL


def _first(names: Any) -> Any:
    return names[0]


def _sorted(names: Any) -> tuple[Any, ...]:
    return tuple(sorted(names))


def _answer(value: Any, *optional: tuple[Any, bool]) -> Any:
    """Return a value alone, or a tuple with requested optional values, as trimesh does."""
    more = [one for one, wanted in optional if wanted]
    return (value, *more) if more else value
