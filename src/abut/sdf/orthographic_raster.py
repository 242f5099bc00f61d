"""Orthographic raster of the field's box: the pixels that a face of a posed mesh covers.

Morvan et al. 2008, sections 3.2 and 4.2. Pixels are squares of one lattice over the field's box. A
face is drawn along the dominant axis of its normal; its fragments are the pixels whose centres it
covers. Corners are snapped to 1/256 of a pixel and edges are evaluated exactly, so that faces that
share an edge share no fragment and leave none out. Lengths are in pixels.
"""

from typing import Any

import warp as wp

from abut.bounds.float32 import to_vec3f

SNAP = wp.constant(wp.float64(256.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
ZERO = wp.constant(wp.float64(0.0))
THIRD = wp.constant(wp.float64(1.0 / 3.0))
MAX_SUBDIVISION = wp.constant(wp.float64(8192.0))  # subtriangles along a side
HALF_PIXEL = wp.constant(wp.float64(128.0))  # in steps
SUBDIVIDED = wp.constant(wp.int32(3))  # in place of an axis


@wp.struct
class SampledMesh:
    """A mesh to be sampled; ``velocities`` of its vertices are in its own frame, or empty."""

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    velocities: wp.array[wp.vec3d]


@wp.struct
class Footprint:
    """A rectangle of pixels that a face may cover along an axis, or a run of its subtriangles."""

    axis: wp.int32
    corners: wp.mat33d  # one a row
    low: wp.vec2i  # first pixel; (first subtriangle, subtriangles along a side)
    size: wp.vec2i  # pixels; (subtriangles, 1)


@wp.func
def area_vector(corners: wp.mat33d):
    """Return the normal of a face; its length is twice the area."""
    return wp.cross(corners[1] - corners[0], corners[2] - corners[0])


@wp.func
def dominant_axis(normal: wp.vec3d):
    """Return the axis of a normal's largest component, the first of equals."""
    n = wp.abs(to_vec3f(normal))
    if n[0] >= n[1] and n[0] >= n[2]:
        return wp.int32(0)
    return wp.where(n[1] >= n[2], 1, 2)


@wp.func
def to_raster(p: Any, axis: wp.int32):
    """Return (depth, u, v) of a point or pixel (x, y, z) in the raster along an axis."""
    if axis == 1:
        return type(p)(p[1], p[2], p[0])
    if axis == 2:
        return type(p)(p[2], p[0], p[1])
    return p


@wp.func
def from_raster(q: Any, axis: wp.int32):
    """Return (x, y, z) of a point or pixel (depth, u, v) of the raster along an axis."""
    return to_raster(q, (3 - axis) % 3)  # both shift the coordinates cyclically


@wp.func
def raster_uv(p: wp.vec3d, axis: wp.int32):
    """Return (u, v) of a point in the raster along an axis."""
    q = to_raster(p, axis)
    return wp.vec2d(q[1], q[2])


@wp.func
def snapped(p: wp.vec3d, axis: wp.int32):
    """Return (u, v) of a point in the raster, in steps of 1/256 of a pixel, rounded."""
    at = raster_uv(p, axis)
    return wp.vec2d(wp.floor(at[0] * SNAP + HALF), wp.floor(at[1] * SNAP + HALF))


@wp.func
def cross2(a: wp.vec2d, b: wp.vec2d):
    """Return twice the signed area of two vectors; exact for snapped vectors near the box."""
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def edge_function(a: wp.vec2d, b: wp.vec2d):
    """Return (c, x, y): c + x u + y v is positive left of the edge from a to b, in steps.

    On the edge it is one half for one of the two faces that share it, so that one of them owns each
    point. All other values are integers.
    """
    edge = b - a
    rest = edge[1] * a[0] - edge[0] * a[1]
    if edge[1] > ZERO or (edge[1] == ZERO and edge[0] < ZERO):
        rest += HALF
    return wp.vec3d(rest, -edge[1], edge[0])


@wp.func
def edge_functions(footprint: Footprint):
    """Return the edge functions of a face, one a row."""
    s0 = snapped(footprint.corners[0], footprint.axis)
    s1 = snapped(footprint.corners[1], footprint.axis)
    s2 = snapped(footprint.corners[2], footprint.axis)
    if cross2(s1 - s0, s2 - s0) < ZERO:
        return wp.matrix_from_rows(
            edge_function(s0, s2), edge_function(s2, s1), edge_function(s1, s0)
        )
    return wp.matrix_from_rows(edge_function(s0, s1), edge_function(s1, s2), edge_function(s2, s0))


@wp.func
def is_square_outside(lines: wp.mat33d, low: wp.vec2i, side: wp.int32):
    """Return whether all pixels of a square are on the outer side of an edge."""
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
    """Return the depth of a face at u = v = 0, and its slopes."""
    p = to_raster(footprint.corners[0], footprint.axis)
    normal = to_raster(area_vector(footprint.corners), footprint.axis)
    steep = -ONE / normal[0]
    slope_u = steep * normal[1]
    slope_v = steep * normal[2]
    return wp.vec3d(p[0] - slope_u * p[1] - slope_v * p[2], slope_u, slope_v)


@wp.func
def pixel_range(a: wp.float64, b: wp.float64, c: wp.float64, low: wp.int32, high: wp.int32):
    """Return the first pixel in [low, high] with its centre between snapped numbers, and the count.

    Computed in float32, which is exact for pixels.
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
    """Return the footprint of a face on the pixels from ``low`` to ``high``, inclusive."""
    out = Footprint()
    s0 = snapped(corners[0], axis)
    s1 = snapped(corners[1], axis)
    s2 = snapped(corners[2], axis)
    normal = to_raster(area_vector(corners), axis)
    if cross2(s1 - s0, s2 - s0) == ZERO or normal[0] == ZERO:
        return out
    first = to_raster(low, axis)
    last = to_raster(high, axis)
    u = pixel_range(s0[0], s1[0], s2[0], first[1], last[1])
    v = pixel_range(s0[1], s1[1], s2[1], first[2], last[2])
    out.axis = axis
    out.corners = corners
    out.low = wp.vec2i(u[0], v[0])
    out.size = wp.vec2i(u[1], v[1])
    return out


@wp.func
def subdivided_footprint(corners: wp.mat33d):
    """Divide a face into k x k congruent subtriangles of about a pixel's area."""
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
    """Return the footprint along an axis, or the subtriangles for SUBDIVIDED."""
    if axis == SUBDIVIDED:
        return subdivided_footprint(corners)
    return footprint_along(corners, axis, low, high)


@wp.func
def extent_along(corners: wp.mat33d, x: wp.int32):
    """Return the least and the greatest coordinate of a face along an axis, in float32."""
    a = wp.float32(corners[0, x])
    b = wp.float32(corners[1, x])
    c = wp.float32(corners[2, x])
    return wp.vec2f(wp.min(a, wp.min(b, c)), wp.max(a, wp.max(b, c)))


@wp.func
def pixel_count(footprint: Footprint):
    """Return the pixels of a footprint's rectangle, or its subtriangles."""
    return footprint.size[0] * footprint.size[1]


@wp.func
def subtriangle_row(index: wp.int32):
    """Return the row of a subtriangle; row r has 2 r + 1."""
    return wp.int32(wp.sqrt(wp.float64(index) + HALF))


@wp.func
def subtriangle_at(index: wp.int32, subdivision: wp.int32):
    """Return the centroid of a subtriangle along edges 01 and 12, as shares of them."""
    row = subtriangle_row(index)
    place = index - row * row
    share = wp.float64(1 + place % 2) * THIRD
    down = (wp.float64(row) + ONE - share) / wp.float64(subdivision)
    return wp.vec2d(down, (wp.float64(place / 2) + share) / wp.float64(subdivision))


@wp.func
def subtriangle_centroid(footprint: Footprint, index: wp.int32):
    """Return the centroid of a subtriangle."""
    at = subtriangle_at(index, footprint.low[1])
    c = footprint.corners
    return c[0] + at[0] * (c[1] - c[0]) + at[1] * (c[2] - c[1])


@wp.func
def barycentric_weights(corners: wp.mat33d, p: wp.vec3d):
    """Return the barycentric weights of a point of a face, seen along its dominant axis."""
    axis = dominant_axis(area_vector(corners))
    at = raster_uv(p, axis)
    a = raster_uv(corners[0], axis) - at
    b = raster_uv(corners[1], axis) - at
    c = raster_uv(corners[2], axis) - at
    wa = cross2(b, c)
    wb = cross2(c, a)
    whole = wa + wb + cross2(a, b)
    if whole == ZERO:
        return wp.vec3d(THIRD, THIRD, THIRD)
    return wp.vec3d(wa / whole, wb / whole, ONE - (wa + wb) / whole)
