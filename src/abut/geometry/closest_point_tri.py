"""Closest point of a triangle to a point, in float64.

A foot inside the triangle is found in the frame of an edge and its height, orthogonalised twice:
it is the foot on a triangle whose corners are off by a few roundings, for slivers too. A triangle
without area is the union of its edges. A projection on an edge starts from its nearer end, which
is more accurate and the same for both faces at the edge.
"""

import warp as wp

from abut.geometry.predicates import orient2d, orient3d

ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))
LEAST = wp.constant(wp.float64(1e-280))  # smaller squares of areas lose accuracy
NEARLY_ON = wp.constant(wp.float64(2.0**-44))  # of the largest coordinate difference


@wp.struct
class Foot:
    """A point of a triangle by its barycentric coordinates, and its squared distance."""

    squared: wp.float64
    weights: wp.vec3d


@wp.func
def foot_on_edge(from_a: wp.vec3d, from_b: wp.vec3d, edge: wp.vec3d):
    """Return (share of b, squared distance) of the foot on the edge a, b = a + edge.

    ``from_a`` and ``from_b`` lead from the ends to the point.
    """
    a_nearer = wp.dot(from_a, from_a) <= wp.dot(from_b, from_b)
    out = wp.where(a_nearer, from_a, from_b)
    along = wp.where(a_nearer, edge, -edge)
    step = wp.dot(out, along)
    share = ZERO
    if step > ZERO:
        share = wp.min(step / wp.dot(along, along), ONE)
        out = out - share * along
    return wp.vec2d(wp.where(a_nearer, share, ONE - share), wp.dot(out, out))


@wp.func
def foot_on_edges(
    from_a: wp.vec3d, from_b: wp.vec3d, from_c: wp.vec3d, ab: wp.vec3d, bc: wp.vec3d, ca: wp.vec3d
):
    """Return the nearest foot on the three edges, the first of equal ones."""
    on_ab = foot_on_edge(from_a, from_b, ab)
    on_bc = foot_on_edge(from_b, from_c, bc)
    on_ca = foot_on_edge(from_c, from_a, ca)
    foot = Foot()
    foot.squared = on_ab[1]
    foot.weights = wp.vec3d(ONE - on_ab[0], on_ab[0], ZERO)
    if on_bc[1] < foot.squared:
        foot.squared = on_bc[1]
        foot.weights = wp.vec3d(ZERO, ONE - on_bc[0], on_bc[0])
    if on_ca[1] < foot.squared:
        foot.squared = on_ca[1]
        foot.weights = wp.vec3d(on_ca[0], ZERO, ONE - on_ca[0])
    return foot


@wp.func
def is_beyond(p: wp.vec3d, t: wp.mat33d, squared: wp.float64):
    """Return whether a triangle is beyond a plane at a squared distance from p.

    The plane faces the centroid of the triangle, which makes the test tight from afar. Rounding is
    not accounted for: ``squared`` must include a margin.
    """
    a = t[0] - p
    b = t[1] - p
    c = t[2] - p
    way = a + b + c
    least = wp.min(wp.dot(a, way), wp.min(wp.dot(b, way), wp.dot(c, way)))
    return least > ZERO and least * least > squared * wp.dot(way, way)


@wp.func
def closest_point_tri(p: wp.vec3d, t: wp.mat33d):
    """Return the foot of p on the triangle with the corners t, one a row.

    Guarantee:
        The foot is that of a triangle and a point moved by a few roundings of their differences.
        A corner that equals p is found at distance 0.
    """
    ab = t[1] - t[0]
    ac = t[2] - t[0]
    from_a = p - t[0]
    length = wp.dot(ab, ab)
    per_ab = ONE / length
    lean = wp.dot(ac, ab) * per_ab
    height = ac - lean * ab
    more = wp.dot(height, ab) * per_ab
    height = height - more * ab
    along = wp.dot(from_a, ab) * per_ab
    breadth = wp.dot(height, height)
    share_c = wp.dot(from_a, height) / breadth
    share_b = along - share_c * (lean + more)
    share_a = ONE - share_b - share_c
    foot = Foot()
    inside = share_a >= ZERO and share_b >= ZERO and share_c >= ZERO  # never for NaN
    if inside and length * breadth > LEAST:
        normal = wp.cross(ab, height)
        out = wp.dot(from_a - along * ab - share_c * height, normal)
        foot.squared = out * (out / wp.dot(normal, normal))
        foot.weights = wp.vec3d(share_a, share_b, share_c)
    else:
        foot = foot_on_edges(from_a, p - t[1], p - t[2], ab, t[2] - t[1], -ac)
    return foot


@wp.func
def point_at(t: wp.mat33d, weights: wp.vec3d):
    """Return the point with given barycentric coordinates; corners are exact."""
    return weights[0] * t[0] + weights[1] * t[1] + weights[2] * t[2]


@wp.func
def is_on_line(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d):
    """Return whether p is on the line a, b. Exact."""
    on = wp.bool(True)
    for axis in range(3):
        if on:
            on = orient2d(a, b, p, axis) == 0
    return on


@wp.func
def is_on_tri(p: wp.vec3d, t: wp.mat33d, foot: Foot):
    """Return whether p, whose foot is given, is a point of the triangle.

    Guarantee:
        Exact, but for points on or in the plane of the triangle and within a rounding of an edge.
    """
    size = wp.max(
        wp.max(wp.abs(t[0] - p)), wp.max(wp.max(wp.abs(t[1] - p)), wp.max(wp.abs(t[2] - p)))
    )
    if foot.squared > (NEARLY_ON * size) * (NEARLY_ON * size):
        return False
    w = foot.weights
    if w[0] == ZERO:
        return is_on_line(p, t[1], t[2])
    if w[1] == ZERO:
        return is_on_line(p, t[2], t[0])
    if w[2] == ZERO:
        return is_on_line(p, t[0], t[1])
    return orient3d(t[0], t[1], t[2], p) == 0
