"""Samples of a field one by one: the reference for signs, and fields by pseudonormals."""

from collections.abc import Callable
from typing import Any

import warp as wp

from abut.core.launch import launch
from abut.mesh import Mesh
from abut.operands.posed_mesh import PosedMesh, load_face, make_posed_mesh
from abut.options import Method, Sign
from abut.point.surface import Surface, is_inside
from abut.query.closest_point import closest_point
from abut.sdf.grid import FieldGrid, quantized, sample_indices, sample_position, unit_normal

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

CHUNK = 1 << 21  # samples at a time


@wp.kernel
def sample_signs_kernel(
    # in
    span: wp.vec3i,
    mesh: Surface,
    closure: Surface,
    # out
    grid_out: FieldGrid,
):
    """Decide every sample by itself: 1 inside, -1 outside in the second gradient component."""
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        s = sample_indices(grid_out.shape, n)
        p = sample_position(grid_out.lower, grid_out.spacing, s[0], s[1], s[2])
        sign = wp.where(is_inside(p, mesh, closure), wp.int16(1), wp.int16(-1))
        grid_out.gradient[s[0], s[1], s[2]] = wp.vec3s(wp.int16(0), sign, wp.int16(0))


@wp.kernel
def positions_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    first: wp.int32,
    # out
    points_out: wp.array[wp.vec3d],
):
    """Write the positions of samples from ``first`` on."""
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        s = sample_indices(grid.shape, first + row)
        points_out[row] = sample_position(grid.lower, grid.spacing, s[0], s[1], s[2])


@wp.kernel
def store_samples_kernel(
    # in
    span: wp.vec3i,
    mesh: PosedMesh,
    points: wp.array[wp.vec3d],
    distance: wp.array[wp.float64],
    foot: wp.array2d[wp.float64],
    face: wp.array[wp.int32],
    band: wp.float64,
    first: wp.int32,
    # out
    grid_out: FieldGrid,
):
    """Write distances, clamped to the band, and gradients of samples from ``first`` on."""
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        s = sample_indices(grid_out.shape, first + row)
        d = distance[row]
        g = wp.vec3d(wp.float64(0.0))
        if wp.abs(d) <= band and face[row] >= 0:
            if d == wp.float64(0.0):
                g = unit_normal(load_face(mesh, face[row], 0))
            else:
                way = points[row] - wp.vec3d(foot[row, 0], foot[row, 1], foot[row, 2])
                g = wp.normalize(way) * wp.sign(d)
        grid_out.distance[s[0], s[1], s[2]] = wp.float32(wp.clamp(d, -band, band))
        grid_out.gradient[s[0], s[1], s[2]] = quantized(g)


def fill_by_pseudonormals(
    mesh: Mesh,
    grid: FieldGrid,
    band: float,
    method: Method,
    progress: Callable[[float], Any] | None,
) -> None:
    """Fill a grid by ``closest_point`` with signs by pseudonormals.

    Nested, crossing and flipped meshes get the signs that their normals give.
    """
    device, count = mesh.device, grid.distance.size
    posed = make_posed_mesh(mesh.points, mesh.faces)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        points = wp.empty(size, dtype=wp.vec3d, device=device)
        launch(positions_kernel, size, [grid, start, points], device)
        near = closest_point(mesh, points, signed=Sign.PSEUDONORMAL, method=method)
        found = [near.distance, near.point, near.face]
        args = [posed, points, *found, wp.float64(band), start, grid]
        launch(store_samples_kernel, size, args, device)
        if progress is not None:
            progress((start + size) / count)
