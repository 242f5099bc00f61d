"""Inside or outside, sample by sample: the slow truth beside rows and bricks."""

import warp as wp

from abut.point.surface import Surface, is_inside
from abut.sdf.grid import FieldGrid, sample_position

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.kernel
def sample_signs_kernel(
    # in
    span: wp.vec3i,
    mesh: Surface,
    closure: Surface,
    # out
    grid_out: FieldGrid,
):
    """Decide every sample by itself: 1 inside, -1 outside in its note."""
    plane = grid_out.shape[1] * grid_out.shape[2]
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        i = n / plane
        j = (n - i * plane) / grid_out.shape[2]
        k = n - i * plane - j * grid_out.shape[2]
        p = sample_position(grid_out.lower, grid_out.spacing, i, j, k)
        side = wp.where(is_inside(p, mesh, closure), wp.int16(1), wp.int16(-1))
        grid_out.gradient[i, j, k] = wp.vec3s(wp.int16(0), side, wp.int16(0))
