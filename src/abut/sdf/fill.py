"""Which way a distance field is filled: by bricks and rows, or sample by sample."""

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.errors import OptionError
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Method, Sign
from abut.query.closest_point import closest_point
from abut.query.points import in_unit, unit_of
from abut.query.signs import chosen_sign, signed_volume
from abut.sdf.box import Box
from abut.sdf.build import Progress, fill_grid
from abut.sdf.grid import FieldGrid, make_grid
from abut.sdf.slabs import positions_kernel, store_kernel

SLAB = 1 << 21  # samples at a time


def sign_of(mesh: Mesh, sign: str) -> Sign:
    """How the inside is told; ``auto``: by the mesh."""
    if sign not in ("auto", *Sign):
        raise OptionError(f"sign must be one of 'auto', 'pseudonormal', 'winding', not {sign!r}.")
    return chosen_sign(mesh, True if sign == "auto" else sign, "sign") or Sign.WINDING


def fill_field(
    mesh: Mesh,
    box: Box,
    grid: FieldGrid,
    sign: Sign,
    band: float,
    method: Method,
    progress: Progress | None,
) -> None:
    """Fill a grid with distances and gradients.

    Where pseudonormals are sure to tell what winding numbers tell, rays tell it faster.
    """
    if sign is Sign.PSEUDONORMAL and chosen_sign(mesh, True) is not Sign.PSEUDONORMAL:
        _fill_by_normals(mesh, grid, band, method, progress)
        return
    unit = unit_of(mesh, np.array([box.lower, box.upper]), None)
    if unit != 1.0:
        mesh = in_unit(mesh, unit)
        box = Box(box.lower / unit, box.spacing / unit, box.shape)
        grid = make_grid(box.lower, box.spacing, grid.distance, grid.gradient)
    fill_grid(
        mesh,
        box,
        grid,
        band=band / unit,
        unit=unit,
        flipped=mesh.oriented and signed_volume(mesh) < 0,
        method=method,
        progress=progress,
    )


def _fill_by_normals(
    mesh: Mesh, grid: FieldGrid, band: float, method: Method, progress: Progress | None
) -> None:
    """Each sample by itself: nested, crossing and flipped meshes as their normals see them."""
    device = mesh.device
    count = grid.distance.size
    side = make_posed_mesh(mesh.points, mesh.faces)
    for start in range(0, count, SLAB):
        size = min(SLAB, count - start)
        points = wp.empty(size, dtype=wp.vec3d, device=device)
        launch(positions_kernel, size, [grid, start, points], device)
        near = closest_point(mesh, points, signed=Sign.PSEUDONORMAL, method=method)
        found = [near.distance, near.point, near.face]
        args = [side, points, *found, wp.float64(band), start, grid]
        launch(store_kernel, size, args, device)
        if progress is not None:
            progress((start + size) / count)
