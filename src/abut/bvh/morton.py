"""Sort faces and points along the Morton curve, by 30-bit codes."""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bounds.float32 import to_vec4f
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CELLS = 1024.0  # per axis: 10 bits


@wp.func
def spread_bits(x: wp.int32):
    """Put two zero bits between the ten low bits of x."""
    x = (x | (x << 16)) & 0x030000FF
    x = (x | (x << 8)) & 0x0300F00F
    x = (x | (x << 4)) & 0x030C30C3
    return (x | (x << 2)) & 0x09249249


@wp.func
def grid_cell(x: wp.float64):
    """Return the cell of a scaled coordinate, clamped to the grid."""
    return wp.int32(wp.clamp(x, wp.float64(0.0), wp.float64(1023.0)))


@wp.func
def morton_code(at: wp.vec3d):
    """Return the code of a scaled point."""
    x = spread_bits(grid_cell(at[0]))
    y = spread_bits(grid_cell(at[1]))
    z = spread_bits(grid_cell(at[2]))
    return (x << 2) | (y << 1) | z


@wp.kernel
def morton_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    origin: wp.vec3d,
    lower: wp.vec3d,
    scale: wp.float64,
    # out
    boxes_out: wp.array[wp.vec4f],
    codes_out: wp.array[wp.int32],
    order_out: wp.array[wp.int32],
):
    """Fit the box of each face, and compute the code of its centroid in a cubic grid."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        face = faces[i]
        p0 = points[face[0]]
        p1 = points[face[1]]
        p2 = points[face[2]]
        low, high = fit_aabb(p0, p1, p2, origin)
        boxes_out[2 * i] = to_vec4f(low)
        boxes_out[2 * i + 1] = to_vec4f(high)
        codes_out[i] = morton_code(((p0 + p1 + p2) / wp.float64(3.0) - lower) * scale)
        order_out[i] = i


@wp.kernel
def morton_points_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    lower: wp.vec3d,
    scale: wp.float64,
    # out
    codes_out: wp.array[wp.int32],
    order_out: wp.array[wp.int32],
):
    """Compute the code of each point in a cubic grid."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        codes_out[i] = morton_code((points[i] - lower) * scale)
        order_out[i] = i


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    enum { DIGITS = 1024 };
    int starts[3][DIGITS] = {};
    int *codes_from = codes.data, *codes_to = codes.data + count;
    int *order_from = order.data, *order_to = order.data + count;
    for (int i = 0; i < count; ++i)
        for (int pass = 0; pass < 3; ++pass) ++starts[pass][(codes_from[i] >> 10 * pass) % DIGITS];
    for (int pass = 0; pass < 3; ++pass) {
        for (int digit = 0, next = 0; digit < DIGITS; ++digit) {
            const int size = starts[pass][digit];
            starts[pass][digit] = next;
            next += size;
        }
        for (int i = 0; i < count; ++i) {
            const int at = starts[pass][(codes_from[i] >> 10 * pass) % DIGITS]++;
            codes_to[at] = codes_from[i];
            order_to[at] = order_from[i];
        }
        int* codes_done = codes_to; codes_to = codes_from; codes_from = codes_done;
        int* order_done = order_to; order_to = order_from; order_from = order_done;
    }
    __builtin_memcpy(codes_to, codes_from, 4 * (size_t)count);
    __builtin_memcpy(order_to, order_from, 4 * (size_t)count);
#endif
""")
def sort_codes(codes: wp.array[wp.int32], order: wp.array[wp.int32], count: wp.int32):
    """Sort codes of 30 bits and what they belong to, by three passes of ten bits."""
    ...


@wp.kernel
def sort_codes_kernel(
    # in
    span: wp.vec3i,
    # out
    codes_out: wp.array[wp.int32],
    order_out: wp.array[wp.int32],
):
    """Sort the first half of both arrays on the CPU; the second half is scratch."""
    sort_codes(codes_out, order_out, codes_out.shape[0] / 2)


def sort_by_code(codes: wp.array, order: wp.array) -> None:
    """Sort the first half of both arrays; equal codes keep their order.

    On the CPU Warp's own sort has passes of 16 bits and takes two to three times as long.
    """
    if codes.device.is_cuda:
        wp.utils.radix_sort_pairs(codes, order, codes.shape[0] // 2, 0, 30)
    else:
        launch(sort_codes_kernel, 1, [codes, order], codes.device)


def cells_per_length(bounds: np.ndarray) -> float:
    """Return the scale of the grid over ``bounds``; 0 if they have no extent."""
    with np.errstate(all="ignore"):
        scale = CELLS / (bounds[1] - bounds[0]).max()
    return float(scale) if np.isfinite(scale) else 0.0


def morton_order(
    points: wp.array, faces: wp.array, bounds: np.ndarray, origin: np.ndarray
) -> tuple[wp.array, wp.array, wp.array]:
    """Sort faces by their codes; equal codes keep the order of faces.

    Returns:
        The sorted codes, the faces in their order, and the box of each face about ``origin``, two
        rows each, in the order of faces.
    """
    count = faces.shape[0]
    boxes = wp.empty(2 * count, dtype=wp.vec4f, device=faces.device)
    operands = [points, faces, wp.vec3d(*origin)]
    return *_sorted(morton_kernel, count, operands, bounds, [boxes]), boxes


def morton_order_of_points(points: wp.array, bounds: np.ndarray) -> wp.array:
    """Return the points in the order of their codes, in the first half of the array."""
    return _sorted(morton_points_kernel, points.shape[0], [points], bounds, [])[1]


def _sorted(
    kernel: wp.Kernel, count: int, operands: list[Any], bounds: np.ndarray, outputs: list[wp.array]
) -> tuple[wp.array, wp.array]:
    device = operands[0].device
    codes = wp.empty(2 * count, dtype=wp.int32, device=device)  # the sort needs room for two
    order = wp.empty(2 * count, dtype=wp.int32, device=device)
    grid = [wp.vec3d(*bounds[0]), wp.float64(cells_per_length(bounds))]
    launch(kernel, count, [*operands, *grid, *outputs, codes, order], device)
    sort_by_code(codes, order)
    return codes, order
