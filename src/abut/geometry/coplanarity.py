"""Coplanarity cubic: vanishes when two approaching features lie in one plane; with error bound.

With u and v two sides of the polygon of an approach and x its first corner, all linear in time,
f(t) = det(u(t), v(t), x(t)). Where features touch, f = 0; where they are within d of each other,
|f| <= d |u x v|. The converse does not hold, so f excludes times and never proves a contact.

Error: let w = 2**-53, let U, V, X hold the largest absolute components of u, v, x over the step,
and let P be their permanent: the sum of the six products of a determinant, all positive. A
Bernstein coefficient is a mean of determinants of rounded differences: products that sum to P at
most, each with at most 13 roundings, so it is within 14 w P of the exact one. Evaluation by
de Casteljau's algorithm combines them at most 9 roundings deep: 9 w P. A slope is off by 84 w P at
most, being three times the difference of two coefficients. ``margin`` is 2**-46 P = 128 w P, more
than all of these together. Underflow of the product of two factors is magnified by the third, which
the smallest margin covers; overflow gives margins that exclude nothing.
"""

import warp as wp

from abut.geometry.approach import mat43d

MARGIN = wp.constant(wp.float64(2.0**-46))
LEAST_MARGIN = wp.constant(wp.float64(2.0**-1000))
LEAST_LENGTH = wp.constant(wp.float64(2.0**-530))  # of a vector whose squares may underflow
SLOPE_MARGIN = wp.constant(wp.float64(1.0 + 2.0**-40))
THIRD = wp.constant(wp.float64(1.0 / 3.0))  # inside a function it would be a float32
ROUND_UP = wp.constant(wp.float64(1.0 + 2.0**-48))


@wp.struct
class Cubic:
    """Bernstein coefficients of f over the step, and the margin beyond which f is not 0."""

    k: wp.vec4d
    margin: wp.float64


@wp.func
def largest_of(p: wp.vec3d, q: wp.vec3d):
    """Componentwise maximum of the absolute values of two vectors."""
    return wp.max(wp.abs(p), wp.abs(q))


@wp.func
def permanent(u: wp.vec3d, v: wp.vec3d, x: wp.vec3d):
    """Permanent: the determinant with plus signs only."""
    return (
        (u[1] * v[2] + u[2] * v[1]) * x[0]
        + (u[2] * v[0] + u[0] * v[2]) * x[1]
        + (u[0] * v[1] + u[1] * v[0]) * x[2]
    )


@wp.func
def coplanarity_cubic(p: mat43d, q: mat43d, edges: wp.bool, min_distance: wp.float64):
    """The cubic of a vertex (row 0) and a face, or of two edges; p at the start, q at the end."""
    u0 = p[1] - wp.where(edges, p[0], p[2])
    u1 = q[1] - wp.where(edges, q[0], q[2])
    v0 = p[2] - p[3]
    v1 = q[2] - q[3]
    x0 = p[0] - wp.where(edges, p[2], p[1])
    x1 = q[0] - wp.where(edges, q[2], q[1])
    n0 = wp.cross(u0, v0)
    n1 = wp.cross(u1, v1)
    m = wp.cross(u0, v1) + wp.cross(u1, v0)
    out = Cubic()
    out.k = wp.vec4d(
        wp.dot(n0, x0),
        (wp.dot(m, x0) + wp.dot(n0, x1)) * THIRD,
        (wp.dot(m, x1) + wp.dot(n1, x0)) * THIRD,
        wp.dot(n1, x1),
    )
    u = largest_of(u0, u1)
    v = largest_of(v0, v1)
    x = largest_of(x0, x1)
    out.margin = MARGIN * permanent(u, v, x) + LEAST_MARGIN * (u[0] + u[1] + u[2] + wp.max(x))
    out.margin = out.margin + LEAST_MARGIN
    if min_distance > wp.float64(0.0):
        half = wp.float64(0.5)
        across = wp.max(wp.max(wp.length(n0), wp.length(n1)), half * wp.length(m)) + LEAST_LENGTH
        spread = MARGIN * wp.max(u) * wp.max(v)
        out.margin = out.margin + min_distance * (across * ROUND_UP + spread)
    return out


@wp.func
def mix(a: wp.float64, b: wp.float64, t: wp.float64):
    """Linear interpolation from a at t = 0 to b at t = 1."""
    return (wp.float64(1.0) - t) * a + t * b


@wp.func
def may_vanish(f: Cubic, until: wp.float64):
    """False only when f provably has no zero in [0, until]: its coefficients have one sign."""
    k = f.k
    if until < wp.float64(1.0):
        a = mix(k[0], k[1], until)
        b = mix(k[1], k[2], until)
        c = mix(k[2], k[3], until)
        d = mix(a, b, until)
        k = wp.vec4d(k[0], a, d, mix(d, mix(b, c, until), until))
    return not (wp.min(k) > f.margin or -wp.max(k) > f.margin)


@wp.func
def cubic_at(f: Cubic, t: wp.float64):
    """Value at a time, by de Casteljau's algorithm."""
    a = mix(f.k[0], f.k[1], t)
    b = mix(f.k[1], f.k[2], t)
    c = mix(f.k[2], f.k[3], t)
    return mix(mix(a, b, t), mix(b, c, t), t)


@wp.func
def steepest_towards_zero(f: Cubic, side: wp.float64, t: wp.float64, u: wp.float64):
    """An upper bound, over [t, u], of how fast ``side * f`` falls.

    The derivative over an interval lies between its Bernstein coefficients there.
    """
    three = wp.float64(3.0)
    a = three * side * (f.k[0] - f.k[1])
    b = three * side * (f.k[1] - f.k[2])
    c = three * side * (f.k[2] - f.k[3])
    left = mix(a, b, t)
    right = mix(b, c, t)
    fall = wp.max(mix(left, right, t), mix(left, right, u))
    fall = wp.max(fall, mix(mix(a, b, u), mix(b, c, u), u))
    return fall + (SLOPE_MARGIN - wp.float64(1.0)) * (wp.abs(a) + wp.abs(b) + wp.abs(c))
