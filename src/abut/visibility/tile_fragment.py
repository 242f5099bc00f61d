"""Tile fragment: the coverage mask and depth interval of a face in a tile of 8 by 8 pixels.

Bit 8 y + x is the pixel in column x and row y of the tile. Proofs are in design/visibility.md.
"""

import warp as wp

from abut.visibility.coverage import (
    BLOCK,
    HALF_BLOCK,
    NEVER,
    SIDE_ERROR,
    Edge,
    centre_of,
    covers,
    edge_of,
    inside_edge,
)
from abut.visibility.screen_faces import ScreenFace
from abut.visibility.settings import ViewMap

EMPTY = wp.constant(wp.uint64(0))
LOWEST = wp.constant(wp.uint64(1))
FEW_PIXELS = wp.constant(12)  # up to so many are tested one by one
HALF_TILE = wp.constant(wp.float32(4.0))
CLEAR = wp.constant(wp.float32(2.0**-20))  # above the relative error of edge functions
TILE_ROUNDING = wp.constant(wp.float32(2.0**-19))


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __ffsll((long long)bits) - 1;
#else
    return __builtin_ctzll(bits);
#endif
""")
def lowest_bit_index(bits: wp.uint64) -> wp.int32:
    """Index of the lowest set bit; undefined for 0."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __popcll((unsigned long long)bits);
#else
    return __builtin_popcountll(bits);
