"""Exact intersection test of two closed triangles, for every finite input.

Two triangles meet exactly when an edge of one meets the other; a triangle of zero area is the
union of its edges. So the test reduces to a segment against a triangle, decided by the signs in an
orientation table. It is rare: only pairs that ``intersect_tri_tri`` leaves undecided reach it.

Corners are numbered: 0, 1, 2 of the first triangle, 3, 4, 5 of the second.
"""

import warp as wp

from abut.geometry.common_corners import first_common, remove_common, same_corners
from abut.geometry.orientation_table import orient2d_at, orient3d_at, projection_axis


@wp.func
def same_point(points: wp.array[wp.vec3d], i: wp.int32, j: wp.int32):
    """Return whether two corners have the same position."""
    return points[i] == points[j]


@wp.func
def between(points: wp.array[wp.vec3d], i: wp.int32, j: wp.int32, k: wp.int32):
    """Return whether k is in the box of i and j; if on their line, it is on the segment."""
    p = points[i]
    q = points[j]
    r = points[k]
    low = wp.min(p, q)
    high = wp.max(p, q)
    return wp.min(low, r) == low and wp.max(high, r) == high


@wp.func
def segments_intersect(
    points: wp.array[wp.vec3d],
    table: wp.array[wp.int32],
    i: wp.int32,
    j: wp.int32,
    k: wp.int32,
    m: wp.int32,
):
    """Return whether the closed segments i j and k m share a point."""
    if orient3d_at(table, i, j, k, m) != 0:
        return False
    axis = wp.max(projection_axis(table, i, j, k), projection_axis(table, i, j, m))
    axis = wp.max(axis, projection_axis(table, k, m, i))
    axis = wp.max(axis, projection_axis(table, k, m, j))
    if axis < 0:  # all on one line
        return between(points, i, j, k) or between(points, i, j, m) or between(points, k, m, i)
    k_side = orient2d_at(table, axis, i, j, k)
    m_side = orient2d_at(table, axis, i, j, m)
    i_side = orient2d_at(table, axis, k, m, i)
    j_side = orient2d_at(table, axis, k, m, j)
    if k_side * m_side < 0 and i_side * j_side < 0:
        return True
    if (k_side == 0 and between(points, i, j, k)) or (m_side == 0 and between(points, i, j, m)):
        return True
    return (i_side == 0 and between(points, k, m, i)) or (j_side == 0 and between(points, k, m, j))


@wp.func
def segment_intersects_edges(
    points: wp.array[wp.vec3d], table: wp.array[wp.int32], i: wp.int32, j: wp.int32, t: wp.int32
):
    """Return whether the segment i j meets an edge of the triangle t, t + 1, t + 2."""
    meets = wp.bool(False)
    for k in range(3):
        if not meets:
            meets = segments_intersect(points, table, i, j, t + k, t + (k + 1) % 3)
    return meets


@wp.func
def no_opposite_signs(s0: wp.int32, s1: wp.int32, s2: wp.int32):
    """Return whether no two of three signs are opposite."""
    return wp.min(wp.min(s0, s1), s2) >= 0 or wp.max(wp.max(s0, s1), s2) <= 0


@wp.func
def point_in_tri(points: wp.array[wp.vec3d], table: wp.array[wp.int32], i: wp.int32, t: wp.int32):
    """Return whether corner i is in the closed triangle t, t + 1, t + 2."""
    axis = projection_axis(table, t, t + 1, t + 2)
    if axis < 0:
        return segment_intersects_edges(points, table, i, i, t)
    if orient3d_at(table, t, t + 1, t + 2, i) != 0:
        return False
    return no_opposite_signs(
        orient2d_at(table, axis, t, t + 1, i),
        orient2d_at(table, axis, t + 1, t + 2, i),
        orient2d_at(table, axis, t + 2, t, i),
    )


@wp.func
def segment_intersects_tri(
    points: wp.array[wp.vec3d], table: wp.array[wp.int32], i: wp.int32, j: wp.int32, t: wp.int32
):
    """Return whether the closed segment i j meets the closed triangle t, t + 1, t + 2."""
    i_side = orient3d_at(table, t, t + 1, t + 2, i)
    j_side = orient3d_at(table, t, t + 1, t + 2, j)
    if i_side * j_side > 0:
        return False
    if i_side * j_side < 0:
        return no_opposite_signs(
            orient3d_at(table, i, j, t, t + 1),
            orient3d_at(table, i, j, t + 1, t + 2),
            orient3d_at(table, i, j, t + 2, t),
        )
    if point_in_tri(points, table, i, t) or point_in_tri(points, table, j, t):
        return True
    return i_side == 0 and j_side == 0 and segment_intersects_edges(points, table, i, j, t)


