"""Do two closed triangles share a point? Exact for every finite input, whatever its shape.

Two triangles meet exactly when an edge of one meets the other; a triangle of zero area is the
union of its edges. So all comes down to a segment against a triangle, decided by orientation
signs alone. Slow and rare: only pairs that ``intersect_tri_tri`` left undecided come here.
"""

import warp as wp

from abut.geometry.common_corners import (
    corner_first,
    edge_first,
    first_common,
    same_corners,
    without,
)
from abut.geometry.predicates import orient2d, orient3d


@wp.func
def projection_axis(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d):
    """An axis along which p, q, r are not seen on one line, or -1 when they are on one."""
    found = wp.int32(-1)
    for axis in range(3):
        if found < 0:
            if orient2d(p, q, r, axis) != 0:
                found = axis
    return found


@wp.func
def between(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d):
    """True when r is in the box of p, q: for r on their line, when r is on the segment."""
    return wp.min(p, q) == wp.min(wp.min(p, q), r) and wp.max(p, q) == wp.max(wp.max(p, q), r)


@wp.func
def segments_meet_in_plane(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d, s: wp.vec3d, axis: wp.int32):
    """Do the closed segments pq, rs of one plane meet? ``axis`` must not lie in that plane."""
    r_side = orient2d(p, q, r, axis)
    s_side = orient2d(p, q, s, axis)
    p_side = orient2d(r, s, p, axis)
    q_side = orient2d(r, s, q, axis)
    if r_side * s_side < 0 and p_side * q_side < 0:
        return True
    if r_side == 0 and between(p, q, r):
        return True
    if s_side == 0 and between(p, q, s):
        return True
    if p_side == 0 and between(r, s, p):
        return True
    return q_side == 0 and between(r, s, q)


@wp.func
def segments_meet(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d, s: wp.vec3d):
    """Do the closed segments pq and rs share a point?"""
    if orient3d(p, q, r, s) != 0:
        return False
    axis = projection_axis(p, q, r)
    if axis < 0:
        axis = projection_axis(p, q, s)
    if axis < 0:
        axis = projection_axis(r, s, p)
    if axis < 0:
        axis = projection_axis(r, s, q)
    if axis < 0:  # all on one line
        return between(p, q, r) or between(p, q, s) or between(r, s, p) or between(r, s, q)
    return segments_meet_in_plane(p, q, r, s, axis)


@wp.func
def segment_meets_edges(p: wp.vec3d, q: wp.vec3d, t: wp.mat33d):
    """Does the segment meet one of the three edges of ``t``?"""
    meets = wp.bool(False)
    for i in range(3):
        if not meets:
            meets = segments_meet(p, q, t[i], t[(i + 1) % 3])
    return meets


@wp.func
def inside_in_plane(p: wp.vec3d, t: wp.mat33d, axis: wp.int32):
    """Is p, a point of the plane of ``t``, in the closed triangle?"""
    s0 = orient2d(t[0], t[1], p, axis)
    s1 = orient2d(t[1], t[2], p, axis)
    s2 = orient2d(t[2], t[0], p, axis)
    return wp.min(wp.min(s0, s1), s2) >= 0 or wp.max(wp.max(s0, s1), s2) <= 0


@wp.func
def segment_meets_tri(p: wp.vec3d, q: wp.vec3d, t: wp.mat33d):
    """Does the closed segment pq (a point when p = q) meet the closed triangle ``t``?"""
    axis = projection_axis(t[0], t[1], t[2])
    if axis < 0:
        return segment_meets_edges(p, q, t)
    p_side = orient3d(t[0], t[1], t[2], p)
    q_side = orient3d(t[0], t[1], t[2], q)
    if p_side * q_side > 0:
        return False
    if p_side == 0 and inside_in_plane(p, t, axis):
        return True
    if q_side == 0 and inside_in_plane(q, t, axis):
        return True
    if p_side == 0 and q_side == 0:
        return segment_meets_edges(p, q, t)
    if p_side == 0 or q_side == 0:
        return False
    s0 = orient3d(p, q, t[0], t[1])
    s1 = orient3d(p, q, t[1], t[2])
    s2 = orient3d(p, q, t[2], t[0])
    return wp.min(wp.min(s0, s1), s2) >= 0 or wp.max(wp.max(s0, s1), s2) <= 0


