"""Rectangle swept spheres in float32: all points within a radius of a rectangle (Larsen 2000).

A volume is three rows of four: centre and radius, first axis and half the first side, second axis
and half the second side. The third axis, across the rectangle, is their cross product.
"""

import warp as wp

from abut.bounds.obb import SLACK, orthonormal
from abut.bounds.relative_frame import RelativeFrame
from abut.bounds.rows import vector_of

ROUNDS = wp.constant(2)  # of projections, back and forth; see distance_rss
LEAST = wp.constant(wp.float32(1e-36))  # roundings of numbers too small to be normal
ROUNDING = wp.constant(wp.float32(2.0**-18))


@wp.struct
class Rss:
    """A rectangle and a radius; ``axes`` has one axis a row, the third across the rectangle."""

    centre: wp.vec3f
    axes: wp.mat33f
    half: wp.vec2f
    radius: wp.float32


@wp.func
def unpack_rss(r0: wp.vec4f, r1: wp.vec4f, r2: wp.vec4f):
    """The volume in three rows."""
    out = Rss()
    u = vector_of(r1)
    v = vector_of(r2)
    out.centre = vector_of(r0)
    out.axes = wp.matrix_from_rows(u, v, wp.cross(u, v))
    out.half = wp.vec2f(r1[3], r2[3])
    out.radius = r0[3]
    return out


@wp.func
def axes_of_tri(p0: wp.vec3f, p1: wp.vec3f, p2: wp.vec3f):
    """Axes along the longest edge of a triangle, across it in its plane, and across its plane."""
    e0 = p1 - p0
    e1 = p2 - p1
    e2 = p0 - p2
    axes = orthonormal(e0, e1)
    if wp.length_sq(e1) > wp.length_sq(e0) and wp.length_sq(e1) >= wp.length_sq(e2):
        axes = orthonormal(e1, e2)
    elif wp.length_sq(e2) > wp.length_sq(e0):
        axes = orthonormal(e2, e0)
    return axes


@wp.func
def fit_rss(axes: wp.mat33f, low: wp.vec3f, high: wp.vec3f):
    """The volume of points between ``low`` and ``high`` along given axes, widened for rounding.

    Guarantee:
        Conservative, where the extents were computed in float32 from the points.
    """
    out = Rss()
    out.axes = axes
    out.centre = (low + high) * wp.float32(0.5) * axes
    half = (high - low) * wp.float32(0.5)
    size = wp.max(wp.abs(out.centre)) + half[0] + half[1] + half[2]
    slack = wp.vec2f(SLACK * size + LEAST)
    out.half = wp.vec2f(half[0], half[1]) + slack
    out.radius = half[2] + slack[0]
    if not wp.isfinite(size):
        out.centre = wp.vec3f()
        out.half = wp.vec2f()
        out.radius = wp.float32(wp.inf)  # beyond float32: near everything
    return out


@wp.func
def reach_rss(a: Rss, way: wp.vec3f):
    """How far a volume reaches from its centre along a direction of length 1."""
    u = wp.abs(wp.dot(a.axes[0], way)) * a.half[0]
    v = wp.abs(wp.dot(a.axes[1], way)) * a.half[1]
    return u + v + a.radius


@wp.func
def within_rectangle(a: Rss, p: wp.vec3f):
    """The point of the rectangle nearest to p, from its centre; p is from the centre too."""
    x = wp.clamp(wp.dot(a.axes[0], p), -a.half[0], a.half[0])
    y = wp.clamp(wp.dot(a.axes[1], p), -a.half[1], a.half[1])
    return a.axes[0] * x + a.axes[1] * y


@wp.func
def distance_rss(relative: RelativeFrame, a: Rss, b: Rss):
    """A lower bound of the distance of two volumes of two frames; not above 0 where they may meet.

    Projecting back and forth leads to the nearest points of the rectangles, or towards them. How
    far apart the volumes are along the line between is a lower bound for any line, so the number
    of projections decides how tight the bound is and not whether it holds. No branches: threads
    stay together, where the case analysis of rectangles parts them.

    Guarantee:
        Conservative, up to a relative error of 2**-20; poses add theirs (see gap_boxes).
    """
    turn = wp.mat33f(
        relative.rows[0, 0], relative.rows[0, 1], relative.rows[0, 2],
        relative.rows[1, 0], relative.rows[1, 1], relative.rows[1, 2],
        relative.rows[2, 0], relative.rows[2, 1], relative.rows[2, 2],
    )  # fmt: skip
    shift = vector_of(relative.shift)
    turned = Rss()
    turned.axes = b.axes * wp.transpose(turn)
    turned.half = b.half
    turned.radius = b.radius
    between = turn * b.centre + shift - a.centre
    p = wp.vec3f()
    q = wp.vec3f()
    for _round in range(ROUNDS):
        p = within_rectangle(a, between + q)
        q = within_rectangle(turned, p - between)
    way = wp.normalize(between + q - p)
    size = wp.max(wp.abs(a.centre)) + wp.max(wp.abs(b.centre)) + wp.length(between)
    slack = ROUNDING * size + LEAST
    slack += ROUNDING * (a.half[0] + a.half[1] + b.half[0] + b.half[1])
    reach = reach_rss(a, way) + reach_rss(turned, way)
    return wp.dot(between, way) - reach - slack - wp.float32(2.0) * relative.widen[0]
