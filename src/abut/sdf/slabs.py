"""Samples as points to ask about, and answers about points as samples: the slow way to a field."""

import warp as wp

from abut.operands.posed_mesh import PosedMesh, load_face
from abut.sdf.grid import FieldGrid, quantized, sample_position, unit_normal

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def positions_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    first: wp.int32,
    # out
    points_out: wp.array[wp.vec3d],
):
    """Positions of samples in a row, from ``first`` on."""
    plane = grid.shape[1] * grid.shape[2]
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        n = first + row
        i = n / plane
        j = (n - i * plane) / grid.shape[2]
        k = n - i * plane - j * grid.shape[2]
        points_out[row] = sample_position(grid.lower, grid.spacing, i, j, k)


@wp.kernel
def store_kernel(
    # in
    span: wp.vec3i,
    side: PosedMesh,
    points: wp.array[wp.vec3d],
    distance: wp.array[wp.float64],
    foot: wp.array2d[wp.float64],
    face: wp.array[wp.int32],
    band: wp.float64,
    first: wp.int32,
    # out
    grid_out: FieldGrid,
):
    """Write distances, held within the band, and gradients."""
    plane = grid_out.shape[1] * grid_out.shape[2]
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        n = first + row
        i = n / plane
        j = (n - i * plane) / grid_out.shape[2]
        k = n - i * plane - j * grid_out.shape[2]
        d = distance[row]
        g = wp.vec3d(wp.float64(0.0))
        if wp.abs(d) <= band and face[row] >= 0:
            if d == wp.float64(0.0):
                g = unit_normal(load_face(side, face[row], 0))
            else:
                way = points[row] - wp.vec3d(foot[row, 0], foot[row, 1], foot[row, 2])
                g = wp.normalize(way) * wp.sign(d)
        grid_out.distance[i, j, k] = wp.float32(wp.clamp(d, -band, band))
        grid_out.gradient[i, j, k] = quantized(g)
