"""Do two closed triangles share a point? The floating-point filter that settles almost all pairs.

Triangles are 3x3 matrices, one corner a row. ``classify_*`` answer MISS or HIT only when certain;
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
    same_corners,
    without,
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

MISS = wp.constant(0)
HIT = wp.constant(1)


@wp.func
def sides_of_plane(t: wp.mat33d, p0: wp.vec3d, p1: wp.vec3d, p2: wp.vec3d):
    """Filtered sides of three points against the plane of triangle ``t``."""
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
    """True when one of three sides is not decided."""
    return sides[0] == UNDECIDED or sides[1] == UNDECIDED or sides[2] == UNDECIDED


@wp.func
def lone_corner(sides: wp.vec3i):
    """The corner whose side (of two, all decided, not all equal) no other corner shares."""
    lone = 0
    if sides[0] == sides[2]:
        lone = 1
    if sides[0] == sides[1]:
        lone = 2
    return lone


@wp.func
def one_sided(sides: wp.vec3i):
    """True when some side is decided and no two decided ones differ."""
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
    """True when ``t``, with these sides of the plane of ``other``, reaches it only where shared.

    A shared corner lies on that plane; with all other corners strictly on one side, ``t`` meets
    the plane in a shared corner or edge and nowhere else.
    """
    if not one_sided(sides):
        return False
    only = wp.bool(True)
    for i in range(3):
        if sides[i] == UNDECIDED:
            if not has_corner(sharing, other, index_other, t[i], index_t[i]):
                only = False
    return only


@wp.func
def classify_crossing(a: wp.mat33d, b: wp.mat33d, sides_a: wp.vec3i, sides_b: wp.vec3i):
    """MISS, HIT or UNDECIDED for triangles that lie on both sides of each other's plane."""
    if any_undecided(sides_a) or any_undecided(sides_b):
        return UNDECIDED
    # With p0, q0 the lone corners, the planes' common line meets the triangles in the intervals
    # (p0p1, p0p2) and (q0q1, q0q2); two signs tell whether they overlap.
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
    """True when p and q lie, for certain, on different sides of the plane of ``t``."""
    sides = sides_of_plane(t, p, q, q)
    return sides[0] * sides[1] == -1


@wp.func
def classify_segment_tri(p: wp.vec3d, q: wp.vec3d, t: wp.mat33d):
    """MISS, HIT or UNDECIDED for a segment whose ends lie on different sides of ``t``'s plane."""
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
def turn_filtered(e: wp.vec3d, f: wp.vec3d, p: wp.vec3d):
    """1 when, about the axis e, the half-planes towards f and p are less than a right angle apart.

    -1 when they are more than that apart, else UNDECIDED. e, f, p are differences of points. The
    products of two cross products meet 12 roundings; the filter allows 16.
    """
    spread = wp.dot(cross_spread(e, f), cross_spread(e, p))
    value = wp.dot(wp.cross(e, f), wp.cross(e, p))
    return filtered_sign(value, RELATIVE_BOUND * spread + ABSOLUTE_BOUND)


@wp.func
def parted_at_edge(e: wp.vec3d, f: wp.vec3d, p: wp.vec3d, q: wp.vec3d):
    """True when p and q lie behind the plane through e that faces f."""
    return turn_filtered(e, f, p) == -1 and turn_filtered(e, f, q) == -1


@wp.func
def parted_at_an_edge(a: wp.mat33d, b: wp.mat33d):
    """True when all of ``b`` lies behind an edge of ``a``."""
    parted = wp.bool(False)
    i = wp.int32(0)
    while i < 3 and not parted:  # a loop that stays one: this is rare
        start = a[i]
        e = a[(i + 1) % 3] - start
        f = a[(i + 2) % 3] - start
        behind = parted_at_edge(e, f, b[0] - start, b[1] - start)
        parted = behind and turn_filtered(e, f, b[2] - start) == -1
        i += 1
    return parted


@wp.func
def classify_shared_edge(a: wp.mat33d, b: wp.mat33d):
    """MISS or UNDECIDED for coplanar triangles with a[0] a[1] = b[0] b[1]: folded over?"""
    if turn_filtered(a[1] - a[0], a[2] - a[0], b[2] - a[0]) == -1:
        return MISS
    return UNDECIDED


@wp.func
def classify_shared_corner(a: wp.mat33d, b: wp.mat33d):
    """MISS, HIT or UNDECIDED for triangles with the corner a[0] = b[0]: do they meet beyond it?"""
    p = a[1] - a[0]
    q = a[2] - a[0]
    r = b[1] - a[0]
    s = b[2] - a[0]
    if parted_at_edge(p, q, r, s) or parted_at_edge(q, p, r, s):
        return MISS
    if parted_at_edge(r, s, p, q) or parted_at_edge(s, r, p, q):
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
    """MISS, HIT or UNDECIDED: do two triangles meet beyond the corners they share?

    Args:
        a, b: Corners, one a row.
        relation: What counts as shared (see common_corners).
        index_a, index_b: Vertices of the corners; used where the relation goes by index.

    Guarantee:
        MISS and HIT are exact.
    """
    sides_b = sides_of_plane(a, b[0], b[1], b[2])  # first: callers keep a, and so its plane
    if touches_only_shared(sides_b, sharing, b, index_b, a, index_a):
        return MISS
    sides_a = sides_of_plane(b, a[0], a[1], a[2])
    if touches_only_shared(sides_a, sharing, a, index_a, b, index_b):
        return MISS
    common = common_corners(sharing, a, b, index_a, index_b)
    if common == 0:
        verdict = classify_crossing(a, b, sides_a, sides_b)
        if verdict == UNDECIDED:
            if common_corners(SHARED_BY_POSITION, a, b, index_a, index_b) != 0:
                verdict = HIT  # they touch in a corner of both
            elif parted_at_an_edge(a, b) or parted_at_an_edge(b, a):
                verdict = MISS  # side by side in one plane
        return verdict
    if same_corners(common):
        return HIT
    u = first_common(common)
    rest = without(common, u[1])
    if rest == 0:
        return classify_shared_corner(corner_first(a, u[0]), corner_first(b, u[1]))
    v = first_common(rest)
    return classify_shared_edge(edge_first(a, u[0], v[0]), edge_first(b, u[1], v[1]))
