"""Floating-point filter of the intersection test of two closed triangles.

Triangles are 3x3 matrices, one corner a row. ``classify_*`` return MISS or HIT only when certain;
UNDECIDED pairs (touching, coplanar, degenerate, or too close to call) go to
``intersect_tri_tri_exact``. Signs after Guigue and Devillers 2003.
"""

import warp as wp

from abut.geometry.common_corners import (
    SHARED_BY_POSITION,
    common_corners,
    corner_first,
    edge_first,
    first_common,
    has_corner,
    remove_common,
    same_corners,
)
from abut.geometry.predicates import (
    ABSOLUTE_BOUND,
    RELATIVE_BOUND,
    UNDECIDED,
    cross_spread,
    filtered_sign,
    orient3d_filtered,
    side_filtered,
)
from abut.geometry.separating_plane import separated_at_corner, separated_by_plane

MISS = wp.constant(0)
HIT = wp.constant(1)


@wp.func
def sides_of_plane(t: wp.mat33d, p0: wp.vec3d, p1: wp.vec3d, p2: wp.vec3d):
    """Return the filtered sides of three points of the plane of triangle ``t``."""
    u = t[1] - t[0]
    v = t[2] - t[0]
    normal = wp.cross(u, v)
    spread = cross_spread(u, v)
    return wp.vec3i(
        side_filtered(normal, spread, p0 - t[0]),
        side_filtered(normal, spread, p1 - t[0]),
        side_filtered(normal, spread, p2 - t[0]),
    )


@wp.func
def any_undecided(sides: wp.vec3i):
    """Return whether one of three sides is not decided."""
    return sides[0] == UNDECIDED or sides[1] == UNDECIDED or sides[2] == UNDECIDED


@wp.func
def all_undecided(sides: wp.vec3i):
    """Return whether none of three sides is decided."""
    return sides[0] == UNDECIDED and sides[1] == UNDECIDED and sides[2] == UNDECIDED


@wp.func
def lone_corner(sides: wp.vec3i):
    """Return the corner alone on its side; sides are decided and not all equal."""
    lone = 0
    if sides[0] == sides[2]:
        lone = 1
    if sides[0] == sides[1]:
        lone = 2
    return lone


@wp.func
def on_one_side(sides: wp.vec3i):
    """Return whether some side is decided and no two decided ones differ."""
    up = wp.int32(sides[0] == 1) | wp.int32(sides[1] == 1) | wp.int32(sides[2] == 1)
    down = wp.int32(sides[0] == -1) | wp.int32(sides[1] == -1) | wp.int32(sides[2] == -1)
    return up != down


@wp.func
def touches_only_shared(
    sides: wp.vec3i,
    sharing: wp.int32,
    t: wp.mat33d,
    index_t: wp.vec3i,
    other: wp.mat33d,
    index_other: wp.vec3i,
):
    """Return whether ``t``, with these sides of ``other``'s plane, meets it in shared corners only.

    A shared corner lies on that plane; if all other corners are strictly on one side, ``t`` meets
    the plane in a shared corner or edge and nowhere else.
    """
    if not on_one_side(sides):
        return False
    only = wp.bool(True)
    for i in range(3):
        if sides[i] == UNDECIDED:
            if not has_corner(sharing, other, index_other, t[i], index_t[i]):
                only = False
    return only


@wp.func
def classify_crossing(a: wp.mat33d, b: wp.mat33d, sides_a: wp.vec3i, sides_b: wp.vec3i):
    """Return MISS, HIT or UNDECIDED for triangles on both sides of each other's plane."""
    if any_undecided(sides_a) or any_undecided(sides_b):
        return UNDECIDED
    # With p0, q0 the lone corners, the planes' common line meets the triangles in the intervals
    # (p0p1, p0p2) and (q0q1, q0q2); two signs decide whether they overlap.
    i = lone_corner(sides_a)
    j = lone_corner(sides_b)
    p0 = a[i]
    p1 = a[(i + 1) % 3]
    p2 = a[(i + 2) % 3]
    q0 = b[j]
    q1 = b[(j + 1) % 3]
    q2 = b[(j + 2) % 3]
    if sides_a[i] < 0:  # let q0 q1 q2 be seen counter-clockwise from p0
        q = q1
        q1 = q2
        q2 = q
    if sides_b[j] < 0:
        p = p1
        p1 = p2
        p2 = p
    first = orient3d_filtered(p0, p1, q0, q1)
    second = orient3d_filtered(p0, p2, q2, q0)
    if first == 1 or second == 1:
        return MISS
    if first == UNDECIDED or second == UNDECIDED:
        return UNDECIDED
    return HIT


