"""The segment in which a triangle crosses another one that is shifted by an infinitesimal.

Which edges cross is decided by ``shifted_signs``, exactly. Two triangles then cross in no point or
in a segment whose two ends are crossings of an edge with the interior of the other triangle. The
points are those without the shift, rounded, and computed from the ends of an edge in a fixed
order, so that all faces at an edge give the same point.
"""

import warp as wp

from abut.geometry.predicates import orient3d
from abut.geometry.segment_tri_tri import lexicographic_less
from abut.geometry.shifted_signs import normal_sign, shifted_edges

NO_EDGE = wp.constant(-1)


@wp.struct
class CrossingSegment:
    """The segment of two outward faces along cross(normal of a, normal of b).

    ``start_edge`` and ``stop_edge``: 0 to 2, the edge of a from that corner on; 3 to 5, of b;
    NO_EDGE if the faces do not cross. Shares are positions along these edges.
    """

    start: wp.vec3d
    stop: wp.vec3d
    start_edge: wp.int32
    stop_edge: wp.int32
    start_share: wp.float64
    stop_share: wp.float64
    coplanar: wp.bool


@wp.func
def sides_of_corners(t: wp.mat33d, corners: wp.mat33d):
    """Return the sides of a triangle's plane on which three corners are, 0 on it."""
    return wp.vec3i(
        orient3d(t[0], t[1], t[2], corners[0]),
        orient3d(t[0], t[1], t[2], corners[1]),
        orient3d(t[0], t[1], t[2], corners[2]),
    )


@wp.func
def without_zeros(sides: wp.vec3i, sign: wp.int32):
    """Return sides with every 0 replaced."""
    return wp.vec3i(
        wp.where(sides[0] == 0, sign, sides[0]),
        wp.where(sides[1] == 0, sign, sides[1]),
        wp.where(sides[2] == 0, sign, sides[2]),
    )


@wp.func
def all_equal(s: wp.vec3i):
    """Return whether three signs are the same."""
    return s[0] == s[1] and s[1] == s[2]


@wp.func
def edge_crossing(u: wp.vec3d, v: wp.vec3d, t: wp.mat33d):
    """Return where an edge with ends on both sides crosses a plane: the point, and its share."""
    swapped = lexicographic_less(v, u)
    low = wp.where(swapped, v, u)
    high = wp.where(swapped, u, v)
    normal = wp.cross(t[1] - t[0], t[2] - t[0])
    below = wp.dot(normal, low - t[0])
    above = wp.dot(normal, high - t[0])
    share = wp.float64(0.5)
    if below != above:
        share = wp.clamp(below / (below - above), wp.float64(0.0), wp.float64(1.0))
    p = low + (high - low) * share
    share = wp.where(swapped, wp.float64(1.0) - share, share)
    return wp.vec4d(p[0], p[1], p[2], share)


@wp.func
def add_crossing(segment: CrossingSegment, edge: wp.int32, starts: wp.bool, at: wp.vec4d):
    """Return ``segment`` with its start or its end set."""
    out = segment
    if starts:
        out.start = wp.vec3d(at[0], at[1], at[2])
        out.start_edge = edge
        out.start_share = at[3]
    else:
        out.stop = wp.vec3d(at[0], at[1], at[2])
        out.stop_edge = edge
        out.stop_share = at[3]
    return out


@wp.func
def cross_tri_tri(a: wp.mat33d, b: wp.mat33d):
    """Return the segment in which ``a`` crosses the shifted ``b``.

    Guarantee:
        Exact for triangles with an area; points are rounded.
    """
    out = CrossingSegment()
    out.start_edge = NO_EDGE
    out.stop_edge = NO_EDGE
    of_a = sides_of_corners(b, a)
    out.coplanar = of_a[0] == 0 and of_a[1] == 0 and of_a[2] == 0
    of_a = without_zeros(of_a, -normal_sign(b))
    if all_equal(of_a):
        return out
    of_b = without_zeros(sides_of_corners(a, b), normal_sign(a))
    if all_equal(of_b):
        return out
    signs = wp.matrix(shape=(3, 3), dtype=wp.int32)
    for i in range(3):
        for j in range(3):
            signs[i, j] = shifted_edges(a[i], a[(i + 1) % 3], b[j], b[(j + 1) % 3])
    for k in range(3):
        n = (k + 1) % 3
        # a's boundary leaves b where the segment starts, and returns where it ends
        if of_a[k] != of_a[n] and signs[k, 0] == signs[k, 1] and signs[k, 1] == signs[k, 2]:
            out = add_crossing(out, k, of_a[k] < 0, edge_crossing(a[k], a[n], b))
        if of_b[k] != of_b[n] and signs[0, k] == signs[1, k] and signs[1, k] == signs[2, k]:
            out = add_crossing(out, 3 + k, of_b[k] > 0, edge_crossing(b[k], b[n], a))
    return out
