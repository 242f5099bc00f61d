"""Fill a grid: crossings of rows, nearest faces of bricks, then distances and gradients."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from abut.faces import posed_faces
from abut.field.box import Box
from abut.field.brick import DEEP, WIDE
from abut.field.finish import Ending, finish_kernel
from abut.field.grid import FieldGrid
from abut.field.plates import PLATE_ERROR, plates_of
from abut.field.rows import rows_kernel
from abut.field.search import Hunt, search_all_kernel, search_kernel
from abut.field.winding import BRICK, winding_bricks_kernel
from abut.hierarchy.owner import hierarchy_of
from abut.hierarchy.wide import wide_nodes_of
from abut.lanes import WARP
from abut.mesh import Mesh
from abut.options import Method
from abut.point.surface import surfaces_of
from abut.runtime import launch, stage

SAMPLES_PER_EFFORT = 256  # so many searches from samples cost as much as one for a pair
PARTS = 64  # of a search that tells how far it is
NOTHING_NEAR = 3.0e38

Progress = Callable[[float], Any]


def fill_grid(
    mesh: Mesh,
    box: Box,
    grid: FieldGrid,
    *,
    band: float,
    unit: float,
    flipped: bool,
    method: Method,
    progress: Progress | None,
) -> None:
    """Distances and gradients of all samples of a grid.

    Args:
        mesh, box, grid: All in lengths of ``unit``; the distances written are not.
        band: Distances are cut off there.
        unit: A power of two.
        flipped: The normals of a closed mesh point inwards.
        method: How nearest faces are found.
        progress: Called with the share done.
    """
    device = mesh.device
    brute = method is Method.BRUTE
    surfaces = surfaces_of(mesh)
    with stage("rows", device):
        rows = box.shape[1] * box.shape[2]
        launch(rows_kernel, rows, [*surfaces, grid], device, grain=64)
    _find_faces(mesh, box, grid.distance, band, brute, progress)
    end = Ending()
    end.faces = posed_faces(mesh.points, mesh.faces)
    end.mesh, end.closure = surfaces
    end.each = brute
    end.outwards = -1.0 if flipped else 1.0
    end.band, end.unit = band, unit
    summed = next((s for s in surfaces if s.dipoles is not None and s.dipoles.shape[0]), None)
    if summed is not None and not brute:
        with stage("winding", device):
            end.bricks = _winding_bricks(box, grid, summed, device)
    with stage("finish", device):
        launch(finish_kernel, int(np.prod(box.shape)), [end, grid], device, grain=1024)


def _find_faces(
    mesh: Mesh, box: Box, faces: wp.array, band: float, brute: bool, progress: Progress | None
) -> None:
    """Write the bits of the nearest faces."""
    device = mesh.device
    lanes, deep = (WARP, WARP // WIDE**2) if device.is_cuda else (1, DEEP)
    hunt = _hunt(mesh, box, band, deep)
    count = lanes * int(np.prod(list(hunt.bricks)))
    kernel = search_all_kernel if brute else search_kernel
    with stage("search", device):
        if progress is None:
            launch(kernel, count, [hunt, faces], device, grain=16)
            return
        edges = [count // lanes * n // PARTS * lanes for n in range(PARTS + 1)]
        for first, stop in pairwise(edges):
            launch(kernel, stop - first, [hunt, faces], device, grain=16, start=first)
            wp.synchronize_device(device)
            progress(stop / count)


def _hunt(mesh: Mesh, box: Box, band: float, deep: int) -> Any:
    tree = hierarchy_of(mesh, effort=int(np.prod(box.shape)) // SAMPLES_PER_EFFORT)
    hunt = Hunt()
    hunt.tree = tree.view()
    hunt.wide = wide_nodes_of(mesh, tree)
    hunt.plates = plates_of(mesh, wp.vec3d(*tree.origin))
    hunt.corner = wp.vec3d(*(box.lower - tree.origin))
    hunt.spacing = box.spacing
    hunt.shape = wp.vec3i(*box.shape)
    sides = (deep, WIDE, WIDE)
    hunt.bricks = wp.vec3i(*(-(-n // side) for n, side in zip(box.shape, sides, strict=True)))
    hunt.deep = deep
    corners = np.concatenate([mesh.bounds, [box.lower, box.upper]]) - tree.origin
    error = PLATE_ERROR * 2.0 * float(np.abs(corners).max())
    hunt.error = error
    hunt.start = min((band + error) ** 2 * (1.0 + 2.0**-18), NOTHING_NEAR)
    return hunt


def _winding_bricks(box: Box, grid: FieldGrid, surface: Any, device: wp.Device) -> wp.array:
    shape = tuple(-(-n // BRICK) for n in box.shape)
    numbers = wp.empty(shape, dtype=wp.vec2f, device=device)
    launch(winding_bricks_kernel, numbers.size, [grid, surface, numbers], device, grain=64)
    return numbers
