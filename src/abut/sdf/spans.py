"""Row spans: the pixels that a face covers, row by row.

A face covers pixel (i, j) of a rectangle where e + x i + y j > 0 for each of its three edges, in
integers; in a row these pixels are contiguous. The rows of a patch are packed as bytes.
"""

import warp as wp

from abut.sdf.orthographic_raster import HALF, ONE, SNAP, ZERO, Footprint, edge_functions

MOST_REACH = wp.constant(wp.float64(2.0**28))  # of an edge over a patch
ROWS = wp.constant(wp.int32(16))  # of a patch
WIDEST = wp.constant(wp.int32(64))  # columns of a patch
STEEP = wp.constant(wp.float64(128.0))  # twice the columns of a patch
MOST_PIXELS = wp.constant(wp.int32(127))  # of a patch
EACH_BYTE = wp.constant(wp.uint64(0x0101010101010101))


@wp.struct
class RowEdges:
    """Three edges over a row; an edge on the right counts columns from the last one."""

    values: wp.vec3i  # at the first column
    slope_x: wp.vec3i  # change per column, positive
    slope_y: wp.vec3i  # change per row
    inverses: wp.vec3f  # of ``slope_x``
    from_right: wp.vec3i  # 1 where columns are counted from the last


@wp.struct
class PackedBytes:
    """Sixteen bytes."""

    low: wp.uint64
    high: wp.uint64


@wp.struct
class RowSpans:
    """The pixels of a patch that a face covers."""

    ends: PackedBytes  # per row the pixels up to its end
    shifts: PackedBytes  # per row its first column less the pixels before
    rows: wp.int32


@wp.func
def edge_in_pixels(line: wp.vec3d, low: wp.vec2i, size: wp.vec2i):
    """Return (e, x, y) of an edge function over a patch of ``size`` from pixel ``low`` on.

    Exact for edges of up to 8192 pixels; over tiles of 4 x 4 pixels for edges of up to 131072.
    """
    x = line[1]
    y = line[2]
    u = SNAP * (wp.float64(low[0]) + HALF)
    v = SNAP * (wp.float64(low[1]) + HALF)
    e = (line[0] + x * u + y * v) / SNAP
    if x == ZERO:  # a nearly horizontal edge decides whole rows alike
        e = STEEP * (wp.ceil(e / wp.abs(y)) - HALF)
        y = wp.where(y > ZERO, STEEP, -STEEP)
        x = ONE
    reach = wp.abs(x) * wp.float64(size[0]) + wp.abs(y) * wp.float64(size[1])
    while reach > MOST_REACH:
        x = wp.round(HALF * x)
        y = wp.round(HALF * y)
        e = HALF * e
        reach = HALF * reach
    e = wp.clamp(wp.ceil(e), -reach, reach + ONE)
    return wp.vec3i(wp.int32(e), wp.int32(x), wp.int32(y))


@wp.func
def row_edges(footprint: Footprint, at: wp.vec2i, size: wp.vec2i):
    """Return the edges of a face over the first row of a patch."""
    lines = edge_functions(footprint)
    out = RowEdges()
    for k in range(3):
        edge = edge_in_pixels(lines[k], footprint.low + at, size)
        out.values[k] = edge[0] + wp.min(edge[1], 0) * (size[0] - 1)
        out.slope_x[k] = wp.abs(edge[1])
        out.slope_y[k] = edge[2]
        out.inverses[k] = wp.float32(1.0) / wp.float32(out.slope_x[k])
        out.from_right[k] = wp.where(edge[1] < 0, 1, 0)
    return out


@wp.func
def first_covered(value: wp.int32, slope_x: wp.int32, inverse: wp.float32, width: wp.int32):
    """Return the least i in [0, width] with value + slope_x i > 0, else ``width``."""
    guess = wp.float32(-value) * inverse  # error far below 1 where it matters
    i = wp.int32(wp.clamp(guess, wp.float32(0.0), wp.float32(width))) + 1
    there = value + slope_x * i
    i += wp.where(there <= 0, 1, 0) - wp.where(there > slope_x, 1, 0)
    return wp.min(i, width)


