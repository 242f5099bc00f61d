"""Surfaces of parts: the boundary of a solid where a mesh is closed, else the mesh itself."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.coordination.parts.part_table import PartTable
from abut.core.device import resolve_device
from abut.errors import MeshError
from abut.mesh import Mesh
from abut.query.solids.closed_surface import closed_surface_of
from abut.query.solids.relation import intersects_itself


@dataclass(frozen=True)
class PartSurface:
    """The surface of a mesh.

    Attributes:
        mesh: Clean faces with outward normals if the mesh is closed, else the mesh.
        closed: The mesh encloses a solid.
        size: Diagonal of its box [m].
        reason: Why it encloses none; empty if it does.
    """

    mesh: Mesh
    closed: bool
    size: float
    reason: str = ""

    @cached_property
    def meets_itself(self) -> bool:
        """Faces meet beyond their common corners."""
        return intersects_itself(self.mesh)

    @cached_property
    def component_count(self) -> int:
        """Connected components of the surface."""
        return len(self.mesh.topology.anchors)


def surface_of(mesh: Mesh) -> PartSurface:
    """The surface of a mesh, cached for its shape."""
    return mesh.per_shape("part_surface", lambda: _surface(mesh))


def _surface(mesh: Mesh) -> PartSurface:
    if mesh.watertight:
        try:
            solid = closed_surface_of(mesh, "the mesh")
            return PartSurface(solid.mesh, True, solid.size)
        except MeshError as error:
            reason = str(error).rstrip(".")
    else:
        reason = "the mesh is open"
    size = float(np.linalg.norm(mesh.bounds[1] - mesh.bounds[0]))
    return PartSurface(mesh, False, size, reason)


class PartSurfaces:
    """Surfaces of the parts of a table on one device, made on first access."""

    def __init__(self, parts: PartTable, device: Any = None) -> None:
        self.parts, self.device = parts, resolve_device(device)

    def __getitem__(self, row: int) -> PartSurface:
        """The surface of a part, in the frame of its mesh."""
        return surface_of(self.parts.mesh_of(row, self.device))

    def closed(self, rows: np.ndarray) -> np.ndarray:
        """Whether parts are solids, in the shape of ``rows``."""
        known = {row: self[row].closed for row in np.unique(rows).tolist()}
        flat = [known[row] for row in rows.ravel().tolist()]
        return np.array(flat, bool).reshape(rows.shape)

    def pose(self, row: int) -> np.ndarray:
        """(1, 4, 4) pose of a part."""
        return self.parts.poses[row : row + 1]

    def on_device(self, rows: np.ndarray) -> wp.array:
        """Rows of int32 on the device."""
        return wp.array(rows, dtype=wp.int32, device=self.device, ndim=rows.ndim)
