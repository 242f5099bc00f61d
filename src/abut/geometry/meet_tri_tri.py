"""Where two triangles meet: the segment between two points of their intersection.

Which features meet is decided exactly; the points themselves are rounded float64. A crossing of
an edge with a face is computed from the edge's ends in a fixed order, so that the two faces at
an edge give the same point to the last bit and curves can be joined there.
"""

import warp as wp

from abut.geometry.intersect_tri_tri_exact import (
    point_in_tri,
    segment_meets_tri,
    segments_meet,
)
from abut.geometry.orientation_table import TABLE_SIZE, axis_across, fill_table, side

SMALL = wp.constant(wp.float64(2.0**-100))
LARGE = wp.constant(wp.float64(2.0**100))


@wp.struct
class Meeting:
    """Up to two points of an intersection, the farthest apart of those added."""

    p: wp.vec3d
    q: wp.vec3d
    count: wp.int32
    coplanar: wp.bool


@wp.func
def with_point(meeting: Meeting, r: wp.vec3d):
    """``meeting`` with one more point."""
    out = meeting
    if meeting.count == 0:
        out.p = r
        out.q = r
    else:
        span = wp.length_sq(meeting.q - meeting.p)
        to_p = wp.length_sq(r - meeting.p)
        to_q = wp.length_sq(r - meeting.q)
        if to_p >= to_q and to_p > span:
            out.q = r
        elif to_q > span:
            out.p = r
    out.count = meeting.count + 1
    return out


@wp.func
def comes_before(p: wp.vec3d, q: wp.vec3d):
    """Lexicographic order of points."""
    if p[0] != q[0]:
        return p[0] < q[0]
    if p[1] != q[1]:
        return p[1] < q[1]
    return p[2] < q[2]


@wp.func
def crossing_point(points: wp.array[wp.vec3d], i: wp.int32, j: wp.int32, t: wp.int32):
    """Where the segment i j crosses the plane of the triangle at t; its ends lie on both sides."""
    low = points[i]
    high = points[j]
    if comes_before(high, low):
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
    """The point of segment pq nearest to the line rs."""
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
def with_edge(
    meeting: Meeting,
    points: wp.array[wp.vec3d],
    table: wp.array[wp.int32],
    i: wp.int32,
    j: wp.int32,
    t: wp.int32,
):
    """``meeting`` with the points where the segment i j meets the triangle at t."""
    out = meeting
    if not segment_meets_tri(points, table, i, j, t):
        return out
    i_side = side(table, t, t + 1, t + 2, i)
    j_side = side(table, t, t + 1, t + 2, j)
    if i_side * j_side < 0:
        return with_point(out, crossing_point(points, i, j, t))
    for end in range(2):
        corner = wp.where(end == 0, i, j)
        if point_in_tri(points, table, corner, t):
            out = with_point(out, points[corner])
    if i_side == 0 and j_side == 0:
        for k in range(3):
            m = t + k
            n = t + (k + 1) % 3
            across = wp.max(axis_across(table, i, j, m), axis_across(table, i, j, n)) >= 0
            if across and segments_meet(points, table, i, j, m, n):
                point = closest_on_segment(points[i], points[j], points[m], points[n])
                out = with_point(out, point)
    return out


@wp.func
def halved_exponent(a: wp.mat33d, b: wp.mat33d):
    """Half the binary exponent of the largest coordinate, 0 where products are in range anyway."""
    size = wp.float64(0.0)
    for i in range(3):
        size = wp.max(size, wp.max(wp.max(wp.abs(a[i])), wp.max(wp.abs(b[i]))))
    if size == wp.float64(0.0) or (size > SMALL and size < LARGE):
        return wp.float64(0.0)
    return wp.floor(wp.log2(size) * wp.float64(0.5))


@wp.func
def meet_tri_tri(a: wp.mat33d, b: wp.mat33d):
    """Two points of the intersection of triangles that meet, and whether all lies in one plane.

    Guarantee:
        Approximate. Points are rounded; which features meet is exact.
    """
    # a power of two, in two steps: either alone is in range
    half = halved_exponent(a, b)
    down = wp.pow(wp.float64(2.0), -half)
    up = wp.pow(wp.float64(2.0), half)
    points = wp.zeros(shape=(6,), dtype=wp.vec3d)
    table = wp.zeros(shape=(TABLE_SIZE,), dtype=wp.int32)
    for i in range(3):
        points[i] = a[i]
        points[3 + i] = b[i]
    fill_table(points, table)
    for i in range(6):
        points[i] = points[i] * down * down
    out = Meeting()
    out.coplanar = True
    for k in range(6):
        t = wp.where(k < 3, 0, 3)
        out = with_edge(out, points, table, k, t + (k + 1) % 3, 3 - t)
        if side(table, 3 - t, 4 - t, 5 - t, k) != 0:
            out.coplanar = False
    out.p = out.p * up * up
    out.q = out.q * up * up
    return out
