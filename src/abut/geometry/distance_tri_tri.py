"""Distance and nearest points of two triangles that do not meet.

The nearest points are a corner of one triangle and a point of the other, or inner points of two
edges: six corners and nine pairs of edges. A candidate is always a pair of points, one of each
triangle, so an ill-conditioned feature (parallel edges, a sliver) adds only the square of its
error: the distance is right to some roundings of the triangles' size. Intersection is a separate
test (see intersect_tri_tri).
"""

import warp as wp

MIN_SIZE = wp.constant(wp.float64(2.0**-100))  # within, fourth powers are in range
MAX_SIZE = wp.constant(wp.float64(2.0**100))
MAX_FLOAT64 = wp.constant(wp.float64(1.7976931348623157e308))
HUGE = wp.constant(wp.float64(2.0**1000))
ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))


@wp.struct
class ClosestPair:
    """Two points, one of each triangle, and the square of their distance."""

    squared: wp.float64
    p: wp.vec3d
    q: wp.vec3d


@wp.func
def clamped_ratio(numerator: wp.float64, denominator: wp.float64):
    """Return a quotient clamped to [0, 1]; 0 if the denominator is not positive."""
    share = ZERO
    if denominator > ZERO:
        share = wp.clamp(numerator / denominator, ZERO, ONE)
    return share


@wp.func
def nearer_of(pair: ClosestPair, p: wp.vec3d, q: wp.vec3d):
    """Return the nearer of ``pair`` and two points."""
    out = pair
    squared = wp.length_sq(p - q)
    if squared < pair.squared:
        out.squared = squared
        out.p = p
        out.q = q
    return out


@wp.func
def nearer_at_edge(pair: ClosestPair, p: wp.vec3d, start: wp.vec3d, edge: wp.vec3d):
    """Return the nearer of ``pair`` and p with its nearest point on an edge."""
    q = start + edge * clamped_ratio(wp.dot(p - start, edge), wp.length_sq(edge))
    return nearer_of(pair, p, q)


@wp.func
def nearer_inside_face(pair: ClosestPair, p: wp.vec3d, start: wp.vec3d, u: wp.vec3d, v: wp.vec3d):
    """Return the nearer of ``pair`` and p with its foot on a face, if the foot is inside."""
    out = pair
    r = p - start
    n = wp.cross(u, v)
    size = wp.length_sq(n)
    along_u = wp.dot(wp.cross(r, v), n)
    along_v = wp.dot(wp.cross(u, r), n)
    if size > ZERO and along_u >= ZERO and along_v >= ZERO and along_u + along_v <= size:
        out = nearer_of(pair, p, start + u * (along_u / size) + v * (along_v / size))
    return out


@wp.func
def nearer_inside_edges(pair: ClosestPair, p: wp.vec3d, u: wp.vec3d, q: wp.vec3d, v: wp.vec3d):
    """Return the nearer of ``pair`` and the nearest points of two lines, if inside both edges."""
    out = pair
    w = q - p
    n = wp.cross(u, v)
    size = wp.length_sq(n)
    along_u = wp.dot(wp.cross(w, v), n)
    along_v = wp.dot(wp.cross(w, u), n)
    inside = along_u >= ZERO and along_u <= size and along_v >= ZERO and along_v <= size
    if size > ZERO and inside:
        out = nearer_of(pair, p + u * (along_u / size), q + v * (along_v / size))
    return out


@wp.func
def nearer_at_corners(pair: ClosestPair, a: wp.mat33d, b: wp.mat33d):
    """Return the nearer of ``pair`` and the corners of ``a`` with the triangle ``b``."""
    out = pair
    for i in range(3):
        for j in range(3):
            out = nearer_at_edge(out, a[i], b[j], b[(j + 1) % 3] - b[j])
        out = nearer_inside_face(out, a[i], b[0], b[1] - b[0], b[2] - b[0])
    return out


@wp.func
def swap_sides(pair: ClosestPair):
    """Return the pair with its points swapped."""
    out = pair
    out.p = pair.q
    out.q = pair.p
    return out


@wp.func
def closest_pair(a: wp.mat33d, b: wp.mat33d):
    """Return the closest pair of two triangles whose coordinates are neither huge nor tiny."""
    pair = ClosestPair()
    pair.squared = wp.float64(wp.inf)
    pair = nearer_at_corners(pair, a, b)
    pair = swap_sides(nearer_at_corners(swap_sides(pair), b, a))
    for i in range(3):
        for j in range(3):
            u = a[(i + 1) % 3] - a[i]
            v = b[(j + 1) % 3] - b[j]
            pair = nearer_inside_edges(pair, a[i], u, b[j], v)
    return pair


@wp.func
def relative_to(t: wp.mat33d, p: wp.vec3d):
    """Return ``t`` relative to p."""
    return wp.matrix_from_rows(t[0] - p, t[1] - p, t[2] - p)


@wp.func
def max_abs_component(t: wp.mat33d):
    """Return the largest absolute coordinate."""
    return wp.max(wp.max(wp.abs(t[0])), wp.max(wp.max(wp.abs(t[1])), wp.max(wp.abs(t[2]))))


@wp.struct
class TriangleDistance:
    """The distance of two triangles and the nearest points of each."""

    distance: wp.float64
    p: wp.vec3d
    q: wp.vec3d


@wp.func
def scale_for(size: wp.float64):
    """Return a power of two, from 2**-1000 to 2**1000, that scales ``size`` to about 1."""
    exponent = wp.int32(wp.cast(size, wp.int64) >> wp.int64(52)) - 1023
    exponent = wp.clamp(-exponent, -1000, 1000)
    return wp.cast(wp.int64(exponent + 1023) << wp.int64(52), wp.float64)


@wp.func
def distance_tri_tri(a: wp.mat33d, b: wp.mat33d):
    """Return the distance and the nearest points of two triangles that do not meet.

    Args:
        a, b: Corners, one a row. Zero-area triangles are segments or points.

    Guarantee:
        Right to some roundings (2**-53) of the size of both triangles together; for all finite
        coordinates. Triangles that meet by crossing only, no edge near an edge and no corner near
        a face, get a positive distance.
    """
    share = ONE  # scale of coordinates before they are subtracted
    scale = ONE
    size = wp.max(max_abs_component(relative_to(a, a[0])), max_abs_component(relative_to(b, a[0])))
    if not (size > MIN_SIZE and size < MAX_SIZE):
        if not (wp.max(max_abs_component(a), max_abs_component(b)) < HUGE):
            share = wp.float64(0.125)
        size = wp.max(
            max_abs_component(relative_to(a * share, a[0] * share)),
            max_abs_component(relative_to(b * share, a[0] * share)),
        )
        scale = scale_for(size)
    start = a[0] * share
    pair = closest_pair(
        relative_to(a * share, start) * scale, relative_to(b * share, start) * scale
    )
    out = TriangleDistance()
    out.p = (start + pair.p / scale) / share
    out.q = (start + pair.q / scale) / share
    out.distance = wp.min(wp.sqrt(pair.squared) / scale / share, MAX_FLOAT64)
    return out
