"""How far apart are two triangles, and between which points?

Triangles that do not meet are nearest to each other at a corner of one and a point of the other,
or inside two edges: six corners and nine pairs of edges. A candidate is always a pair of points,
one of each triangle, so a badly conditioned feature (parallel edges, a sliver) costs nothing but
the second order of its error: the distance is right to some roundings of the triangles' size.
Whether triangles meet is not asked here (see intersect_tri_tri).
"""

import warp as wp

LEAST_SIZE = wp.constant(wp.float64(2.0**-100))  # within, fourth powers are in range
MOST_SIZE = wp.constant(wp.float64(2.0**100))
FURTHEST = wp.constant(wp.float64(1.7976931348623157e308))
HUGE = wp.constant(wp.float64(2.0**1000))
ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))


@wp.struct
class Gap:
    """Two points, one of each triangle, and the square of their distance."""

    squared: wp.float64
    p: wp.vec3d
    q: wp.vec3d


@wp.func
def share_along(numerator: wp.float64, denominator: wp.float64):
    """A quotient held between 0 and 1; 0 where there is nothing to divide by."""
    share = ZERO
    if denominator > ZERO:
        share = wp.clamp(numerator / denominator, ZERO, ONE)
    return share


@wp.func
def nearer_of(gap: Gap, p: wp.vec3d, q: wp.vec3d):
    """``gap``, or that between two points if it is smaller."""
    out = gap
    squared = wp.length_sq(p - q)
    if squared < gap.squared:
        out.squared = squared
        out.p = p
        out.q = q
    return out


@wp.func
def nearer_at_edge(gap: Gap, p: wp.vec3d, start: wp.vec3d, edge: wp.vec3d):
    """``gap``, or that between p and the nearest point of an edge if it is smaller."""
    q = start + edge * share_along(wp.dot(p - start, edge), wp.length_sq(edge))
    return nearer_of(gap, p, q)


@wp.func
def nearer_inside_face(gap: Gap, p: wp.vec3d, start: wp.vec3d, u: wp.vec3d, v: wp.vec3d):
    """``gap``, or that between p and its foot on a face if that is inside and nearer."""
    out = gap
    r = p - start
    n = wp.cross(u, v)
    size = wp.length_sq(n)
    along_u = wp.dot(wp.cross(r, v), n)
    along_v = wp.dot(wp.cross(u, r), n)
    if size > ZERO and along_u >= ZERO and along_v >= ZERO and along_u + along_v <= size:
        out = nearer_of(gap, p, start + u * (along_u / size) + v * (along_v / size))
    return out


@wp.func
def nearer_inside_edges(gap: Gap, p: wp.vec3d, u: wp.vec3d, q: wp.vec3d, v: wp.vec3d):
    """``gap``, or that of two lines if it is between inner points of the edges and smaller."""
    out = gap
    w = q - p
    n = wp.cross(u, v)
    size = wp.length_sq(n)
    along_u = wp.dot(wp.cross(w, v), n)
    along_v = wp.dot(wp.cross(w, u), n)
    inside = along_u >= ZERO and along_u <= size and along_v >= ZERO and along_v <= size
    if size > ZERO and inside:
        out = nearer_of(gap, p + u * (along_u / size), q + v * (along_v / size))
    return out


@wp.func
def nearer_at_corners(gap: Gap, a: wp.mat33d, b: wp.mat33d):
    """``gap``, or the smallest between a corner of ``a`` and the triangle ``b``."""
    out = gap
    for i in range(3):
        for j in range(3):
            out = nearer_at_edge(out, a[i], b[j], b[(j + 1) % 3] - b[j])
        out = nearer_inside_face(out, a[i], b[0], b[1] - b[0], b[2] - b[0])
    return out


@wp.func
def swapped(gap: Gap):
    """The gap seen from the other side."""
    out = gap
    out.p = gap.q
    out.q = gap.p
    return out


@wp.func
def local_gap(a: wp.mat33d, b: wp.mat33d):
    """The smallest gap of two triangles whose coordinates are neither huge nor tiny."""
    gap = Gap()
    gap.squared = wp.float64(wp.inf)
    gap = nearer_at_corners(gap, a, b)
    gap = swapped(nearer_at_corners(swapped(gap), b, a))
    for i in range(3):
        for j in range(3):
            u = a[(i + 1) % 3] - a[i]
            v = b[(j + 1) % 3] - b[j]
            gap = nearer_inside_edges(gap, a[i], u, b[j], v)
    return gap


@wp.func
def less(t: wp.mat33d, p: wp.vec3d):
    """``t`` moved so that p is the origin."""
    return wp.matrix_from_rows(t[0] - p, t[1] - p, t[2] - p)


@wp.func
def largest_of(t: wp.mat33d):
    """Largest absolute coordinate."""
    return wp.max(wp.max(wp.abs(t[0])), wp.max(wp.max(wp.abs(t[1])), wp.max(wp.abs(t[2]))))


@wp.struct
class Nearness:
    """The distance of two triangles and the points, one of each, that are so far apart."""

    distance: wp.float64
    p: wp.vec3d
    q: wp.vec3d


@wp.func
def power_of_two(exponent: wp.int32):
    """Two to a power between -1022 and 1023, exactly."""
    return wp.cast(wp.int64(exponent + 1023) << wp.int64(52), wp.float64)


@wp.func
def exponent_of(x: wp.float64):
    """Binary exponent of a positive number; -1023 where it is zero or subnormal."""
    return wp.int32(wp.cast(x, wp.int64) >> wp.int64(52)) - 1023


@wp.func
def scale_for(size: wp.float64):
    """A power of two that brings ``size`` near 1."""
    return power_of_two(wp.clamp(-exponent_of(size), -1000, 1000))


@wp.func
def distance_tri_tri(a: wp.mat33d, b: wp.mat33d):
    """Distance of two triangles that do not meet, and the nearest points of each.

    Args:
        a, b: Corners, one a row. Zero-area triangles are segments or points.

    Guarantee:
        Right to some roundings (2**-53) of the size of both triangles together; for all finite
        coordinates. Triangles that meet by crossing only, no edge near an edge and no corner near
        a face, get a positive distance.
    """
    share = ONE  # of the coordinates that differences are taken of
    scale = ONE
    size = wp.max(largest_of(less(a, a[0])), largest_of(less(b, a[0])))
    if not (size > LEAST_SIZE and size < MOST_SIZE):
        if not (wp.max(largest_of(a), largest_of(b)) < HUGE):
            share = wp.float64(0.125)
        size = wp.max(
            largest_of(less(a * share, a[0] * share)), largest_of(less(b * share, a[0] * share))
        )
        scale = scale_for(size)
    start = a[0] * share
    gap = local_gap(less(a * share, start) * scale, less(b * share, start) * scale)
    out = Nearness()
    out.p = (start + gap.p / scale) / share
    out.q = (start + gap.q / scale) / share
    out.distance = wp.min(wp.sqrt(gap.squared) / scale / share, FURTHEST)
    return out
