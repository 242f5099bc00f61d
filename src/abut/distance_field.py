"""DistanceField: signed distance to a mesh and the way to its closest point, on a regular grid."""

from typing import Any

import numpy as np
import warp as wp

from abut.errors import MeshError, OptionError
from abut.faces import posed_faces
from abut.field.box import Box, box_around
from abut.field.build import Progress, fill_grid
from abut.field.grid import FieldGrid, make_grid
from abut.field.mesh_queries import MeshQueries
from abut.field.sample import FieldSamples, sampled
from abut.field.slabs import positions_kernel, store_kernel
from abut.mesh import Mesh, require_meshes
from abut.options import Method, Sign, chosen
from abut.query.closest_point import closest_point
from abut.query.points import checked_points, in_unit, unit_of
from abut.query.signs import chosen_sign, signed_volume
from abut.runtime import launch

SLAB = 1 << 21  # samples at a time


class DistanceField(MeshQueries):
    """The signed distance to a mesh, sampled on a regular grid over its box and a margin.

    The field is of the mesh as it is now: after ``mesh.deform`` make a new one.

    Args:
        mesh: A mesh with at least one face.
        resolution: Samples along the longest side of the box, from 2 to 1024; None is 256.
        spacing: Distance of neighbouring samples [mesh length unit], in place of ``resolution``.
        margin: What the box leaves free around the mesh [mesh length unit]; None is a tenth of
            the mesh's longest side.
        sign: How the inside is told: ``pseudonormal`` (closed, oriented meshes only), ``winding``,
            or ``auto``, which takes the first where it is sure to be right.
        band: Distances beyond are cut off there and have no gradient, which saves time; None:
            all are exact.
        method: ``bvh``, or ``brute`` for the slow truth.
        progress: Called now and then with the share done, from 0 to 1.

    Attributes:
        grid: What kernels see, see abut.field.grid.
        sign: How the inside was told.

    Raises:
        MeshError: The mesh has no face, or a sign by pseudonormals is asked of an open mesh.
        OptionError: An option has none of the values above.

    Guarantee:
        Samples are true distances rounded to float32. Between them Approximate: within half a
        cell's diagonal, and of second order in the spacing where the distance is smooth.
    """

    grid: Any

    def __init__(
        self,
        mesh: Mesh,
        *,
        resolution: int | None = None,
        spacing: float | None = None,
        margin: float | None = None,
        sign: str = "auto",
        band: float | None = None,
        method: str = "bvh",
        progress: Progress | None = None,
    ) -> None:
        require_meshes(mesh=mesh)
        if mesh.face_count == 0:
            raise MeshError("the mesh has no faces, so nothing has a distance from it.")
        if band is not None and not band > 0:
            raise OptionError(f"band must be a distance above 0, not {band!r}.")
        self.method = chosen(Method, method, "method")
        self.device = mesh.device
        self.box = box_around(mesh.bounds, resolution, spacing, margin)
        self.band = float("inf") if band is None else float(band)
        self.sign = chosen_sign(mesh, True if sign == "auto" else sign) or Sign.WINDING
        self.grid = empty_grid(self.box, self.device)
        self._fill(mesh, progress)

    @property
    def distance(self) -> wp.array:
        """(nx, ny, nz) float32, negative inside."""
        return self.grid.distance

    @property
    def nbytes(self) -> int:
        """Device memory held."""
        return self.grid.distance.capacity + self.grid.gradient.capacity

    def sample(self, points: Any) -> FieldSamples:
        """The field at points (n, 3), linear between samples.

        Outside the box: the distance of the point closest to the nearest point of the box.

        Guarantee:
            Approximate. Within half a cell's diagonal of the true distance inside the box; not
            below it, up to that, outside.
        """
        rows, _ = checked_points(points, self.device)
        return sampled(self.grid, rows)

    def _fill(self, mesh: Mesh, progress: Progress | None) -> None:
        fast = self.sign is Sign.WINDING or chosen_sign(mesh, True) is Sign.PSEUDONORMAL
        if not fast:
            self._fill_by_normals(mesh, progress)
            return
        unit = unit_of(mesh, np.array([self.box.lower, self.box.upper]), None)
        box, grid = self.box, self.grid
        if unit != 1.0:
            mesh = in_unit(mesh, unit)
            box = Box(box.lower / unit, box.spacing / unit, box.shape)
            grid = make_grid(box.lower, box.spacing, grid.distance, grid.gradient)
        fill_grid(
            mesh,
            box,
            grid,
            band=self.band / unit,
            unit=unit,
            flipped=mesh.oriented and signed_volume(mesh) < 0,
            method=self.method,
            progress=progress,
        )

    def _fill_by_normals(self, mesh: Mesh, progress: Progress | None) -> None:
        """Where pseudonormals may differ from winding numbers: each sample by itself."""
        count = int(np.prod(self.box.shape))
        side = posed_faces(mesh.points, mesh.faces)
        for start in range(0, count, SLAB):
            size = min(SLAB, count - start)
            points = wp.empty(size, dtype=wp.vec3d, device=self.device)
            launch(positions_kernel, size, [self.grid, start, points], self.device)
            near = closest_point(mesh, points, signed=self.sign, method=self.method)
            found = [near.distance, near.point, near.face]
            args = [side, points, *found, wp.float64(self.band), start, self.grid]
            launch(store_kernel, size, args, self.device)
            if progress is not None:
                progress((start + size) / count)


def empty_grid(box: Box, device: wp.Device) -> FieldGrid:
    """A grid with room for its samples."""
    distance = wp.empty(box.shape, dtype=wp.float32, device=device)
    gradient = wp.empty(box.shape, dtype=wp.vec3s, device=device)
    return make_grid(box.lower, box.spacing, distance, gradient)
