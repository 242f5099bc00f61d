"""Patch: what a face has in a tile of 8 by 8 pixels: a mask of pixels, and depths over all of them.

Bit 8 y + x is the pixel in column x and row y of the tile. Proofs are in design/visibility.md.
"""

import warp as wp

from abut.visibility.cover import BLOCK, HALF_BLOCK, centre_of
from abut.visibility.fragment import (
    NEVER,
    NO_PLANE,
    FaceView,
    depth_at,
    depths_over,
    edge_passes,
    holds,
)
from abut.visibility.view import ViewMap

EMPTY = wp.constant(wp.uint64(0))
LOWEST = wp.constant(wp.uint64(1))
HALF_TILE = wp.constant(wp.float32(4.0))
CLEAR = wp.constant(wp.float32(2.0**-20))  # more than float32 loses of a product of differences
PATCH_ROUNDING = wp.constant(wp.float32(2.0**-19))


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __ffsll((long long)bits) - 1;
#else
    return __builtin_ctzll(bits);
#endif
""")
def lowest_bit(bits: wp.uint64) -> wp.int32:
    """Place of the lowest bit that is set, of bits that are not all zero."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __popcll((unsigned long long)bits);
#else
    return __builtin_popcountll(bits);
#endif
""")
def count_bits(bits: wp.uint64) -> wp.int32:
    """How many bits are set."""
    ...


@wp.func
def box_mask(box: wp.vec4i, column: wp.int32, row: wp.int32):
    """The pixels of a box in the tile that begins at this pixel."""
    left = wp.max(box[0] - column, 0)
    right = wp.min(box[2] - column, BLOCK - 1)
    mask = EMPTY
    if left <= right:
        line = ((LOWEST << wp.uint64(right - left + 1)) - LOWEST) << wp.uint64(left)
        for y in range(wp.max(box[1] - row, 0), wp.min(box[3] - row, BLOCK - 1) + 1):
            mask = mask | (line << wp.uint64(BLOCK * y))
    return mask


@wp.func
def pixel_centre(column: wp.int32, row: wp.int32, k: wp.int32):
    """Centre of the k-th pixel of the tile that begins at this one."""
    return centre_of(column + k % BLOCK, row + k / BLOCK)


@wp.func
def tile_middle(column: wp.int32, row: wp.int32):
    """Middle of the tile that begins at this pixel."""
    return wp.vec2f(wp.float32(column) + HALF_TILE, wp.float32(row) + HALF_TILE)


@wp.func
def edge_clear(f: FaceView, i: wp.int32, middle: wp.vec2f):
    """Are all centres of a tile between an edge and the corner across, far from both?"""
    j = (i + 1) % 3
    k = (i + 2) % 3
    du = f.u[j] - f.u[i]
    dv = f.v[j] - f.v[i]
    first = (middle[0] - f.u[i]) * dv
    second = (middle[1] - f.v[i]) * du
    third = (f.u[k] - f.u[i]) * dv
    fourth = (f.v[k] - f.v[i]) * du
    around = HALF_BLOCK * (wp.abs(du) + wp.abs(dv))
    size = wp.abs(first) + wp.abs(second) + wp.abs(third) + wp.abs(fourth)
    around = around + CLEAR * (size + around)
    at = first - second
    corner = third - fourth
    zero = wp.float32(0.0)
    return at - around > wp.min(zero, corner) and at + around < wp.max(zero, corner)


@wp.func
def cut_mask(
    f: FaceView, i: wp.int32, mask: wp.uint64, column: wp.int32, row: wp.int32, view: ViewMap
):
    """The pixels of a mask that an edge leaves to its face."""
    out = mask
    left = wp.uint64(mask)
    while left != EMPTY:
        k = lowest_bit(left)
        left = left & (left - LOWEST)
        centre = pixel_centre(column, row, k)
        stays = wp.bool(False)
        if view.reach[0] > wp.float32(0.0):
            stays = edge_passes(f, i, centre, view.reach)
        else:
            stays = holds(f, i, centre)
        if not stays:
            out = out & ~(LOWEST << wp.uint64(k))
    return out


@wp.func
def patch_mask(f: FaceView, box: wp.vec4i, column: wp.int32, row: wp.int32, view: ViewMap):
    """The pixels of a tile that a face covers, the same ones as ``covers`` says one by one."""
    mask = box_mask(box, column, row)
    if view.reach[0] == wp.float32(0.0) and f.turn == wp.float32(0.0):
        mask = EMPTY
    middle = tile_middle(column, row)
    for i in range(3):
        if mask != EMPTY and not edge_clear(f, i, middle):
            mask = cut_mask(f, i, mask, column, row, view)
    return mask


@wp.func
def patch_depths(f: FaceView, column: wp.int32, row: wp.int32, view: ViewMap):
    """An interval that holds the depths of all fragments of a face in a tile, as computed."""
    low = wp.float32(-NEVER)
    high = wp.float32(NEVER)
    if f.slope_error < NO_PLANE:
        middle = tile_middle(column, row)
        across = wp.abs(f.slope[0])
        up = wp.abs(f.slope[1])
        du = middle[0] - f.u[0]
        dv = middle[1] - f.v[0]
        at = f.z[0] + f.slope[0] * du + f.slope[1] * dv
        wide = HALF_TILE + view.reach[0]
        tall = HALF_TILE + view.reach[1]
        spread = across * wide + up * tall
        far_off = wp.abs(du) + wp.abs(dv) + wide + tall
        if view.reach[0] > wp.float32(0.0):
            spread = spread + f.slope_error * far_off
        size = wp.float32(1.0) + across * (wp.abs(du) + wide) + up * (wp.abs(dv) + tall) + spread
        spread = spread + view.slack + PATCH_ROUNDING * size
        low = at - spread
        high = at + spread
    if view.reach[0] > wp.float32(0.0):
        around = view.slack + PATCH_ROUNDING
        low = wp.max(low, wp.min(wp.min(f.z[0], f.z[1]), f.z[2]) - around)
        high = wp.min(high, wp.max(wp.max(f.z[0], f.z[1]), f.z[2]) + around)
    return wp.vec2f(low, high)


@wp.func
def fragment_depths(f: FaceView, centre: wp.vec2f, view: ViewMap):
    """Depths of a face at a pixel that it covers; near > far where it has none."""
    out = wp.vec2f(0.0, 0.0)
    if view.reach[0] > wp.float32(0.0):
        out = depths_over(f, centre, view.reach, view.slack)
    else:
        depth = depth_at(f, centre)
        out = wp.vec2f(depth, depth)
    return out