@wp.func
def triangles_intersect(points: wp.array[wp.vec3d], table: wp.array[wp.int32]):
    """Return whether the two triangles share a point."""
    meets = wp.bool(False)
    for k in range(6):
        if not meets:
            t = wp.where(k < 3, 0, 3)
            meets = segment_intersects_tri(points, table, k, t + (k + 1) % 3, 3 - t)
    return meets


@wp.func
def rays_overlap(
    points: wp.array[wp.vec3d],
    table: wp.array[wp.int32],
    origin: wp.int32,
    i: wp.int32,
    j: wp.int32,
):
    """Return whether the segments from ``origin`` to i and to j share more than ``origin``."""
    p = points[i] - points[origin]
    q = points[j] - points[origin]
    overlap = wp.bool(False)
    for x in range(3):
        if (p[x] > wp.float64(0.0) and q[x] > wp.float64(0.0)) or (
            p[x] < wp.float64(0.0) and q[x] < wp.float64(0.0)
        ):
            overlap = True
    return overlap and projection_axis(table, origin, i, j) < 0


@wp.func
def segment_intersects_tri_beyond(
    points: wp.array[wp.vec3d],
    table: wp.array[wp.int32],
    origin: wp.int32,
    i: wp.int32,
    t: wp.int32,
    u: wp.int32,
):
    """Return whether the segment from ``origin`` to i meets the other triangle outside ``origin``.

    The triangle is t, t + 1, t + 2; its corner u is at ``origin``.
    """
    if same_point(points, origin, i):
        return False
    v = t + (u - t + 1) % 3
    w = t + (u - t + 2) % 3
    if projection_axis(table, t, t + 1, t + 2) < 0:
        return rays_overlap(points, table, origin, i, v) or rays_overlap(
            points, table, origin, i, w
        )
    return point_in_tri(points, table, i, t) or segments_intersect(points, table, origin, i, v, w)


@wp.func
def intersect_beyond_corner(
    points: wp.array[wp.vec3d], table: wp.array[wp.int32], u: wp.int32, v: wp.int32
):
    """Return whether triangles with coincident corners u (0 to 2) and v (3 to 5) meet elsewhere."""
    meets = wp.bool(False)
    for k in range(2):
        mine = wp.where(k == 0, u, v)
        theirs = wp.where(k == 0, v, u)
        t = 3 * k
        p = t + (mine - t + 1) % 3
        q = t + (mine - t + 2) % 3
        if projection_axis(table, t, t + 1, t + 2) >= 0:
            meets = meets or segment_intersects_tri(points, table, p, q, 3 - t)
        elif not meets:
            meets = segment_intersects_tri_beyond(points, table, mine, p, 3 - t, theirs)
            meets = meets or segment_intersects_tri_beyond(points, table, mine, q, 3 - t, theirs)
    return meets


@wp.func
def intersect_beyond_edge(
    points: wp.array[wp.vec3d],
    table: wp.array[wp.int32],
    i: wp.int32,
    j: wp.int32,
    p: wp.int32,
    q: wp.int32,
):
    """Return whether triangles with common edge i j, third corners p and q, meet outside it."""
    if same_point(points, i, j):
        return rays_overlap(points, table, i, p, q)
    if orient3d_at(table, i, j, p, q) != 0:
        return False
    axis_p = projection_axis(table, i, j, p)
    axis_q = projection_axis(table, i, j, q)
    if axis_p >= 0 and axis_q >= 0:
        return orient2d_at(table, axis_p, i, j, p) == orient2d_at(table, axis_p, i, j, q)
    if axis_p >= 0 or axis_q >= 0:
        return False
    # four points of one line: are both third corners beyond the same end of the edge?
    return not (between(points, i, j, p) or between(points, i, j, q) or between(points, p, q, i))


@wp.func
def intersect_tri_tri_exact(
    points: wp.array[wp.vec3d], table: wp.array[wp.int32], common: wp.int32
):
    """Return whether two triangles meet beyond the corners they share.

    Args:
        points: Corners of both.
        table: Their orientation table; not read if all corners are common.
        common: Code of the shared corners (see common_corners); 0 when none are.

    Guarantee:
        Exact for all finite coordinates. Zero-area faces are segments or points; faces with the
        same set of corners always meet (duplicates).
    """
    if same_corners(common):
        return True
    if common == 0:
        return triangles_intersect(points, table)
    u = first_common(common)
    rest = remove_common(common, u[1])
    if rest == 0:
        return intersect_beyond_corner(points, table, u[0], 3 + u[1])
    v = first_common(rest)
    return intersect_beyond_edge(points, table, u[0], v[0], 3 - u[0] - v[0], 6 - u[1] - v[1])
