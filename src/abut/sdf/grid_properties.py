"""Properties of a filled grid: centre of mass, margin, sign jumps and depth images."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.sdf.grid import JUMP_BRICK_SIDE, FieldGrid, sample_indices
from abut.sdf.orthographic_raster import from_raster, to_raster

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NONE = wp.constant(wp.int32(1 << 30))
STEEP = wp.constant(wp.float64(1.0001))  # cells; without a jump neighbours differ by at most 1


@wp.kernel
def inside_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    # out
    moments_out: wp.array[wp.vec4d],
):
    """Integrate (volume, first moments) over a column of samples along z, in cells."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        x = i / grid.shape[1]
        y = i % grid.shape[1]
        volume = wp.float64(0.0)
        moment = wp.float64(0.0)
        for z in range(grid.shape[2]):
            depth = -wp.float64(grid.distance[x, y, z]) / grid.spacing
            share = wp.clamp(wp.float64(0.5) + depth, wp.float64(0.0), wp.float64(1.0))
            volume += share
            moment += share * wp.float64(z)
        moments_out[i] = wp.vec4d(volume, volume * wp.float64(x), volume * wp.float64(y), moment)


def centre_of_inside(grid: Any) -> np.ndarray:
    """Return the centre of mass (3,); the middle of the box where nothing is inside."""
    device = grid.distance.device
    shape = np.array(grid.distance.shape)
    moments = wp.empty(int(shape[0] * shape[1]), dtype=wp.vec4d, device=device)
    launch(inside_kernel, moments.shape[0], [grid, moments], device, grain=256)
    total = moments.numpy().sum(axis=0)
    middle = total[1:] / total[0] if total[0] > 0 else (shape - 1) / 2
    return np.array(grid.lower) + grid.spacing * middle


def margin_of(grid: Any) -> float:
    """Return a lower bound of the distance on the sides of the box, at least 0."""
    distance = grid.distance
    ends = [n - 1 for n in distance.shape]
    sides = [distance[k] for k in (0, ends[0])]
    sides += [distance[:, k] for k in (0, ends[1])] + [distance[:, :, k] for k in (0, ends[2])]
    least = min(float(side.contiguous().numpy().min()) for side in sides)
    return max(0.0, least - grid.spacing)


@wp.func
def is_jump(grid: FieldGrid, a: wp.vec3i, axis: wp.int32):
    """Return whether the distance jumps between a sample and the next along an axis.

    The sign of an open mesh comes from its winding number, which changes in holes, away from the
    surface. Bounds on the distance around a point do not hold across such a jump.
    """
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
    """Mark the bricks of samples that have a jump."""
    shape = wp.vec3i(jumps_out.shape[0], jumps_out.shape[1], jumps_out.shape[2])
    side = wp.vec3i(JUMP_BRICK_SIDE, JUMP_BRICK_SIDE, JUMP_BRICK_SIDE)
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        b = sample_indices(shape, n)
        low = JUMP_BRICK_SIDE * b
        high = wp.min(low + side, grid.shape)
        found = wp.int32(0)
        for x in range(low[0], high[0]):
            for y in range(low[1], high[1]):
                for z in range(low[2], high[2]):
                    a = wp.vec3i(x, y, z)
                    if is_jump(grid, a, 0) or is_jump(grid, a, 1) or is_jump(grid, a, 2):
                        found = 1
        jumps_out[b[0], b[1], b[2]] = wp.uint8(found)


def sign_jumps_of(grid: Any) -> wp.array:
    """Return marks of the bricks within a brick's side of a sign jump; empty without jumps."""
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


@wp.struct
class DepthImages:
    """Depth images of the object along each axis (Morvan et al. 2008, section 4.1).

    A pixel holds the first and the last cell of its column that touches a negative sample; a
    fragment at another depth is not inside. The first exceeds the last where there is none.
    """

    x: wp.array2d[wp.vec2i]  # over (y, z)
    y: wp.array2d[wp.vec2i]  # over (z, x)
    z: wp.array2d[wp.vec2i]  # over (x, y)


@wp.kernel
def depth_image_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    axis: wp.int32,
    # out
    image_out: wp.array2d[wp.vec2i],
):
    """Make the image along an axis; a pixel is a column of cells."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        u = i / image_out.shape[1]
        v = i % image_out.shape[1]
        first = wp.int32(NONE)
        last = wp.int32(-1)
        for depth in range(grid.shape[axis]):
            for corner in range(4):
                s = from_raster(wp.vec3i(depth, u + corner / 2, v + corner % 2), axis)
                if grid.distance[s[0], s[1], s[2]] < wp.float32(0.0):
                    first = wp.min(first, depth - 1)
                    last = depth
        image_out[u, v] = wp.vec2i(first, last)


@wp.func
def is_within_column(image: wp.array2d[wp.vec2i], at: wp.vec3f):
    """Return whether a point (depth, u, v) in cells lies between the depths of its column."""
    i = wp.min(wp.int32(at[1]), image.shape[0] - 1)
    j = wp.min(wp.int32(at[2]), image.shape[1] - 1)
    ends = image[i, j]
    return at[0] >= wp.float32(ends[0]) and at[0] <= wp.float32(ends[1] + 1)


@wp.func
def may_be_inside(columns: DepthImages, axis: wp.int32, at: wp.vec3f):
    """Return False where a point in cells is certainly outside the object, seen along an axis."""
    if axis == 1:
        return is_within_column(columns.y, to_raster(at, 1))
    if axis == 2:
        return is_within_column(columns.z, to_raster(at, 2))
    return is_within_column(columns.x, at)


def depth_images_of(grid: Any, out: Any = None) -> Any:
    """Return the depth images of a field; in the arrays of ``out`` where there are some."""
    fresh = out is None
    out = DepthImages() if fresh else out
    device = grid.distance.device
    nx, ny, nz = grid.distance.shape
    for axis, shape in enumerate(((ny, nz), (nz, nx), (nx, ny))):
        if fresh:
            image = wp.empty((shape[0] - 1, shape[1] - 1), dtype=wp.vec2i, device=device)
            setattr(out, "xyz"[axis], image)
        image = getattr(out, "xyz"[axis])
        launch(depth_image_kernel, image.size, [grid, axis, image], device, grain=256)
    return out