@wp.func
def across_plane(t: wp.mat33d, p: wp.vec3d, q: wp.vec3d):
    """Return whether p and q are certainly on different sides of the plane of ``t``."""
    sides = sides_of_plane(t, p, q, q)
    return sides[0] * sides[1] == -1


@wp.func
def classify_segment_tri(p: wp.vec3d, q: wp.vec3d, t: wp.mat33d):
    """Return MISS, HIT or UNDECIDED for a segment with ends on both sides of ``t``'s plane."""
    s0 = orient3d_filtered(p, q, t[0], t[1])
    s1 = orient3d_filtered(p, q, t[1], t[2])
    s2 = orient3d_filtered(p, q, t[2], t[0])
    if any_undecided(wp.vec3i(s0, s1, s2)):
        if s0 * s1 == -1 or s1 * s2 == -1 or s2 * s0 == -1:
            return MISS
        return UNDECIDED
    if s0 == s1 and s1 == s2:
        return HIT
    return MISS


@wp.func
def half_plane_sign_filtered(e: wp.vec3d, f: wp.vec3d, p: wp.vec3d):
    """Return 1 if the half-planes from the axis e towards f and p make less than a right angle.

    Return -1 if they make more, else UNDECIDED. e, f, p are differences of points. Products of two
    cross products have 12 roundings; the filter allows 16.
    """
    spread = wp.dot(cross_spread(e, f), cross_spread(e, p))
    value = wp.dot(wp.cross(e, f), wp.cross(e, p))
    return filtered_sign(value, RELATIVE_BOUND * spread + ABSOLUTE_BOUND)


@wp.func
def classify_shared_edge(a: wp.mat33d, b: wp.mat33d):
    """Return MISS or UNDECIDED for coplanar triangles with common edge a[0] a[1] = b[0] b[1]."""
    if half_plane_sign_filtered(a[1] - a[0], a[2] - a[0], b[2] - a[0]) == -1:
        return MISS
    return UNDECIDED


@wp.func
def classify_shared_corner(a: wp.mat33d, b: wp.mat33d):
    """Return MISS, HIT or UNDECIDED for triangles with the common corner a[0] = b[0], beyond it."""
    if separated_at_corner(a, b):
        return MISS
    if not (across_plane(b, a[1], a[2]) and across_plane(a, b[1], b[2])):
        return UNDECIDED
    first = classify_segment_tri(a[1], a[2], b)
    if first == HIT:
        return HIT
    second = classify_segment_tri(b[1], b[2], a)
    if second == HIT:
        return HIT
    if first == UNDECIDED or second == UNDECIDED:
        return UNDECIDED
    return MISS


@wp.func
def classify_tri_tri(
    a: wp.mat33d, b: wp.mat33d, sharing: wp.int32, index_a: wp.vec3i, index_b: wp.vec3i
):
    """Return MISS, HIT or UNDECIDED for two triangles, beyond the corners they share.

    Args:
        a, b: Corners, one a row.
        sharing: Rule for shared corners (see common_corners).
        index_a, index_b: Vertices of the corners; used by SHARED_BY_INDEX.

    Guarantee:
        MISS and HIT are exact.
    """
    sides_b = sides_of_plane(a, b[0], b[1], b[2])  # first: callers keep a, and so its plane
    if touches_only_shared(sides_b, sharing, b, index_b, a, index_a):
        return MISS
    sides_a = wp.vec3i(UNDECIDED, UNDECIDED, UNDECIDED)
    if not all_undecided(sides_b):  # else they lie in one plane, as far as the filter knows
        sides_a = sides_of_plane(b, a[0], a[1], a[2])
        if touches_only_shared(sides_a, sharing, a, index_a, b, index_b):
            return MISS
    common = common_corners(sharing, a, b, index_a, index_b)
    if common == 0:
        verdict = classify_crossing(a, b, sides_a, sides_b)
        if verdict == UNDECIDED:
            if common_corners(SHARED_BY_POSITION, a, b, index_a, index_b) != 0:
                verdict = HIT  # they touch in a corner of both
            elif separated_by_plane(a, b):
                verdict = MISS
        return verdict
    if same_corners(common):
        return HIT
    u = first_common(common)
    rest = remove_common(common, u[1])
    if rest == 0:
        return classify_shared_corner(corner_first(a, u[0]), corner_first(b, u[1]))
    v = first_common(rest)
    return classify_shared_edge(edge_first(a, u[0], v[0]), edge_first(b, u[1], v[1]))
