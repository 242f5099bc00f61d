"""Fill a grid: ray crossings of rows, nearest faces of bricks, then distances and gradients."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.triangle_frames import TRIANGLE_FRAME_ERROR, triangle_frames_of
from abut.bvh.wide import wide_nodes_of
from abut.core.lanes import WARP_SIZE
from abut.core.launch import launch
from abut.core.timing import stage
from abut.errors import OptionError
from abut.geometry.topology import is_balanced
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Bound, Method, Sign
from abut.point.surface import closed_surfaces, surfaces_of
from abut.query.points import in_unit, unit_of
from abut.query.signs import chosen_sign, signed_volume
from abut.sdf.brick import BRICK_SIDE
from abut.sdf.brick_winding import brick_windings, sample_signs_kernel
from abut.sdf.finish import FinishOptions, Progress, fill_by_pseudonormals, finish_kernel
from abut.sdf.grid import Box, FieldGrid, make_grid
from abut.sdf.nearest_faces import BRICKS_PER_THREAD, Bricks, search_kernel_for
from abut.sdf.ray_rows import count_crossings

SAMPLES_PER_EFFORT = 8  # searches from samples that gain as much as one of a pair
STEPS_PER_SAMPLE = 64  # of a search by hierarchy, about
PROGRESS_CALLS = 64
FARTHEST_SQUARED = 3.0e38


def sign_of(mesh: Mesh, sign: str) -> Sign:
    """Return the sign rule of a mesh; ``auto`` chooses by the mesh."""
    if sign not in ("auto", *Sign):
        raise OptionError(f"sign must be one of 'auto', 'pseudonormal', 'winding', not {sign!r}.")
    return chosen_sign(mesh, True if sign == "auto" else sign, "sign") or Sign.WINDING


def is_certain(mesh: Mesh, sign: Sign) -> bool:
    """Return whether the sign of the distance changes at the surface alone."""
    if sign is Sign.PSEUDONORMAL:
        return chosen_sign(mesh, True) is Sign.PSEUDONORMAL
    return mesh.oriented  # closed: winding numbers are whole


def is_closed_now(mesh: Mesh) -> bool:
    """Return whether a mesh is closed and oriented; at little cost when that follows from faces."""
    if "balanced" not in mesh.cache:
        mesh.cache["balanced"] = is_balanced(mesh.faces.numpy().reshape(-1, 3), mesh.vertex_count)
    return mesh.cache["balanced"] or mesh.oriented


def fill_field(
    mesh: Mesh,
    box: Box,
    grid: FieldGrid,
    sign: Sign,
    band: float,
    method: Method,
    progress: Progress | None,
    flipped: bool | None = None,
    is_closed: bool = False,
) -> None:
    """Fill a grid with distances, clamped at ``band``, and gradients.

    Where pseudonormals and winding numbers are sure to agree, ray crossings decide: they are
    faster.

    Args:
        mesh, box, grid, sign, band, method, progress: As for DistanceField.
        flipped: Whether normals of a closed mesh point inwards; None: found out here.
        is_closed: The mesh is known to be closed and oriented; its topology is not computed.
    """
    if sign is Sign.PSEUDONORMAL and chosen_sign(mesh, True) is not Sign.PSEUDONORMAL:
        fill_by_pseudonormals(mesh, grid, band, method, progress)
        return
    end = FinishOptions()
    end.unit = unit = unit_of(mesh, np.array([box.lower, box.upper]), None)  # a power of two
    end.band = band = band / unit
    if unit != 1.0:
        mesh = in_unit(mesh, unit)
        box = Box(box.lower / unit, box.spacing / unit, box.shape)
        grid = make_grid(box, grid.distance, grid.gradient)
    if flipped is None:
        flipped = mesh.oriented and signed_volume(mesh) < 0
    end.outwards = -1.0 if flipped else 1.0
    device, brute = mesh.device, method is Method.BRUTE
    surfaces = closed_surfaces(mesh) if is_closed else surfaces_of(mesh)
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
    frames, wide = triangle_frames_of(mesh, tree.origin), wide_nodes_of(mesh, tree)
    kernel = search_kernel_for(device.is_cuda, brute)
    args = [bricks, wide, frames, tree.obbs, tree.split_slots, faces]
    runs = -(-int(np.prod(list(bricks.counts))) // BRICKS_PER_THREAD)
    with stage("search", device):
        if progress is None:
            samples = BRICKS_PER_THREAD * int(BRICK_SIDE) ** 3
            steps = samples * (mesh.face_count if brute else STEPS_PER_SAMPLE)
            launch(kernel, runs * lanes, args, device, grain=4, steps=steps)
            return
        for part in range(PROGRESS_CALLS):
            first, stop = (runs * p // PROGRESS_CALLS for p in (part, part + 1))
            launch(kernel, (stop - first) * lanes, args, device, grain=4, start=first * lanes)
            wp.synchronize_device(device)
            progress(stop / runs)


def _bricks(mesh: Mesh, box: Box, origin: np.ndarray, band: float) -> Any:
    bricks = Bricks()
    bricks.corner = wp.vec3d(*(box.lower - origin))
    bricks.spacing = box.spacing
    bricks.shape = wp.vec3i(*box.shape)
    bricks.counts = wp.vec3i(*(-(-n // BRICK_SIDE) for n in box.shape))
    corners = np.concatenate([mesh.bounds, [box.lower, box.upper]]) - origin
    error = TRIANGLE_FRAME_ERROR * float(np.abs(corners).max())
    bricks.error = error
    bricks.start = min((band + error) ** 2 * (1.0 + 2.0**-18), FARTHEST_SQUARED)
    return bricks
