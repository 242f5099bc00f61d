"""LinkGeometry: a mesh on a link of a robot; and the meshes of the shapes that files name."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from abut.cases import (
    OuterShape,
    outer_box,
    outer_capsule,
    outer_cone,
    outer_cylinder,
    outer_ellipsoid,
    outer_sphere,
)
from abut.cases.placed_shapes import rotations_of_quaternions
from abut.errors import FileError, OptionError, ToolError
from abut.io import read_mesh, reading
from abut.io.collada import collada_unit

FAR = 1000.0  # half the length and the depth of a box in place of a half-space

OUTER_SHAPES: dict[str, Callable[..., OuterShape]] = {  # of full lengths and radii, and a chord
    "sphere": outer_sphere,
    "cylinder": outer_cylinder,
    "capsule": outer_capsule,
    "cone": outer_cone,
}


@dataclass
class LinkMesh:
    """A mesh that parts may share.

    Attributes:
        key: Equal for equal meshes.
        source: The mesh file it was read from, if any.
        deviation: No point of it is farther from the shape that the file names, which it contains.
    """

    key: Any
    vertices: np.ndarray
    faces: np.ndarray
    source: Path | None = None
    deviation: float = 0.0


@dataclass
class LinkGeometry:
    """A mesh on a link.

    Attributes:
        name: Empty where the file has none.
        pose: (4, 4), in the frame of the link.
        ignored: Other parts that the file excludes from tests against it.
    """

    name: str
    link: int
    pose: np.ndarray
    mesh: LinkMesh
    ignored: set[int] = field(default_factory=set)


def checked_chord(chord: Any) -> float | None:
    """The argument ``chord``: None, or a positive number."""
    if chord is None:
        return None
    if not isinstance(chord, int | float | np.number) or not 0 < chord < np.inf:
        raise OptionError(f"chord must be a positive number, not {chord!r}.")
    return float(chord)


def primitive(kind: str, size: Any, chord: float | None) -> LinkMesh:
    """The polyhedron of a box or around a round shape, of full lengths and radii."""
    size = tuple(float(x) for x in size)
    if kind == "box":
        outer = outer_box((size[0], size[1], size[2]))
    elif kind == "ellipsoid":
        outer = outer_ellipsoid((size[0], size[1], size[2]), chord)
    else:
        outer = OUTER_SHAPES[kind](*size, chord)
    vertices, faces = outer.shape
    return LinkMesh((kind, *size), vertices, faces, deviation=outer.deviation)


def half_space() -> LinkMesh:
    """A box whose top is the plane z = 0, as deep as it is wide to each side."""
    shape = outer_box((2 * FAR, 2 * FAR, FAR)).shape.moved((0, 0, -FAR / 2))
    return LinkMesh(("half-space",), shape.vertices, shape.faces)


def is_half_space(mesh: Any) -> bool:
    """Whether a mesh is the box of a half-space; pictures leave it out."""
    size = mesh.bounds[1] - mesh.bounds[0]
    return mesh.face_count == 12 and size.tolist() == [2 * FAR, 2 * FAR, FAR]


def mesh_of_file(file: Path, scale: Any, robot: Path) -> LinkMesh:
    """The mesh of a file that a robot file names, in metres; errors name both files."""
    try:
        vertices, faces = read_mesh(file)[:2]
        with reading(file, "COLLADA"):
            unit = collada_unit(file)
    except FileError as error:
        raise FileError(f"{robot} names a mesh that cannot be used: {error}") from None
    scale = unit * (np.ones(3) if scale is None else np.ones(3) * scale)
    faces = np.ascontiguousarray(faces[:, ::-1] if scale.prod() < 0 else faces)
    return LinkMesh((str(file), tuple(scale)), vertices * scale, faces, file)


def name_parts(parts: list[LinkGeometry], links: list[str]) -> list[LinkGeometry]:
    """Name parts without a name by their link, with a number where it has several."""
    several = Counter(part.link for part in parts if not part.name)
    numbers: Counter[int] = Counter()
    for part in parts:
        if not part.name:
            link = links[part.link] or f"link{part.link}"
            part.name = link if several[part.link] == 1 else f"{link}/{numbers[part.link]}"
            numbers[part.link] += 1
    seen: set[str] = set()
    for part in parts:
        name, k = part.name, 1
        while part.name in seen:
            part.name, k = f"{name}#{k}", k + 1
        seen.add(part.name)
    return parts


def quaternion_pose(position: Any, quaternion: Any) -> np.ndarray:
    """(4, 4) pose of a position and a quaternion x y z w."""
    out = np.eye(4)
    out[:3, :3] = rotations_of_quaternions(np.asarray(quaternion, float)[None])[0]
    out[:3, 3] = position
    return out


def required(name: str) -> Any:
    """Import a package of the extra ``robots``."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ToolError(f"{name} is missing; pip install 'abut[robots]' brings it.") from error
