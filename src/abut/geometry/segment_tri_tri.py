"""The segment in which two triangles intersect.

The features that meet are found exactly; the points are rounded float64. A crossing of an edge
with a face is computed from the edge's ends in a fixed order, so that the two faces at an edge
give the same point to the last bit and segments can be joined there.
"""

import warp as wp

from abut.geometry.intersect_tri_tri_exact import (
    point_in_tri,
    segment_intersects_tri,
    segments_intersect,
)
from abut.geometry.orientation_table import (
    TABLE_SIZE,
    fill_orientation_table,
    orient3d_at,
    projection_axis,
)

SMALL = wp.constant(wp.float64(2.0**-100))
LARGE = wp.constant(wp.float64(2.0**100))


@wp.struct
class IntersectionSegment:
    """Up to two points of an intersection, the farthest apart of those added."""

    p: wp.vec3d
    q: wp.vec3d
    count: wp.int32
    coplanar: wp.bool


@wp.func
def extend_segment(segment: IntersectionSegment, r: wp.vec3d):
    """Return ``segment`` extended by one more point."""
    out = segment
    if segment.count == 0:
        out.p = r
        out.q = r
    else:
        span = wp.length_sq(segment.q - segment.p)
        to_p = wp.length_sq(r - segment.p)
        to_q = wp.length_sq(r - segment.q)
        if to_p >= to_q and to_p > span:
            out.q = r
        elif to_q > span:
            out.p = r
    out.count = segment.count + 1
    return out


@wp.func
def lexicographic_less(p: wp.vec3d, q: wp.vec3d):
    """Return whether p precedes q in lexicographic order."""
    if p[0] != q[0]:
        return p[0] < q[0]
    if p[1] != q[1]:
        return p[1] < q[1]
    return p[2] < q[2]


@wp.func
def crossing_point(points: wp.array[wp.vec3d], i: wp.int32, j: wp.int32, t: wp.int32):
    """Return the point where the segment i j, with ends on both sides, crosses the plane at t."""
    low = points[i]
    high = points[j]
    if lexicographic_less(high, low):
        low = points[j]
        high = points[i]
    corner = points[t]
    normal = wp.cross(points[t + 1] - corner, points[t + 2] - corner)
    below = wp.dot(normal, low - corner)
    above = wp.dot(normal, high - corner)
    share = wp.float64(0.5)
    if below != above:
        share = wp.clamp(below / (below - above), wp.float64(0.0), wp.float64(1.0))
    return low + (high - low) * share


@wp.func
def closest_on_segment(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d, s: wp.vec3d):
    """Return the point of segment pq nearest to the line rs."""
    u = q - p
    v = s - r
    normal = wp.cross(u, v)
    size = wp.length_sq(normal)
    share = wp.float64(0.5)
    if size > wp.float64(0.0):
        share = wp.dot(wp.cross(r - p, v), normal) / size
        share = wp.clamp(share, wp.float64(0.0), wp.float64(1.0))
    return p + u * share


@wp.func
def extend_by_edge(
    segment: IntersectionSegment,
    points: wp.array[wp.vec3d],
    table: wp.array[wp.int32],
    i: wp.int32,
    j: wp.int32,
    t: wp.int32,
):
    """Return ``segment`` extended by the points where the edge i j meets the triangle at t."""
    out = segment
    if not segment_intersects_tri(points, table, i, j, t):
        return out
    i_side = orient3d_at(table, t, t + 1, t + 2, i)
    j_side = orient3d_at(table, t, t + 1, t + 2, j)
    if i_side * j_side < 0:
        return extend_segment(out, crossing_point(points, i, j, t))
    for end in range(2):
        corner = wp.where(end == 0, i, j)
        if point_in_tri(points, table, corner, t):
            out = extend_segment(out, points[corner])
    if i_side == 0 and j_side == 0:
        for k in range(3):
            m = t + k
            n = t + (k + 1) % 3
            across = wp.max(projection_axis(table, i, j, m), projection_axis(table, i, j, n)) >= 0
            if across and segments_intersect(points, table, i, j, m, n):
                point = closest_on_segment(points[i], points[j], points[m], points[n])
                out = extend_segment(out, point)
    return out


@wp.func
def halved_exponent(a: wp.mat33d, b: wp.mat33d):
    """Return half the binary exponent of the largest coordinate, 0 if products are in range."""
    size = wp.float64(0.0)
    for i in range(3):
        size = wp.max(size, wp.max(wp.max(wp.abs(a[i])), wp.max(wp.abs(b[i]))))
    if size == wp.float64(0.0) or (size > SMALL and size < LARGE):
        return wp.float64(0.0)
    return wp.floor(wp.log2(size) * wp.float64(0.5))


@wp.func
def segment_tri_tri(a: wp.mat33d, b: wp.mat33d):
    """Return two points of the intersection of triangles that meet, and whether they are coplanar.

    Guarantee:
        Approximate. Points are rounded; the features that meet are exact.
    """
    # scale by a power of two, in two steps that are each in range
    half = halved_exponent(a, b)
    down = wp.pow(wp.float64(2.0), -half)
    up = wp.pow(wp.float64(2.0), half)
    points = wp.zeros(shape=(6,), dtype=wp.vec3d)
    table = wp.zeros(shape=(TABLE_SIZE,), dtype=wp.int32)
    for i in range(3):
        points[i] = a[i]
        points[3 + i] = b[i]
    fill_orientation_table(points, table, 0, 1)
    for i in range(6):
        points[i] = points[i] * down * down
    out = IntersectionSegment()
    out.coplanar = True
    for k in range(6):
        t = wp.where(k < 3, 0, 3)
        out = extend_by_edge(out, points, table, k, t + (k + 1) % 3, 3 - t)
        if orient3d_at(table, 3 - t, 4 - t, 5 - t, k) != 0:
            out.coplanar = False
    out.p = out.p * up * up
    out.q = out.q * up * up
    return out