#endif
""")
def count_bits(bits: wp.uint64) -> wp.int32:
    """Number of set bits."""
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
def edge_clear(e: Edge, middle: wp.vec2f):
    """Whether all pixel centres of a tile lie strictly between an edge and its opposite corner."""
    du = e.to_u - e.u
    dv = e.to_v - e.v
    first = (middle[0] - e.u) * dv
    second = (middle[1] - e.v) * du
    third = (e.across_u - e.u) * dv
    fourth = (e.across_v - e.v) * du
    around = HALF_BLOCK * (wp.abs(du) + wp.abs(dv))
    size = wp.abs(first) + wp.abs(second) + wp.abs(third) + wp.abs(fourth)
    around = around + CLEAR * (size + around)
    at = first - second
    corner = third - fourth
    zero = wp.float32(0.0)
    return at - around > wp.min(zero, corner) and at + around < wp.max(zero, corner)


@wp.func
def strip_mask(e: Edge, column: wp.int32, row: wp.int32, reach: wp.vec2f):
    """Mask of the pixels of a tile for which ``edge_passes`` is true."""
    du = e.to_u - e.u
    dv = e.to_v - e.v
    corner = (e.across_u - e.u) * dv - (e.across_v - e.v) * du
    around = reach[0] * wp.abs(dv) + reach[1] * wp.abs(du)
    low = wp.min(wp.float32(0.0), corner)
    high = wp.max(wp.float32(0.0), corner)
    start = centre_of(column, row)
    mask = EMPTY
    for y in range(8):
        second = (start[1] + wp.float32(y) - e.v) * du
        line = wp.uint32(0)
        for x in range(8):
            at = (start[0] + wp.float32(x) - e.u) * dv - second
            if at + around >= low and at - around <= high:
                line = line | wp.uint32(1 << x)
        mask = mask | (wp.uint64(line) << wp.uint64(8 * y))
    return mask


@wp.func
def side_masks(e: Edge, orientation: wp.float32, column: wp.int32, row: wp.int32):
    """(mask of pixels whose centres are inside an edge, mask of those float32 cannot decide)."""
    du = e.to_u - e.u
    dv = e.to_v - e.v
    start = centre_of(column, row)
    mask = wp.uint64(0)
    unsure = wp.uint64(0)
    for y in range(8):
        first = du * (start[1] + wp.float32(y) - e.v)
        line = wp.uint32(0)
        doubt = wp.uint32(0)
        for x in range(8):
            second = dv * (start[0] + wp.float32(x) - e.u)
            side = first - second
            if side * orientation > wp.float32(0.0):
                line = line | wp.uint32(1 << x)
            if wp.abs(side) <= SIDE_ERROR * (wp.abs(first) + wp.abs(second)):
                doubt = doubt | wp.uint32(1 << x)
        mask = mask | (wp.uint64(line) << wp.uint64(8 * y))
        unsure = unsure | (wp.uint64(doubt) << wp.uint64(8 * y))
    return mask, unsure


@wp.func
def sampled_mask(
    e: Edge, orientation: wp.float32, column: wp.int32, row: wp.int32, wanted: wp.uint64
):
    """Mask of the wanted pixels of a tile for which ``inside_edge`` is true."""
    inside, unsure = side_masks(e, orientation, column, row)
    mask = inside & wanted & ~unsure
    left = unsure & wanted
    while left != EMPTY:
        k = lowest_bit_index(left)
        left = left & (left - LOWEST)
        if inside_edge(e, orientation, pixel_centre(column, row, k)):
            mask = mask | (LOWEST << wp.uint64(k))
    return mask


@wp.func
def crossing_edges(f: ScreenFace, middle: wp.vec2f):
    """Bits of the edges that may cross a tile."""
    edges = wp.int32(0)
    for i in range(3):
        if not edge_clear(edge_of(f.u, f.v, i), middle):
            edges = edges | (1 << i)
    return edges


@wp.func
def covered_pixels(f: ScreenFace, mask: wp.uint64, column: wp.int32, row: wp.int32, view: ViewMap):
    """The pixels of a mask that a face covers, tested one by one."""
    out = mask
    left = wp.uint64(mask)
    while left != EMPTY:
        k = lowest_bit_index(left)
        left = left & (left - LOWEST)
        if not covers(f, pixel_centre(column, row, k), view):
            out = out & ~(LOWEST << wp.uint64(k))
    return out


@wp.func
def tile_mask(f: ScreenFace, box: wp.vec4i, column: wp.int32, row: wp.int32, view: ViewMap):
    """Mask of the pixels of a tile for which ``covers`` is true."""
    mask = box_mask(box, column, row)
    sampled = view.reach[0] == wp.float32(0.0)
    if sampled and f.orientation == wp.float32(0.0):
        mask = EMPTY
    if count_bits(mask) <= FEW_PIXELS:
        mask = covered_pixels(f, mask, column, row, view)
    else:
        edges = crossing_edges(f, tile_middle(column, row))
        while mask != EMPTY and edges != 0:
            e = edge_of(f.u, f.v, lowest_bit_index(wp.uint64(edges)))
            edges = edges & (edges - 1)
            if sampled:
                mask = sampled_mask(e, f.orientation, column, row, mask)
            else:
                mask = mask & strip_mask(e, column, row, view.reach)
    return mask


@wp.func
def tile_depths(f: ScreenFace, column: wp.int32, row: wp.int32, view: ViewMap):
    """Interval that contains ``pixel_depths`` of a face at every pixel of a tile."""
    low = wp.float32(-NEVER)
    high = wp.float32(NEVER)
    if f.has_plane > wp.float32(0.0):
        middle = tile_middle(column, row)
        across = wp.abs(f.slope[0])
        up = wp.abs(f.slope[1])
        du = middle[0] - f.u[0]
        dv = middle[1] - f.v[0]
        at = f.z[0] + f.slope[0] * du + f.slope[1] * dv
        wide = HALF_TILE + view.reach[0]
        tall = HALF_TILE + view.reach[1]
        spread = across * wide + up * tall
        size = wp.float32(1.0) + across * (wp.abs(du) + wide) + up * (wp.abs(dv) + tall) + spread
        spread = spread + view.slack + TILE_ROUNDING * size
        low = at - spread
        high = at + spread
    if view.reach[0] > wp.float32(0.0):
        around = view.slack + TILE_ROUNDING
        low = wp.max(low, wp.min(wp.min(f.z[0], f.z[1]), f.z[2]) - around)
        high = wp.min(high, wp.max(wp.max(f.z[0], f.z[1]), f.z[2]) + around)
    return wp.vec2f(low, high)
