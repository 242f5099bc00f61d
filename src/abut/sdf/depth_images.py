"""Depth images of an object along each axis, made from its field.

Morvan et al. 2008, section 4.1. A pixel of an image holds the first and the last cell of its column
that touches a negative sample; a fragment at another depth is not inside.
"""

from typing import Any

import warp as wp

from abut.core.launch import launch
from abut.sdf.grid import FieldGrid

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NONE = wp.constant(wp.int32(1 << 30))


@wp.struct
class DepthImages:
    """(first, last) cell along x, y and z; empty where first exceeds last."""

    x: wp.array2d[wp.vec2i]  # over (y, z)
    y: wp.array2d[wp.vec2i]  # over (z, x)
    z: wp.array2d[wp.vec2i]  # over (x, y)


@wp.func
def column_sample(axis: wp.int32, depth: wp.int32, u: wp.int32, v: wp.int32):
    """Return the sample at pixel (u, v) of the image along an axis, at a depth."""
    if axis == 0:
        return wp.vec3i(depth, u, v)
    if axis == 1:
        return wp.vec3i(v, depth, u)
    return wp.vec3i(u, v, depth)


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
                s = column_sample(axis, depth, u + corner / 2, v + corner % 2)
                if grid.distance[s[0], s[1], s[2]] < wp.float32(0.0):
                    first = wp.min(first, depth - 1)
                    last = depth
        image_out[u, v] = wp.vec2i(first, last)


@wp.func
def is_within_column(image: wp.array2d[wp.vec2i], u: wp.float32, v: wp.float32, depth: wp.float32):
    """Return whether a point in cells lies between the depths of its column."""
    i = wp.min(wp.int32(u), image.shape[0] - 1)
    j = wp.min(wp.int32(v), image.shape[1] - 1)
    ends = image[i, j]
    return depth >= wp.float32(ends[0]) and depth <= wp.float32(ends[1] + 1)


@wp.func
def may_be_inside(columns: DepthImages, axis: wp.int32, at: wp.vec3f):
    """Return False where a point in cells is certainly outside the object, seen along an axis."""
    if axis == 1:
        return is_within_column(columns.y, at[2], at[0], at[1])
    if axis == 2:
        return is_within_column(columns.z, at[0], at[1], at[2])
    return is_within_column(columns.x, at[1], at[2], at[0])


def depth_images_of(grid: Any) -> Any:
    """Return the depth images of a field."""
    out = DepthImages()
    device = grid.distance.device
    nx, ny, nz = grid.distance.shape
    for axis, name, shape in ((0, "x", (ny, nz)), (1, "y", (nz, nx)), (2, "z", (nx, ny))):
        size = shape[0] - 1, shape[1] - 1
        image = wp.empty(size, dtype=wp.vec2i, device=device)
        launch(depth_image_kernel, image.size, [grid, axis, image], device, grain=256)
        setattr(out, name, image)
    return out
