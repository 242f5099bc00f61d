"""Models: the named parts of a building or a machine, as their readers return them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class PartMesh:
    """A triangle mesh that parts share.

    Attributes:
        vertices: (n, 3) float64 [m].
        faces: (m, 3) int32.
    """

    vertices: np.ndarray
    faces: np.ndarray


@dataclass(frozen=True, eq=False)
class ModelPart:
    """A physical object of a model.

    Attributes:
        id: Unique in its model and equal in the next export: an IFC GlobalId or a path of names.
        name: Name for people.
        type: Class in the file, such as "IfcWall"; empty if the format has none.
        layer: Storey or layer; empty if unknown.
        assembly: Names of the enclosing assemblies, outermost first, joined by "/".
        properties: Properties by name, "Set.Name" for those of sets.
        mesh: Index of the mesh.
        pose: (4, 4) float64, rigid: the frame of the mesh in that of the model [m].
    """

    id: str
    name: str
    type: str
    layer: str
    assembly: str
    properties: dict[str, Any]
    mesh: int
    pose: np.ndarray


class Skipped(NamedTuple):
    """An object of a file that has no mesh or an incomplete one, and the reason."""

    id: str
    name: str
    type: str
    reason: str


class Link(NamedTuple):
    """Two parts that belong together.

    Attributes:
        kind: "fills" (a door in its wall), "connects" (ports), "voids" or "hosts".
    """

    a: str
    b: str
    kind: str


@dataclass(frozen=True, eq=False)
class PartModel:
    """The parts of one file.

    Attributes:
        path: The file.
        unit: Length unit of the file [m]; None if the format does not state one.
        deviation: Largest distance of the meshes from the true surfaces [m]; 0 for mesh formats.
        skipped: Objects without a mesh or with an incomplete one; nothing is dropped silently.
        links: Pairs of parts that belong together.
    """

    path: Path
    unit: float | None
    deviation: float
    meshes: list[PartMesh]
    parts: list[ModelPart]
    skipped: list[Skipped] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
