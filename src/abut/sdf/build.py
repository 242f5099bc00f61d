"""Fill a grid: crossings of rows, nearest faces of bricks, then distances and gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.triangle_frames import TRIANGLE_FRAME_ERROR, triangle_frames_of
from abut.bvh.wide import wide_nodes_of
from abut.core.lanes import WARP_SIZE
from abut.core.launch import launch
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Bound, Method
from abut.point.surface import surfaces_of
from abut.sdf.box import Box
from abut.sdf.brick import WIDE
from abut.sdf.brick_winding import brick_windings
from abut.sdf.finish import FinishOptions, finish_kernel
from abut.sdf.grid import FieldGrid
from abut.sdf.nearest_faces import (
    BRICKS_PER_THREAD,
    Bricks,
    brute_search_kernel_for,
    tree_search_kernel_for,
)
from abut.sdf.ray_rows import count_crossings
from abut.sdf.sample_signs import sample_signs_kernel

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
        count_crossings(grid, surfaces, device)
    numbers = wp.empty((0, 0, 0), dtype=wp.float32, device=device)
    with stage("sides", device):
        summed = next((s for s in surfaces if s.dipoles is not None and s.dipoles.size), None)
        if brute:
            launch(sample_signs_kernel, grid.distance.size, [*surfaces, grid], device, grain=64)
        elif summed is not None:
            numbers = brick_windings(grid, summed, device)
    _find_faces(mesh, box, grid.distance, band, brute, progress)
    end = FinishOptions()
    end.outwards = -1.0 if flipped else 1.0
    end.band, end.unit = band, unit
    with stage("finish", device):
        args = [make_posed_mesh(mesh.points, mesh.faces), numbers, end, grid]
        launch(finish_kernel, grid.distance.size, args, device)


def _find_faces(
    mesh: Mesh, box: Box, faces: wp.array, band: float, brute: bool, progress: Progress | None
) -> None:
    """Write the bits of the nearest faces."""
    device = mesh.device
    lanes = WARP_SIZE if device.is_cuda else 1
    bvh_of(mesh, effort=faces.size // SAMPLES_PER_EFFORT)
    tree = bvh_of(mesh, Bound.OBB)
    bricks = _bricks(mesh, box, tree.origin, band)
    triangle_frames = triangle_frames_of(mesh, tree.origin)
    kernel, args = brute_search_kernel_for(device.is_cuda), [bricks, triangle_frames, faces]
    if not brute:
        wide = wide_nodes_of(mesh, tree)
        kernel = tree_search_kernel_for(device.is_cuda)
        args = [bricks, wide, triangle_frames, tree.obbs, tree.split_slots, faces]
    runs = -(-int(np.prod(list(bricks.counts))) // BRICKS_PER_THREAD)
    with stage("search", device):
        if progress is None:
            launch(kernel, runs * lanes, args, device, grain=4)
            return
        for part in range(PARTS):
            first, stop = runs * part // PARTS, runs * (part + 1) // PARTS
            launch(kernel, (stop - first) * lanes, args, device, grain=4, start=first * lanes)
            wp.synchronize_device(device)
            progress(stop / runs)


def _bricks(mesh: Mesh, box: Box, origin: np.ndarray, band: float) -> Any:
    bricks = Bricks()
    bricks.corner = wp.vec3d(*(box.lower - origin))
    bricks.spacing = box.spacing
    bricks.shape = wp.vec3i(*box.shape)
    bricks.counts = wp.vec3i(*(-(-n // WIDE) for n in box.shape))
    corners = np.concatenate([mesh.bounds, [box.lower, box.upper]]) - origin
    error = TRIANGLE_FRAME_ERROR * float(np.abs(corners).max())
    bricks.error = error
    bricks.start = min((band + error) ** 2 * (1.0 + 2.0**-18), NOTHING_NEAR)
    return bricks
