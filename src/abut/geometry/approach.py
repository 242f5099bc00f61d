"""Two moving features as one polygon of differences, which contains the origin when they touch.

A vertex p meets a face a b c when the triangle p - a, p - b, p - c contains 0; an edge a0 a1 meets
an edge b0 b1 when the parallelogram of the differences of their endpoints does. Vertices move in
straight lines over a step, so both cases have one form: a polygon of four corners (the triangle
repeats its first) that are linear in time. The distance of the features is that of the polygon from
the origin.

Corners are rounded differences, each within a relative 2**-53 of the exact one.
"""

import warp as wp

mat43d = wp.types.matrix(shape=(4, 3), dtype=wp.float64)
LARGE = wp.constant(wp.float64(2.0**100))
SMALL = wp.constant(wp.float64(2.0**-100))


@wp.struct
class Approach:
    """Corners of the polygon at the start and at the end of the step, one a row."""

    start: mat43d
    end: mat43d


@wp.func
def largest_in(p: mat43d):
    """Largest absolute coordinate."""
    pair = wp.max(wp.max(wp.abs(p[0])), wp.max(wp.abs(p[1])))
    return wp.max(pair, wp.max(wp.max(wp.abs(p[2])), wp.max(wp.abs(p[3]))))


@wp.func
def is_usual(size: wp.float64):
    """True when products of coordinates of this size neither overflow nor vanish."""
    return size > SMALL and size < LARGE


@wp.func
def usual_scale(p: mat43d, q: mat43d):
    """Power of two that brings coordinates to a usual size; 1 where they have it."""
    size = wp.max(largest_in(p), largest_in(q))
    scale = wp.float64(1.0)
    if not is_usual(size):
        exponent = wp.int64(2046) - (wp.cast(size, wp.int64) >> wp.int64(52))
        scale = wp.cast(wp.max(exponent, wp.int64(1)) << wp.int64(52), wp.float64)
    return scale


@wp.func
def polygon_of(p: mat43d, edges: wp.bool):
    """Polygon of a vertex (row 0) and a face, or of two edges (rows 0 and 1, rows 2 and 3)."""
    if edges:
        return wp.matrix_from_rows(p[0] - p[2], p[1] - p[2], p[1] - p[3], p[0] - p[3])
    return wp.matrix_from_rows(p[0] - p[1], p[0] - p[2], p[0] - p[3], p[0] - p[1])


@wp.func
def approach_of(p: mat43d, q: mat43d, edges: wp.bool):
    """Approach of a vertex and a face, or of two edges; p at the start, q at the end."""
    approach = Approach()
    approach.start = polygon_of(p, edges)
    approach.end = polygon_of(q, edges)
    return approach


@wp.func
def polygon_at(approach: Approach, t: wp.float64):
    """The polygon at a time, rounded."""
    return (wp.float64(1.0) - t) * approach.start + t * approach.end


@wp.func
def nearest_on_segment(p: wp.vec3d, q: wp.vec3d):
    """The point of a segment that is nearest to the origin, rounded."""
    along = q - p
    length = wp.dot(along, along)
    from_p = -wp.dot(p, along)
    from_q = wp.dot(q, along)
    nearest = p
    if from_q <= wp.float64(0.0):
        nearest = q
    elif from_p > wp.float64(0.0):  # from the nearer endpoint, which rounds less
        nearest = p + (from_p / length) * along
        if from_q < from_p:
            nearest = q - (from_q / length) * along
    return nearest


@wp.func
def nearest_on_polygon(x: mat43d):
    """The point of a convex polygon in a plane that is nearest to the origin, rounded."""
    nearest = nearest_on_segment(x[0], x[1])
    for k in range(1, 4):
        other = nearest_on_segment(x[k], x[(k + 1) % 4])
        if wp.dot(other, other) < wp.dot(nearest, nearest):
            nearest = other
    normal = wp.cross(x[1] - x[0], x[2] - x[1])
    inside = wp.bool(True)
    for k in range(4):
        if wp.dot(wp.cross(x[k], x[(k + 1) % 4]), normal) < wp.float64(0.0):
            inside = False
    size = wp.dot(normal, normal)
    if inside and size > wp.float64(0.0):
        nearest = (wp.dot(normal, x[0]) / size) * normal
    return nearest
