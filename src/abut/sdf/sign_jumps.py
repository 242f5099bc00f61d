"""Where a field is torn: the sign changes, and no surface is there.

Of an open mesh, the side of a point is a matter of the winding number; it changes in the holes,
where distances are large: they jump. Bounds of what lies around a point do not hold there.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.sdf.grid import JUMP_BRICK_SIDE, FieldGrid

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STEEP = wp.constant(wp.float64(1.0001))  # cells; between neighbours of a whole field at most 1


@wp.func
def is_jump(grid: FieldGrid, a: wp.vec3i, axis: wp.int32):
    """Whether the distance jumps from a sample to the next along an axis."""
    b = a
    b[axis] = a[axis] + 1
    if b[axis] >= grid.shape[axis]:
        return False
    here = wp.float64(grid.distance[a[0], a[1], a[2]])
    there = wp.float64(grid.distance[b[0], b[1], b[2]])
    return wp.abs(there - here) > STEEP * grid.spacing


@wp.kernel
def find_jumps_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    # out
    jumps_out: wp.array3d[wp.uint8],
):
    """Which bricks of samples have a jump."""
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        bx = n / (jumps_out.shape[1] * jumps_out.shape[2])
        by = n / jumps_out.shape[2] - bx * jumps_out.shape[1]
        bz = n % jumps_out.shape[2]
        found = wp.int32(0)
        for x in range(bx * JUMP_BRICK_SIDE, wp.min((bx + 1) * JUMP_BRICK_SIDE, grid.shape[0])):
            for y in range(by * JUMP_BRICK_SIDE, wp.min((by + 1) * JUMP_BRICK_SIDE, grid.shape[1])):
                for z in range(
                    bz * JUMP_BRICK_SIDE, wp.min((bz + 1) * JUMP_BRICK_SIDE, grid.shape[2])
                ):
                    a = wp.vec3i(x, y, z)
                    if is_jump(grid, a, 0) or is_jump(grid, a, 1) or is_jump(grid, a, 2):
                        found = 1
        jumps_out[bx, by, bz] = wp.uint8(found)


def sign_jumps_of(grid: Any) -> wp.array:
    """Bricks of samples with a jump within a brick's side of them; none at all without a jump."""
    device = grid.distance.device
    shape = tuple(-(-n // int(JUMP_BRICK_SIDE)) for n in grid.distance.shape)
    jumps = wp.empty(shape, dtype=wp.uint8, device=device)
    launch(find_jumps_kernel, jumps.size, [grid, jumps], device, grain=64)
    flags = jumps.numpy()
    if not flags.any():
        return wp.empty((0, 0, 0), dtype=wp.uint8, device=device)
    for axis in range(3):
        before, after = np.roll(flags, 1, axis), np.roll(flags, -1, axis)
        np.moveaxis(before, axis, 0)[0] = 0
        np.moveaxis(after, axis, 0)[-1] = 0
        flags = flags | before | after
    return wp.array(flags, dtype=wp.uint8, device=device)
