"""Planes that keep two triangles strictly apart, found by iteration and certified in float64.

Disjoint triangles have a plane strictly between them. So have triangles that meet in one corner
only, through that corner. Its normal is the point nearest to the origin of a convex hull: of all
differences of corners, or of the sides at the common corner, those of one triangle reversed.
Gilbert's steps approach it (Gilbert 1966). Any normal that has the whole hull in front proves the
plane, so the quality of the steps decides only how often they succeed.

Error: let u = 2**-53. Vectors are differences of corners, scaled so that the absolute components
of each sum to at most 1; normals have components up to 2. Their product has five roundings, so it
is within 10.2 u, and a difference of two such products within 25 u; the margin is 32 u.
"""

import warp as wp

STEPS = wp.constant(8)
MARGIN = wp.constant(wp.float64(2.0**-48))
SMALLEST_SIZE = wp.constant(wp.float64(2.0**-1000))  # its reciprocal is finite
ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))
QUARTER = wp.constant(wp.float64(0.25))


@wp.func
def size_of(d: wp.vec3d):
    """Return the sum of the absolute components."""
    return wp.abs(d[0]) + wp.abs(d[1]) + wp.abs(d[2])


@wp.func
def nearest_to_origin(p: wp.vec3d, q: wp.vec3d):
    """Return the point of the segment p q nearest to the origin."""
    d = p - q
    share = wp.dot(p, d) / wp.dot(d, d)
    return p - wp.clamp(share, ZERO, ONE) * d


@wp.func
def nearer_point(x: wp.vec3d, last: wp.vec3d, vertex: wp.vec3d):
    """Return the point nearest to the origin between ``vertex`` of a hull and x or ``last``.

    Gilbert's step goes from x alone and zigzags along thin hulls; from the vertex before, it ends.
    """
    p = nearest_to_origin(x, vertex)
    q = nearest_to_origin(last, vertex)
    if wp.dot(q, q) < wp.dot(p, p):
        p = q
    return p


@wp.func
def separated_at_corner(a: wp.mat33d, b: wp.mat33d):
    """Return whether a plane through the common corner a[0] = b[0] lies between the triangles.

    Guarantee:
        True only when they meet nowhere else.
    """
    sides = wp.matrix_from_rows(a[1] - a[0], a[2] - a[0], a[0] - b[1], a[0] - b[2])
    for i in range(4):
        sides[i] = sides[i] * (ONE / size_of(sides[i]))
    x = QUARTER * (sides[0] + sides[1] + sides[2] + sides[3])
    last = sides[0]
    separated = wp.bool(False)
    step = wp.int32(0)
    while step < STEPS and not separated:
        along = sides * x
        separated = wp.bool(True)
        for i in range(4):
            separated = separated and along[i] > MARGIN  # never for NaN
        if not separated:
            vertex = sides[wp.argmin(along)]
            x = nearer_point(x, last, vertex)
            last = vertex
        step += 1
    return separated


@wp.func
def farthest_corner(t: wp.mat33d, x: wp.vec3d):
    """Return the corner farthest along x."""
    along = t * x
    corner = t[0]
    if along[1] > along[0]:
        corner = t[1]
    if along[2] > wp.max(along[0], along[1]):
        corner = t[2]
    return corner


@wp.func
def separated_by_plane(a: wp.mat33d, b: wp.mat33d):
    """Return whether a plane lies strictly between two triangles.

    Guarantee:
        True only when they are disjoint.
    """
    from_b = wp.matrix_from_rows(a[0] - b[0], a[1] - b[0], a[2] - b[0])
    own = wp.matrix_from_rows(b[0] - b[0], b[1] - b[0], b[2] - b[0])
    size = SMALLEST_SIZE
    for i in range(3):
        size = wp.max(size, wp.max(size_of(own[i]), size_of(from_b[i])))
    from_b = from_b * (ONE / size)
    own = own * (ONE / size)
    x = from_b[0] - own[0]
    last = x
    separated = wp.bool(False)
    step = wp.int32(0)
    while step < STEPS and not separated:
        p = farthest_corner(from_b, -x)
        q = farthest_corner(own, x)
        separated = wp.dot(x, p) - wp.dot(x, q) > MARGIN
        if not separated:
            x = nearer_point(x, last, p - q)
            last = p - q
        step += 1
    return separated
