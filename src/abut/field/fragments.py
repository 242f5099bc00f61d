"""A face of a posed mesh as fragments: pixels of an orthographic view of the field's box.

Morvan et al. 2008, sections 3.2 and 4.2. Pixels are squares of one lattice over the field's box; a
face is drawn along the axis its normal leans to most, and its fragments are the pixels whose
centres it covers. Corners are snapped to 1/256 of a pixel and edges are evaluated exactly, so that
faces that share an edge share no fragment and leave none out. Lengths here are in pixels.

Fragments come in turns, one for a thread: runs of pixels of the face's rectangle, row by row, or
squares of 4 x 4 pixels of a large one, 64 of which are a block. Nothing is stored; whoever needs a
fragment computes it.
"""

import warp as wp

from abut.faces import move_point
from abut.lanes import lane_count

SNAP = wp.constant(wp.float64(256.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
ZERO = wp.constant(wp.float64(0.0))
THIRD = wp.constant(wp.float64(1.0 / 3.0))
SHORT_RUN, LONG_RUN = wp.constant(16), wp.constant(64)  # pixels, on CUDA and on the CPU
SIDE = wp.constant(wp.int32(4))  # of a square
SIDES = wp.constant(wp.int32(8))  # turns along the side of a block
BLOCK = wp.constant(wp.int32(64))  # turns of a block
MOST_BLOCKS = wp.constant(wp.int32((1 << 25) - 1))  # whose turns can be counted
LARGE = wp.constant(wp.int32(1024))  # pixels; more make a face large
ROUND_SIDE = wp.constant(wp.float64(2.83))  # from the middle of a square turn to its corners
PER_FACE = wp.constant(wp.int32(3))  # sampling: subdivided faces; 0, 1, 2 are axes


@wp.struct
class Sampled:
    """A mesh to be sampled. ``velocities``: of its vertices in its own frame; may be empty."""

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    velocities: wp.array[wp.vec3d]


@wp.struct
class Cover:
    """How a face covers pixels along an axis, or is subdivided (``axis`` PER_FACE)."""

    meeting: wp.int32
    face: wp.int32
    axis: wp.int32
    edge0: wp.vec3d  # lines over the picture, see line_through; for PER_FACE the first corner,
    edge1: wp.vec3d  # the way to the second,
    edge2: wp.vec3d  # and from there to the third
    low: wp.vec2i  # first pixel of the rectangle
    size: wp.vec2i  # pixels of the rectangle; (k², 1) where a face is divided k times
    plane: wp.vec3d  # depth where both coordinates are 0, and its slopes
    depths: wp.vec2d  # lowest and highest of the corners
    weight: wp.float64  # area of a fragment


@wp.func
def corners_in_pixels(
    mesh: Sampled, face: wp.int32, pose: wp.mat44d, lower: wp.vec3d, pixel: wp.float64
):
    """Corners of a face, one a row, from the lower corner of the field's box."""
    v = mesh.faces[face]
    share = ONE / pixel
    p0 = (move_point(pose, mesh.points[v[0]]) - lower) * share
    p1 = (move_point(pose, mesh.points[v[1]]) - lower) * share
    p2 = (move_point(pose, mesh.points[v[2]]) - lower) * share
    return wp.matrix_from_rows(p0, p1, p2)


@wp.func
def area_vector(corners: wp.mat33d):
    """Normal of a face, twice its area long."""
    return wp.cross(corners[1] - corners[0], corners[2] - corners[0])


@wp.func
def dominant_axis(normal: wp.vec3d):
    """The axis a normal leans to most; of equals the first."""
    n = wp.abs(normal)
    if n[0] >= n[1] and n[0] >= n[2]:
        return wp.int32(0)
    return wp.where(n[1] >= n[2], 1, 2)


@wp.func
def turned(p: wp.vec3d, axis: wp.int32):
    """(depth, u, v) of a point in the picture along an axis."""
    if axis == 1:
        return wp.vec3d(p[1], p[2], p[0])
    if axis == 2:
        return wp.vec3d(p[2], p[0], p[1])
    return p


@wp.func
def turned_pixel(p: wp.vec3i, axis: wp.int32):
    """``turned`` for whole numbers."""
    if axis == 1:
        return wp.vec3i(p[1], p[2], p[0])
    if axis == 2:
        return wp.vec3i(p[2], p[0], p[1])
    return p


@wp.func
def across(p: wp.vec3d):
    """The two coordinates of a turned point in the picture."""
    return wp.vec2d(p[1], p[2])


@wp.func
def snapped(p: wp.vec2d):
    """In whole steps of 1/256 of a pixel."""
    return wp.vec2d(wp.floor(p[0] * SNAP + HALF), wp.floor(p[1] * SNAP + HALF))


@wp.func
def cross2(a: wp.vec2d, b: wp.vec2d):
    """Twice the signed area between two vectors; exact for snapped ones near the box."""
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def line_through(a: wp.vec2d, b: wp.vec2d):
    """(c, x, y): c + x u + y v is positive left of the edge from a to b, in snapped steps.

    Of two faces at an edge one owns its points: there it is one half. All else is whole numbers.
    """
    edge = b - a
    rest = edge[1] * a[0] - edge[0] * a[1]
    if edge[1] > ZERO or (edge[1] == ZERO and edge[0] < ZERO):
        rest += HALF
    return wp.vec3d(rest, -edge[1], edge[0])


@wp.func
def is_left(line: wp.vec3d, u: wp.float64, v: wp.float64):
    """Whether a face owns a point, as one edge has it."""
    return line[0] + line[1] * u + line[2] * v > ZERO


@wp.func
def pixel_index(x: wp.float64, low: wp.int32, high: wp.int32):
    """A whole number, held within bounds before it is converted."""
    return wp.int32(wp.clamp(x, wp.float64(low), wp.float64(high)))


@wp.func
def cover_along(corners: wp.mat33d, axis: wp.int32, low: wp.vec3i, high: wp.vec3i):
    """How a face covers the pixels from ``low`` to ``high``, inclusive, along an axis."""
    out = Cover()
    out.axis = axis
    p0 = turned(corners[0], axis)
    p1 = turned(corners[1], axis)
    p2 = turned(corners[2], axis)
    s0 = snapped(across(p0))
    s1 = snapped(across(p1))
    s2 = snapped(across(p2))
    area = cross2(s1 - s0, s2 - s0)
    if area < ZERO:
        swap = s1
        s1 = s2
        s2 = swap
    normal = wp.cross(p1 - p0, p2 - p0)
    if area == ZERO or normal[0] == ZERO:
        return out
    out.edge0 = line_through(s0, s1)
    out.edge1 = line_through(s1, s2)
    out.edge2 = line_through(s2, s0)
    least = wp.min(s0, wp.min(s1, s2)) / SNAP
    most = wp.max(s0, wp.max(s1, s2)) / SNAP
    first = turned_pixel(low, axis)
    last = turned_pixel(high, axis)
    u0 = pixel_index(wp.ceil(least[0] - HALF), first[1], last[1] + 1)
    v0 = pixel_index(wp.ceil(least[1] - HALF), first[2], last[2] + 1)
    u1 = pixel_index(wp.floor(most[0] - HALF), first[1] - 1, last[1])
    v1 = pixel_index(wp.floor(most[1] - HALF), first[2] - 1, last[2])
    out.low = wp.vec2i(u0, v0)
    out.size = wp.vec2i(wp.max(u1 - u0 + 1, 0), wp.max(v1 - v0 + 1, 0))
    slope_u = -normal[1] / normal[0]
    slope_v = -normal[2] / normal[0]
    out.plane = wp.vec3d(p0[0] - slope_u * p0[1] - slope_v * p0[2], slope_u, slope_v)
    out.depths = wp.vec2d(wp.min(p0[0], wp.min(p1[0], p2[0])), wp.max(p0[0], wp.max(p1[0], p2[0])))
    out.weight = wp.length(normal) / wp.abs(normal[0])
    return out


@wp.func
def divided(corners: wp.mat33d):
    """A face in k x k equal parts of about a pixel's area, sampled at their middles."""
    out = Cover()
    out.axis = PER_FACE
    out.edge0 = corners[0]
    out.edge1 = corners[1] - corners[0]
    out.edge2 = corners[2] - corners[1]
    area = HALF * wp.length(area_vector(corners))
    parts = wp.max(wp.int32(wp.clamp(wp.floor(wp.sqrt(area) + HALF), ZERO, wp.float64(8192.0))), 1)
    out.size = wp.vec2i(parts * parts, 1)
    out.weight = area / wp.float64(parts * parts)
    return out


@wp.func
def cover_of(corners: wp.mat33d, axis: wp.int32, low: wp.vec3i, high: wp.vec3i):
    """``cover_along`` an axis, or ``divided`` for PER_FACE."""
    if axis == PER_FACE:
        return divided(corners)
    return cover_along(corners, axis, low, high)


@wp.func
def run_length():
    """Pixels of a run: where there are few threads, fewer and longer turns do."""
    return wp.where(lane_count() == 1, LONG_RUN, SHORT_RUN)


@wp.func
def is_large(cover: Cover):
    """Whether a face has so many turns that others than one thread must list them."""
    return cover.size[0] * cover.size[1] > LARGE


@wp.func
def turn_count(cover: Cover):
    """Turns of a face that is not large."""
    return (cover.size[0] * cover.size[1] + run_length() - 1) / run_length()


@wp.func
def blocks_across(cover: Cover):
    """Blocks of a large face side by side."""
    return (cover.size[0] + SIDE * SIDES - 1) / (SIDE * SIDES)


@wp.func
def block_count(cover: Cover):
    """Blocks of a large face."""
    if cover.axis == PER_FACE:
        return (cover.size[0] + run_length() * BLOCK - 1) / (run_length() * BLOCK)
    return blocks_across(cover) * ((cover.size[1] + SIDE * SIDES - 1) / (SIDE * SIDES))


@wp.func
def in_squares(cover: Cover):
    """Whether turns are squares, not runs."""
    return cover.axis != PER_FACE and is_large(cover)


@wp.func
def first_pixel(cover: Cover, turn: wp.int32):
    """The first pixel of a turn, from the corner of the rectangle; it may lie outside."""
    if in_squares(cover):
        wide = blocks_across(cover)
        block = turn / BLOCK
        place = turn % BLOCK
        x = (block % wide) * SIDES + place % SIDES
        y = (block / wide) * SIDES + place / SIDES
        return wp.vec2i(x * SIDE, y * SIDE)
    first = turn * run_length()
    line = first / wp.max(cover.size[0], 1)
    return wp.vec2i(first - line * cover.size[0], line)


@wp.func
def slot_count(cover: Cover, turn: wp.int32):
    """Pixels of a turn."""
    if in_squares(cover):
        return SIDE * SIDE
    return wp.min(cover.size[0] * cover.size[1] - turn * run_length(), run_length())


@wp.func
def next_pixel(cover: Cover, at: wp.vec2i, slot: wp.int32):
    """The pixel after the one in a slot of a turn."""
    if in_squares(cover):
        if slot % SIDE == SIDE - 1:
            return wp.vec2i(at[0] - (SIDE - 1), at[1] + 1)
        return wp.vec2i(at[0] + 1, at[1])
    if at[0] == cover.size[0] - 1:
        return wp.vec2i(0, at[1] + 1)
    return wp.vec2i(at[0] + 1, at[1])


@wp.func
def point_at(cover: Cover, at: wp.vec2d):
    """The point of a face above a point of the picture."""
    depth = cover.plane[0] + cover.plane[1] * at[0] + cover.plane[2] * at[1]
    depth = wp.clamp(depth, cover.depths[0], cover.depths[1])
    p = wp.vec3d(depth, at[0], at[1])
    if cover.axis == 1:
        p = wp.vec3d(at[1], depth, at[0])
    if cover.axis == 2:
        p = wp.vec3d(at[0], at[1], depth)
    return p


@wp.func
def part_middle(cover: Cover, index: wp.int32):
    """The middle of a part of a divided face; row r of parts has 2 r + 1 of them."""
    parts = wp.int32(wp.sqrt(wp.float64(cover.size[0])) + HALF)
    row = wp.int32(wp.sqrt(wp.float64(index) + HALF))
    place = index - row * row
    share = wp.float64(1 + place % 2) * THIRD
    down = (wp.float64(row) + ONE - share) / wp.float64(parts)
    aside = (wp.float64(place / 2) + share) / wp.float64(parts)
    return cover.edge0 + down * cover.edge1 + aside * cover.edge2


@wp.func
def turn_ball(cover: Cover, turn: wp.int32):
    """Middle and radius of a ball around a turn of a large face."""
    if cover.axis != PER_FACE:
        corner = cover.low + first_pixel(cover, turn)
        at = wp.vec2d(wp.float64(corner[0] + SIDE / 2), wp.float64(corner[1] + SIDE / 2))
        p = point_at(cover, at)
        slopes = wp.vec3d(ONE, cover.plane[1], cover.plane[2])
        return wp.vec4d(p[0], p[1], p[2], ROUND_SIDE * wp.length(slopes))
    first = wp.min(turn * run_length(), cover.size[0] - 1)
    last = wp.min(first + run_length(), cover.size[0]) - 1
    p = part_middle(cover, first)
    q = part_middle(cover, last)
    part = wp.length(cover.edge1) + wp.length(cover.edge2)
    radius = part / wp.sqrt(wp.float64(cover.size[0]))
    if wp.int32(wp.sqrt(wp.float64(first) + HALF)) == wp.int32(wp.sqrt(wp.float64(last) + HALF)):
        radius += HALF * wp.length(q - p)
    else:  # the turn goes on in the next row
        radius += part
    middle = HALF * (p + q)
    return wp.vec4d(middle[0], middle[1], middle[2], radius)


@wp.func
def fragment(cover: Cover, at: wp.vec2i):
    """The position of the fragment at a pixel of the rectangle, and 1; 0 where there is none."""
    none = wp.vec4d(ZERO, ZERO, ZERO, ZERO)
    if at[0] >= cover.size[0] or at[1] >= cover.size[1]:
        return none
    if cover.axis == PER_FACE:
        p = part_middle(cover, at[0])
        return wp.vec4d(p[0], p[1], p[2], ONE)
    x = wp.float64(cover.low[0] + at[0]) + HALF
    y = wp.float64(cover.low[1] + at[1]) + HALF
    u = x * SNAP
    v = y * SNAP
    inside = is_left(cover.edge0, u, v) and is_left(cover.edge1, u, v)
    if not (inside and is_left(cover.edge2, u, v)):
        return none
    p = point_at(cover, wp.vec2d(x, y))
    return wp.vec4d(p[0], p[1], p[2], ONE)


@wp.func
def blend_of_corners(corners: wp.mat33d, p: wp.vec3d):
    """Barycentric weights of a point of a face, as seen along its dominant axis."""
    axis = dominant_axis(area_vector(corners))
    at = across(turned(p, axis))
    a = across(turned(corners[0], axis)) - at
    b = across(turned(corners[1], axis)) - at
    c = across(turned(corners[2], axis)) - at
    wa = cross2(b, c)
    wb = cross2(c, a)
    whole = wa + wb + cross2(a, b)
    if whole == ZERO:
        return wp.vec3d(THIRD, THIRD, THIRD)
    return wp.vec3d(wa / whole, wb / whole, ONE - (wa + wb) / whole)
