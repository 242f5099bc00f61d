"""Where two triangles meet: the segment between two points of their intersection.

Which features meet is decided exactly; the points themselves are rounded float64. A crossing of
an edge with a face is computed from the edge's ends in a fixed order, so that the two faces at
an edge give the same point to the last bit and curves can be joined there.
"""

import warp as wp

from abut.geometry.intersect_tri_tri_exact import (
    projection_axis,
    segment_meets_tri,
    segments_meet,
)
from abut.geometry.predicates import orient3d


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
def crossing_point(p: wp.vec3d, q: wp.vec3d, t: wp.mat33d):
    """Where the segment pq crosses the plane of ``t``; its ends must not lie on one side."""
    low = p
    high = q
    if comes_before(q, p):
        low = q
        high = p
    normal = wp.cross(t[1] - t[0], t[2] - t[0])
    below = wp.dot(normal, low - t[0])
    above = wp.dot(normal, high - t[0])
    share = wp.float64(0.5)
    if below != above:
        share = wp.clamp(below / (below - above), wp.float64(0.0), wp.float64(1.0))
    return low + (high - low) * share


@wp.func
def closest_share(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d, s: wp.vec3d):
    """The point of segment pq nearest to the line rs."""
    u = q - p
    v = s - r
    w = r - p
    normal = wp.cross(u, v)
    size = wp.length_sq(normal)
    share = wp.float64(0.5)
    if size > wp.float64(0.0):
        share = wp.clamp(wp.dot(wp.cross(w, v), normal) / size, wp.float64(0.0), wp.float64(1.0))
    return p + u * share


@wp.func
def add_edge(meeting: Meeting, p: wp.vec3d, q: wp.vec3d, t: wp.mat33d, axis: wp.int32):
    """Add the points where the segment pq meets ``t``; ``axis`` is ``t``'s, -1 for zero area."""
    out = meeting
    if not segment_meets_tri(p, q, t):
        return out
    p_side = wp.int32(0)
    q_side = wp.int32(0)
    if axis >= 0:
        p_side = orient3d(t[0], t[1], t[2], p)
        q_side = orient3d(t[0], t[1], t[2], q)
    if p_side == 0 and segment_meets_tri(p, p, t):
        out = with_point(out, p)
    if q_side == 0 and segment_meets_tri(q, q, t):
        out = with_point(out, q)
    if p_side * q_side < 0:
        out = with_point(out, crossing_point(p, q, t))
    elif p_side == 0 and q_side == 0:
        for i in range(3):
            r = t[i]
            s = t[(i + 1) % 3]
            if segments_meet(p, q, r, s):
                if projection_axis(p, q, r) >= 0 or projection_axis(p, q, s) >= 0:
                    out = with_point(out, closest_share(p, q, r, s))
    return out


@wp.func
def meet_tri_tri(a: wp.mat33d, b: wp.mat33d):
    """Two points of the intersection of triangles that meet, and whether it is an area or a line.

    Guarantee:
        Approximate. Points are rounded; that there is one at all is exact.
    """
    out = Meeting()
    axis_a = projection_axis(a[0], a[1], a[2])
    axis_b = projection_axis(b[0], b[1], b[2])
    for i in range(3):
        out = add_edge(out, a[i], a[(i + 1) % 3], b, axis_b)
        out = add_edge(out, b[i], b[(i + 1) % 3], a, axis_a)
    flat = wp.bool(True)
    for i in range(3):
        if orient3d(a[0], a[1], a[2], b[i]) != 0:
            flat = False
        if orient3d(b[0], b[1], b[2], a[i]) != 0:
            flat = False
    out.coplanar = flat
    return out
