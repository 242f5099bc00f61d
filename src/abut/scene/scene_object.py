"""SceneObject: one object of a scene; and the meshes that a scene is made of."""

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from abut.errors import OptionError, SceneError
from abut.mesh import Mesh

if TYPE_CHECKING:
    from abut.scene.scene import Scene


class SceneObject:
    """One object of a scene, as ``scene["name"]`` returns it.

    Calls that take an index or a name take it, too. It equals its index.

    Attributes:
        scene: The scene.
        index: The index of the object.
    """

    def __init__(self, scene: "Scene", index: int) -> None:
        self.scene, self.index = scene, index

    @property
    def name(self) -> str | None:
        """Its name; None without one."""
        return self.scene.name_of(self.index)

    @property
    def mesh(self) -> Mesh:
        """Its mesh, in its own frame."""
        return self.scene.mesh(self.index)

    @property
    def deviation(self) -> float:
        """Largest distance of its mesh from the round shape that it contains; 0 without one."""
        return self.mesh.deviation

    @property
    def pose(self) -> np.ndarray:
        """(4, 4), a copy. Set it to move the object."""
        return self.scene.pose_of(self.index)

    @pose.setter
    def pose(self, pose: Any) -> None:
        self.scene.move(self.index, pose)

    def __index__(self) -> int:
        """The index."""
        return self.index

    def __eq__(self, other: object) -> bool:
        """Whether both are the same object; an integer is an index."""
        if isinstance(other, SceneObject):
            return self.scene is other.scene and self.index == other.index
        return self.index == other

    def __hash__(self) -> int:
        """That of the index."""
        return hash(self.index)

    def __repr__(self) -> str:
        """Index, name and mesh."""
        name = "" if self.name is None else f", {self.name!r}"
        return f"SceneObject({self.index}{name}, {self.mesh})"


def is_device(given: Any) -> bool:
    """Whether the first argument of a scene is a device, not objects; refuses files."""
    if isinstance(given, PathLike) or (isinstance(given, str) and "." in given):
        raise OptionError(f"{given} is a file; abut.Scene.load reads it.")
    return isinstance(given, str | wp.Device)


def named_meshes(objects: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield (name or None, mesh) of a mesh, of several, or of a dict of them by name."""
    if isinstance(objects, Mapping):
        yield from objects.items()
    elif objects is not None:
        several = [objects] if _is_mesh(objects) else objects
        try:
            yield from ((None, mesh) for mesh in several)
        except TypeError:
            kind = type(objects).__name__
            raise SceneError(f"a scene is made of meshes or a dict of them, not {kind}.") from None


def device_of(objects: list[tuple[str | None, Any]]) -> Any:
    """The device of the first abut.Mesh among objects; None where there is none."""
    return next((mesh.device for _, mesh in objects if isinstance(mesh, Mesh)), None)


def to_mesh(mesh: Any, device: wp.Device) -> Any:
    """An abut.Mesh of anything with vertices and faces, such as a ``trimesh.Trimesh``."""
    if isinstance(mesh, Mesh) or not _is_mesh(mesh):
        return mesh
    return Mesh.from_trimesh(mesh, device)


def _is_mesh(given: Any) -> bool:
    return hasattr(given, "vertices") and hasattr(given, "faces")
