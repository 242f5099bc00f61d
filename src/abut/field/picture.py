"""A face of a posed mesh in an orthographic picture of the field's box: the pixels it covers.

Morvan et al. 2008, sections 3.2 and 4.2. Pixels are squares of one lattice over the field's box; a
face is drawn along the axis its normal leans to most, and its fragments are the pixels whose
centres it covers. Corners are snapped to 1/256 of a pixel and edges are evaluated exactly, so that
faces that share an edge share no fragment and leave none out. Lengths here are in pixels.
"""

import warp as wp

from abut.faces import move_point

SNAP = wp.constant(wp.float64(256.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
ZERO = wp.constant(wp.float64(0.0))
THIRD = wp.constant(wp.float64(1.0 / 3.0))
MOST_SIDES = wp.constant(wp.float64(8192.0))  # parts along a side of a divided face
PER_FACE = wp.constant(wp.int32(3))  # in place of an axis: a divided face; 0, 1, 2 are axes
Lines = wp.types.vector(length=9, dtype=wp.float64)


@wp.struct
class Sampled:
    """A mesh to be sampled. ``velocities``: of its vertices in its own frame; may be empty."""

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    velocities: wp.array[wp.vec3d]


@wp.struct
class Cover:
    """Pixels of a picture along an axis that a face may cover, or parts of a divided face."""

    axis: wp.int32
    lines: Lines  # over the picture, see line_through; of a divided face corner, way on, way on
    low: wp.vec2i  # first pixel of the rectangle; (first part, parts along a side)
    size: wp.vec2i  # pixels of the rectangle; (parts, 1)
    plane: wp.vec3d  # depth where both coordinates are 0, and its slopes
    depths: wp.vec2d  # lowest and highest of the corners
    weight: wp.float64  # area of a fragment


@wp.func
def corners_in_pixels(mesh: Sampled, face: wp.int32, to_pixels: wp.mat44d):
    """Corners of a face, one a row, from the lower corner of the field's box."""
    v = mesh.faces[face]
    p0 = move_point(to_pixels, mesh.points[v[0]])
    p1 = move_point(to_pixels, mesh.points[v[1]])
    p2 = move_point(to_pixels, mesh.points[v[2]])
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
def pixel_index(x: wp.float64, low: wp.int32, high: wp.int32):
    """A whole number, held within bounds before it is converted."""
    return wp.int32(wp.clamp(x, wp.float64(low), wp.float64(high)))


@wp.func
def in_a_row(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d):
    """Nine numbers."""
    return Lines(a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2])


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
    out.lines = in_a_row(line_through(s0, s1), line_through(s1, s2), line_through(s2, s0))
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
    steep = -ONE / normal[0]
    slope_u = steep * normal[1]
    slope_v = steep * normal[2]
    out.plane = wp.vec3d(p0[0] - slope_u * p0[1] - slope_v * p0[2], slope_u, slope_v)
    out.depths = wp.vec2d(wp.min(p0[0], wp.min(p1[0], p2[0])), wp.max(p0[0], wp.max(p1[0], p2[0])))
    out.weight = wp.sqrt(ONE + slope_u * slope_u + slope_v * slope_v)
    return out


@wp.func
def divided(corners: wp.mat33d):
    """A face in k x k equal parts of about a pixel's area, sampled at their middles."""
    out = Cover()
    out.axis = PER_FACE
    out.lines = in_a_row(corners[0], corners[1] - corners[0], corners[2] - corners[1])
    area = HALF * wp.length(area_vector(corners))
    sides = wp.max(wp.int32(wp.clamp(wp.floor(wp.sqrt(area) + HALF), ZERO, MOST_SIDES)), 1)
    out.low = wp.vec2i(0, sides)
    out.size = wp.vec2i(sides * sides, 1)
    out.weight = area / wp.float64(sides * sides)
    return out


@wp.func
def cover_of(corners: wp.mat33d, axis: wp.int32, low: wp.vec3i, high: wp.vec3i):
    """``cover_along`` an axis, or ``divided`` for PER_FACE."""
    if axis == PER_FACE:
        return divided(corners)
    return cover_along(corners, axis, low, high)


@wp.func
def pixel_count(cover: Cover):
    """Pixels of the rectangle, or parts."""
    return cover.size[0] * cover.size[1]


@wp.func
def part_middle(lines: Lines, sides: wp.int32, index: wp.int32):
    """The middle of a part of a divided face; row r of parts has 2 r + 1 of them."""
    row = wp.int32(wp.sqrt(wp.float64(index) + HALF))
    place = index - row * row
    share = wp.float64(1 + place % 2) * THIRD
    down = (wp.float64(row) + ONE - share) / wp.float64(sides)
    aside = (wp.float64(place / 2) + share) / wp.float64(sides)
    return wp.vec3d(
        lines[0] + down * lines[3] + aside * lines[6],
        lines[1] + down * lines[4] + aside * lines[7],
        lines[2] + down * lines[5] + aside * lines[8],
    )


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
