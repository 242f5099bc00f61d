"""Large covers, cut up so that many threads share them: blocks of 64 parts, a part for a lane.

A part is a square of 4 x 4 pixels, or a run of 16 parts of a divided face: a cover itself.
"""

import warp as wp

from abut.sdf.orthographic_raster import (
    HALF,
    PER_FACE,
    Cover,
    part_middle,
    pixel_count,
    plane_of,
    turned,
    widest,
)

SIDE = wp.constant(wp.int32(4))  # of a square
SIDES = wp.constant(wp.int32(8))  # squares along the side of a block
RUN = wp.constant(wp.int32(16))  # parts of a divided face
BLOCK = wp.constant(wp.int32(64))  # parts of a block
LARGE = wp.constant(wp.int32(1024))  # pixels; more make a cover large
LONG = wp.constant(wp.float32(8192.0))  # pixels; see edge_of
ROUND = wp.constant(wp.float64(1.415))  # a square's diagonal beside its side


@wp.func
def is_large(cover: Cover):
    """Whether a cover is for more threads than those at hand, or its edges reach too far."""
    return pixel_count(cover) > LARGE or widest(cover.corners) > LONG


@wp.func
def blocks_along(cover: Cover, k: wp.int32):
    """Blocks side by side, or one below the other."""
    return (cover.size[k] + SIDE * SIDES - 1) / (SIDE * SIDES)


@wp.func
def runs_of_blocks(cover: Cover):
    """Blocks of a divided face."""
    return (cover.size[0] + RUN * BLOCK - 1) / (RUN * BLOCK)


@wp.func
def slice_of_item(cover: Cover, block: wp.int32, place: wp.int32):
    """A part of a block; without pixels where it lies outside the rectangle."""
    first = wp.vec2i((block * BLOCK + place) * RUN, 0)
    size = wp.vec2i(RUN, 1)
    if cover.axis != PER_FACE:
        wide = blocks_along(cover, 0)
        x = (block % wide) * SIDES + place % SIDES
        y = (block / wide) * SIDES + place / SIDES
        first = wp.vec2i(x * SIDE, y * SIDE)
        size = wp.vec2i(SIDE, SIDE)
    out = cover
    out.low = cover.low + first
    left = cover.size - first
    out.size = wp.vec2i(wp.clamp(left[0], 0, size[0]), wp.clamp(left[1], 0, size[1]))
    return out


@wp.func
def point_above(cover: Cover, x: wp.float64, y: wp.float64):
    """The point of a face above a point of the picture."""
    plane = plane_of(cover)
    depth = plane[0] + plane[1] * x + plane[2] * y
    a = turned(cover.corners[0], cover.axis)[0]
    b = turned(cover.corners[1], cover.axis)[0]
    c = turned(cover.corners[2], cover.axis)[0]
    depth = wp.clamp(depth, wp.min(a, wp.min(b, c)), wp.max(a, wp.max(b, c)))
    p = wp.vec3d(depth, x, y)
    if cover.axis == 1:
        p = wp.vec3d(y, depth, x)
    if cover.axis == 2:
        p = wp.vec3d(x, y, depth)
    return p


@wp.func
def row_of(index: wp.int32):
    """The row that a part of a divided face lies in."""
    return wp.int32(wp.sqrt(wp.float64(index) + HALF))


@wp.func
def run_ball(part: Cover):
    """Middle and radius of a ball around a run of parts of a divided face."""
    first = part.low[0]
    last = first + wp.max(part.size[0], 1) - 1
    p = part_middle(part, first)
    q = part_middle(part, last)
    down = part.corners[1] - part.corners[0]
    aside = part.corners[2] - part.corners[1]
    wide = (wp.length(down) + wp.length(aside)) / wp.float64(part.low[1])
    radius = wide + HALF * wp.length(q - p)
    if row_of(first) != row_of(last):  # the run goes on in the next row
        radius = wide + wp.length(down) + wp.length(aside)
    middle = HALF * (p + q)
    return wp.vec4d(middle[0], middle[1], middle[2], radius)


@wp.func
def square_ball(cover: Cover, at: wp.vec2i, side: wp.int32):
    """Middle and radius of a ball around the face above a square of its cover."""
    half = HALF * wp.float64(side)
    x = wp.float64(cover.low[0] + at[0]) + half
    p = point_above(cover, x, wp.float64(cover.low[1] + at[1]) + half)
    plane = plane_of(cover)
    slopes = wp.vec3d(wp.float64(1.0), plane[1], plane[2])
    return wp.vec4d(p[0], p[1], p[2], ROUND * half * wp.length(slopes))


@wp.func
def part_ball(part: Cover):
    """Middle and radius of a ball around a part."""
    if part.axis == PER_FACE:
        return run_ball(part)
    return square_ball(part, wp.vec2i(0, 0), SIDE)