@wp.func
def intersect_tri_tri_exact(a: wp.mat33d, b: wp.mat33d):
    """Do the closed triangles share a point?

    Guarantee:
        Exact for all finite coordinates; zero-area faces are segments or points.
    """
    meets = wp.bool(False)
    for i in range(3):
        if not meets:
            meets = segment_meets_tri(a[i], a[(i + 1) % 3], b)
        if not meets:
            meets = segment_meets_tri(b[i], b[(i + 1) % 3], a)
    return meets


@wp.func
def rays_overlap(origin: wp.vec3d, p: wp.vec3d, q: wp.vec3d):
    """Do the segments from ``origin`` to p and to q share more than ``origin``?"""
    if projection_axis(origin, p, q) >= 0:
        return False
    overlap = wp.bool(False)
    for i in range(3):
        if (p[i] > origin[i] and q[i] > origin[i]) or (p[i] < origin[i] and q[i] < origin[i]):
            overlap = True
    return overlap


@wp.func
def ray_meets_tri_beyond(origin: wp.vec3d, p: wp.vec3d, t: wp.mat33d):
    """Does the segment from ``origin`` = t[0] to p meet ``t`` outside ``origin``?"""
    if p == origin:
        return False
    if projection_axis(t[0], t[1], t[2]) < 0:
        return rays_overlap(origin, p, t[1]) or rays_overlap(origin, p, t[2])
    return segment_meets_tri(p, p, t) or segments_meet(origin, p, t[1], t[2])


@wp.func
def meet_beyond_corner(a: wp.mat33d, b: wp.mat33d):
    """Do triangles with the corner a[0] = b[0] meet outside that corner?"""
    if projection_axis(a[0], a[1], a[2]) < 0:
        return ray_meets_tri_beyond(a[0], a[1], b) or ray_meets_tri_beyond(a[0], a[2], b)
    if projection_axis(b[0], b[1], b[2]) < 0:
        return ray_meets_tri_beyond(b[0], b[1], a) or ray_meets_tri_beyond(b[0], b[2], a)
    return segment_meets_tri(a[1], a[2], b) or segment_meets_tri(b[1], b[2], a)


@wp.func
def meet_beyond_edge(a: wp.mat33d, b: wp.mat33d):
    """Do triangles with the edge a[0] a[1] = b[0] b[1] meet outside that edge?"""
    if a[0] == a[1]:
        return rays_overlap(a[0], a[2], b[2])
    if orient3d(a[0], a[1], a[2], b[2]) != 0:
        return False
    axis_a = projection_axis(a[0], a[1], a[2])
    axis_b = projection_axis(b[0], b[1], b[2])
    if axis_a >= 0 and axis_b >= 0:
        return orient2d(a[0], a[1], a[2], axis_a) == orient2d(a[0], a[1], b[2], axis_a)
    if axis_a >= 0 or axis_b >= 0:
        return False
    # four points of one line: both third corners beyond the same end of the edge?
    if between(a[0], a[1], a[2]) or between(a[0], a[1], b[2]):
        return False
    return not between(a[2], b[2], a[0])


@wp.func
def intersect_neighbours_exact(a: wp.mat33d, b: wp.mat33d, common: wp.int32):
    """Do two faces of one mesh meet anywhere beyond the corners they share (``common``)?

    Guarantee:
        Exact. Faces with the same set of corners always do (duplicates).
    """
    if common == 0:
        return intersect_tri_tri_exact(a, b)
    if same_corners(common):
        return True
    u = first_common(common)
    rest = without(common, u[1])
    if rest == 0:
        return meet_beyond_corner(corner_first(a, u[0]), corner_first(b, u[1]))
    v = first_common(rest)
    return meet_beyond_edge(edge_first(a, u[0], v[0]), edge_first(b, u[1], v[1]))
