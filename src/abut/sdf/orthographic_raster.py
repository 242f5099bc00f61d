"""A face of a posed mesh in an orthographic picture of the field's box: the pixels it covers.

Morvan et al. 2008, sections 3.2 and 4.2. Pixels are squares of one lattice over the field's box; a
face is drawn along the axis its normal leans to most, and its fragments are the pixels whose
centres it covers. Corners are snapped to 1/256 of a pixel and edges are evaluated exactly, so that
faces that share an edge share no fragment and leave none out. Lengths here are in pixels.
"""

import warp as wp

from abut.bounds.rows import single_of
from abut.geometry.poses import move_point

SNAP = wp.constant(wp.float64(256.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
ZERO = wp.constant(wp.float64(0.0))
THIRD = wp.constant(wp.float64(1.0 / 3.0))
MAX_SUBDIVISION = wp.constant(wp.float64(8192.0))  # parts along a side of a divided face
HALF_PIXEL = wp.constant(wp.float64(128.0))  # in snapped steps
SUBDIVIDED = wp.constant(wp.int32(3))  # in place of an axis: a divided face; 0, 1, 2 are axes


@wp.struct
class SampledMesh:
    """A mesh to be sampled. ``velocities``: of its vertices in its own frame; may be empty."""

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    velocities: wp.array[wp.vec3d]


@wp.struct
class Footprint:
    """Pixels of a picture along an axis that a face may cover, or parts of a divided face."""

    axis: wp.int32
    corners: wp.mat33d  # of the face, one a row
    low: wp.vec2i  # first pixel of the rectangle; (first part, parts along a side)
    size: wp.vec2i  # pixels of the rectangle; (parts, 1)


@wp.func
def corners_in_pixels(mesh: SampledMesh, face: wp.int32, to_pixels: wp.mat44d):
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
    n = wp.abs(single_of(normal))
    if n[0] >= n[1] and n[0] >= n[2]:
        return wp.int32(0)
    return wp.where(n[1] >= n[2], 1, 2)


@wp.func
def to_raster(p: wp.vec3d, axis: wp.int32):
    """(depth, u, v) of a point in the picture along an axis."""
    if axis == 1:
        return wp.vec3d(p[1], p[2], p[0])
    if axis == 2:
        return wp.vec3d(p[2], p[0], p[1])
    return p


@wp.func
def to_raster_pixel(p: wp.vec3i, axis: wp.int32):
    """``to_raster`` for whole numbers."""
    if axis == 1:
        return wp.vec3i(p[1], p[2], p[0])
    if axis == 2:
        return wp.vec3i(p[2], p[0], p[1])
    return p


@wp.func
def raster_uv(p: wp.vec3d):
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
def edge_function(a: wp.vec2d, b: wp.vec2d):
    """(c, x, y): c + x u + y v is positive left of the edge from a to b, in snapped steps.

    Of two faces at an edge one owns its points: there it is one half. All else is whole numbers.
    """
    edge = b - a
    rest = edge[1] * a[0] - edge[0] * a[1]
    if edge[1] > ZERO or (edge[1] == ZERO and edge[0] < ZERO):
        rest += HALF
    return wp.vec3d(rest, -edge[1], edge[0])


@wp.func
def edge_functions(footprint: Footprint):
    """The lines of a face's three edges, one a row."""
    s0 = snapped(raster_uv(to_raster(footprint.corners[0], footprint.axis)))
    s1 = snapped(raster_uv(to_raster(footprint.corners[1], footprint.axis)))
    s2 = snapped(raster_uv(to_raster(footprint.corners[2], footprint.axis)))
    if cross2(s1 - s0, s2 - s0) < ZERO:
        return wp.matrix_from_rows(
            edge_function(s0, s2), edge_function(s2, s1), edge_function(s1, s0)
        )
    return wp.matrix_from_rows(edge_function(s0, s1), edge_function(s1, s2), edge_function(s2, s0))


@wp.func
def is_square_outside(lines: wp.mat33d, low: wp.vec2i, side: wp.int32):
    """Whether all pixels of a square are on the outer side of an edge."""
    u = SNAP * (wp.float64(low[0]) + HALF)
    v = SNAP * (wp.float64(low[1]) + HALF)
    reach = SNAP * wp.float64(side - 1)
    for k in range(3):
        x = lines[k, 1]
        y = lines[k, 2]
        most = lines[k, 0] + x * u + y * v + reach * (wp.max(x, ZERO) + wp.max(y, ZERO))
        if most <= ZERO:
            return True
    return False


@wp.func
def depth_plane(footprint: Footprint):
    """The depth of a face where both coordinates are 0, and its slopes."""
    p = to_raster(footprint.corners[0], footprint.axis)
    normal = to_raster(area_vector(footprint.corners), footprint.axis)
    steep = -ONE / normal[0]
    slope_u = steep * normal[1]
    slope_v = steep * normal[2]
    return wp.vec3d(p[0] - slope_u * p[1] - slope_v * p[2], slope_u, slope_v)


@wp.func
def covered_pixels(a: wp.float64, b: wp.float64, c: wp.float64, low: wp.int32, high: wp.int32):
    """The first pixel from ``low`` to ``high`` whose centre lies between snapped numbers; how many.

    In float32, which is exact where pixels are.
    """
    x = wp.float32(a)
    y = wp.float32(b)
    z = wp.float32(c)
    half = wp.float32(HALF_PIXEL)
    first = wp.ceil((wp.min(x, wp.min(y, z)) - half) / wp.float32(SNAP))
    last = wp.floor((wp.max(x, wp.max(y, z)) - half) / wp.float32(SNAP))
    begin = wp.int32(wp.clamp(first, wp.float32(low), wp.float32(high + 1)))
    end = wp.int32(wp.clamp(last, wp.float32(low - 1), wp.float32(high)))
    return wp.vec2i(begin, wp.max(end - begin + 1, 0))


@wp.func
def footprint_along(corners: wp.mat33d, axis: wp.int32, low: wp.vec3i, high: wp.vec3i):
    """How a face covers the pixels from ``low`` to ``high``, inclusive, along an axis."""
    out = Footprint()
    s0 = snapped(raster_uv(to_raster(corners[0], axis)))
    s1 = snapped(raster_uv(to_raster(corners[1], axis)))
    s2 = snapped(raster_uv(to_raster(corners[2], axis)))
    normal = to_raster(area_vector(corners), axis)
    if cross2(s1 - s0, s2 - s0) == ZERO or normal[0] == ZERO:
        return out
    first = to_raster_pixel(low, axis)
    last = to_raster_pixel(high, axis)
    u = covered_pixels(s0[0], s1[0], s2[0], first[1], last[1])
    v = covered_pixels(s0[1], s1[1], s2[1], first[2], last[2])
    out.axis = axis
    out.corners = corners
    out.low = wp.vec2i(u[0], v[0])
    out.size = wp.vec2i(u[1], v[1])
    return out


@wp.func
def subdivided_footprint(corners: wp.mat33d):
    """A face in k x k equal parts of about a pixel's area, sampled at their middles."""
    out = Footprint()
    out.axis = SUBDIVIDED
    out.corners = corners
    area = HALF * wp.length(area_vector(corners))
    subdivision = wp.max(
        wp.int32(wp.clamp(wp.floor(wp.sqrt(area) + HALF), ZERO, MAX_SUBDIVISION)), 1
    )
    out.low = wp.vec2i(0, subdivision)
    out.size = wp.vec2i(subdivision * subdivision, 1)
    return out


@wp.func
def footprint_of(corners: wp.mat33d, axis: wp.int32, low: wp.vec3i, high: wp.vec3i):
    """``footprint_along`` an axis, or ``subdivided_footprint`` for PER_FACE."""
    if axis == SUBDIVIDED:
        return subdivided_footprint(corners)
    return footprint_along(corners, axis, low, high)


@wp.func
def extent_along(corners: wp.mat33d, x: wp.int32):
    """Least and greatest of a face's corners along an axis, in float32."""
    a = wp.float32(corners[0, x])
    b = wp.float32(corners[1, x])
    c = wp.float32(corners[2, x])
    return wp.vec2f(wp.min(a, wp.min(b, c)), wp.max(a, wp.max(b, c)))


@wp.func
def longest_extent(corners: wp.mat33d):
    """The longest side of a face's box."""
    out = wp.float32(0.0)
    for x in range(3):
        own = extent_along(corners, x)
        out = wp.max(out, own[1] - own[0])
    return out


@wp.func
def pixel_count(footprint: Footprint):
    """Pixels of the rectangle, or parts."""
    return footprint.size[0] * footprint.size[1]


@wp.func
def subtriangle_at(index: wp.int32, subdivision: wp.int32):
    """How far down and aside the middle of a part lies; row r of parts has 2 r + 1 of them."""
    row = wp.int32(wp.sqrt(wp.float64(index) + HALF))
    place = index - row * row
    share = wp.float64(1 + place % 2) * THIRD
    down = (wp.float64(row) + ONE - share) / wp.float64(subdivision)
    return wp.vec2d(down, (wp.float64(place / 2) + share) / wp.float64(subdivision))


@wp.func
def subtriangle_centroid(footprint: Footprint, index: wp.int32):
    """The middle of a part of a divided face."""
    at = subtriangle_at(index, footprint.low[1])
    c = footprint.corners
    return c[0] + at[0] * (c[1] - c[0]) + at[1] * (c[2] - c[1])


@wp.func
def barycentric_weights(corners: wp.mat33d, p: wp.vec3d):
    """Barycentric weights of a point of a face, as seen along its dominant axis."""
    axis = dominant_axis(area_vector(corners))
    at = raster_uv(to_raster(p, axis))
    a = raster_uv(to_raster(corners[0], axis)) - at
    b = raster_uv(to_raster(corners[1], axis)) - at
    c = raster_uv(to_raster(corners[2], axis)) - at
    wa = cross2(b, c)
    wb = cross2(c, a)
    whole = wa + wb + cross2(a, b)
    if whole == ZERO:
        return wp.vec3d(THIRD, THIRD, THIRD)
    return wp.vec3d(wa / whole, wb / whole, ONE - (wa + wb) / whole)