@wp.func
def covered_in_row(edges: RowEdges, width: wp.int32):
    """Return the first column that a face covers in a row, and the count."""
    low = wp.int32(0)
    high = width
    for k in range(3):
        i = first_covered(edges.values[k], edges.slope_x[k], edges.inverses[k], width)
        if edges.from_right[k] == 1:
            high = wp.min(high, width - i)
        else:
            low = wp.max(low, i)
    return wp.vec2i(low, wp.max(high - low, 0))


@wp.func
def set_byte(bytes: PackedBytes, place: wp.int32, value: wp.int32):
    """Return the bytes with a value at an index where they are 0."""
    added = wp.uint64(value & 255) << wp.uint64(8 * (place & 7))
    out = bytes
    if place < 8:
        out.low |= added
    else:
        out.high |= added
    return out


@wp.func
def fill_bytes(bytes: PackedBytes, place: wp.int32, value: wp.int32):
    """Return the bytes with a value from an index on, where they are 0."""
    rest = EACH_BYTE * wp.uint64(value)
    out = bytes
    if place < 8:
        out.low |= rest << wp.uint64(8 * place)
        out.high = rest
    elif place < ROWS:
        out.high |= rest << wp.uint64(8 * (place - 8))
    return out


@wp.func
def row_spans(footprint: Footprint, at: wp.vec2i):
    """Return the spans of the patch that begins ``at`` a pixel: as many rows as fit."""
    size = wp.min(footprint.size - at, wp.vec2i(WIDEST, ROWS))
    edges = row_edges(footprint, at, size)
    out = RowSpans()
    total = wp.int32(0)
    while out.rows < size[1]:
        owned = covered_in_row(edges, size[0])
        if total + owned[1] > MOST_PIXELS:
            break
        out.shifts = set_byte(out.shifts, out.rows, owned[0] - total)
        total += owned[1]
        out.ends = set_byte(out.ends, out.rows, total)
        out.rows += 1
        edges.values += edges.slope_y
    out.ends = fill_bytes(out.ends, out.rows, total)
    return out


@wp.func
def covered_pixel_at(footprint: Footprint, x: wp.float64, y: wp.float64):
    """Return the pixel of a footprint at a point of the raster; (-1, -1) if not covered."""
    at = wp.vec2i(-1, -1)
    u = wp.floor(x) - wp.float64(footprint.low[0])
    v = wp.floor(y) - wp.float64(footprint.low[1])
    inside = u >= ZERO and v >= ZERO
    if inside and u < wp.float64(footprint.size[0]) and v < wp.float64(footprint.size[1]):
        one = wp.vec2i(1, 1)
        there = wp.vec2i(wp.int32(u), wp.int32(v))
        if covered_in_row(row_edges(footprint, there, one), 1)[1] > 0:
            at = there
    return at


@wp.func
def next_patch_origin(footprint: Footprint, at: wp.vec2i, rows: wp.int32):
    """Return where the next patch begins; its column exceeds the footprint after the last."""
    row = at[1] + rows
    if row < footprint.size[1]:
        return wp.vec2i(at[0], row)
    return wp.vec2i(at[0] + WIDEST, 0)


@wp.func_native("""
    int row = before;
#if defined(__CUDA_ARCH__)
    const unsigned probe = index * 0x01010101u | 0x80808080u;
    row = 0;
    for (int word = 0; word < 4; ++word)
        row += __popc((probe - (unsigned)ends.c[word]) & 0x80808080u);
    const int left = row < 8 ? (row < 4 ? shifts.c[0] : shifts.c[1])
                             : (row < 12 ? shifts.c[2] : shifts.c[3]);
#else
    while (index >= ((ends.c[row >> 2] >> 8 * (row & 3)) & 255)) ++row;
    const int left = shifts.c[row >> 2];
#endif
    return wp::vec_t<2, wp::int32>(index + (signed char)(left >> 8 * (row & 3)), row);
""")
def span_pixel(ends: wp.vec4i, shifts: wp.vec4i, index: wp.int32, before: wp.int32) -> wp.vec2i:
    """Return column and row of a covered pixel by its index.

    A CPU thread continues from the row of the previous pixel, ``before``.
    """
    ...
