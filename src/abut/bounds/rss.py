"""Rectangle swept spheres in float32: all points within a radius of a rectangle (Larsen 2000).

A volume is three rows of four: centre and radius, first axis and half the first side, second axis
and half the second side. The third axis, across the rectangle, is their cross product. Merging
widens the radius by what rounding can amount to.
"""

import warp as wp

from abut.bounds.obb import SLACK, orthonormal
from abut.bounds.relative import Relative

ROUNDS = wp.constant(4)  # of projections, back and forth; see distance_rss
HALF_RIGHT_ANGLE = wp.constant(wp.float32(0.7071))  # a little less than the root of a half
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
    u = wp.vec3f(r1[0], r1[1], r1[2])
    v = wp.vec3f(r2[0], r2[1], r2[2])
    out.centre = wp.vec3f(r0[0], r0[1], r0[2])
    out.axes = wp.matrix_from_rows(u, v, wp.cross(u, v))
    out.half = wp.vec2f(r1[3], r2[3])
    out.radius = r0[3]
    return out


@wp.func
def corner_of(a: Rss, k: wp.int32):
    """Corner k, 0 to 3, of the rectangle."""
    x = wp.where(k % 2 == 0, a.half[0], -a.half[0])
    y = wp.where(k < 2, a.half[1], -a.half[1])
    return a.centre + a.axes[0] * x + a.axes[1] * y


@wp.func
def around(a: Rss, b: Rss, axes: wp.mat33f):
    """A volume with given axes around two, widened for rounding.

    The spheres at the eight corners decide. One that does not fill the thickness may stick out
    of the rectangle, by ``room`` along both sides together.
    """
    middle = (a.centre + b.centre) * wp.float32(0.5)
    low = wp.float32(wp.inf)
    high = -wp.float32(wp.inf)
    for k in range(8):
        corner = corner_of(a, k % 4)
        radius = a.radius
        if k >= 4:
            corner = corner_of(b, k % 4)
            radius = b.radius
        z = wp.dot(axes[2], corner - middle)
        low = wp.min(low, z - radius)
        high = wp.max(high, z + radius)
    height = (low + high) * wp.float32(0.5)
    thick = (high - low) * wp.float32(0.5)
    first = wp.vec2f(wp.inf)
    last = -wp.vec2f(wp.inf)
    for k in range(8):
        corner = corner_of(a, k % 4)
        radius = a.radius
        if k >= 4:
            corner = corner_of(b, k % 4)
            radius = b.radius
        at = axes * (corner - middle)
        spare = (thick - radius) * (thick - radius) - (at[2] - height) * (at[2] - height)
        room = HALF_RIGHT_ANGLE * wp.sqrt(wp.max(spare, wp.float32(0.0)))
        xy = wp.vec2f(at[0], at[1])
        first = wp.min(first, xy + wp.vec2f(room))
        last = wp.max(last, xy - wp.vec2f(room))
    out = Rss()
    out.axes = axes
    xy = (first + last) * wp.float32(0.5)
    out.half = wp.max((last - first) * wp.float32(0.5), wp.vec2f(0.0))
    out.centre = middle + wp.vec3f(xy[0], xy[1], height) * axes
    size = wp.max(wp.abs(out.centre)) + out.half[0] + out.half[1] + thick
    out.radius = thick + SLACK * size
    if not (wp.isfinite(a.radius) and wp.isfinite(b.radius) and wp.isfinite(size)):
        out = a
        out.radius = wp.float32(wp.inf)  # beyond float32: near everything
    return out


@wp.func
def area_of_rss(a: Rss):
    """An eighth of the surface of the box around a volume."""
    x = a.half[0] + a.radius
    y = a.half[1] + a.radius
    return x * y + (x + y) * a.radius


@wp.func
def point_rss(p: wp.vec3f, axes: wp.mat33f):
    """The volume of one point."""
    out = Rss()
    out.centre = p
    out.axes = axes
    return out


@wp.func
def fit_rss(p0: wp.vec3f, p1: wp.vec3f, p2: wp.vec3f):
    """The volume of a triangle: a rectangle in its plane along the longest edge."""
    e0 = p1 - p0
    e1 = p2 - p1
    e2 = p0 - p2
    axes = orthonormal(e0, e1)
    if wp.length_sq(e1) > wp.length_sq(e0) and wp.length_sq(e1) >= wp.length_sq(e2):
        axes = orthonormal(e1, e2)
    elif wp.length_sq(e2) > wp.length_sq(e0):
        axes = orthonormal(e2, e0)
    first = around(point_rss(p0, axes), point_rss(p1, axes), axes)
    return around(first, point_rss(p2, axes), axes)


@wp.func
def merge_rss(a: Rss, b: Rss, axes: wp.mat33f):
    """A volume around two: with ``axes``, or with one volume's own if smaller.

    Guarantee:
        Conservative. Holds all that the two hold.
    """
    best = around(a, b, axes)
    for k in range(2):
        other = around(a, b, a.axes)
        if k == 1:
            other = around(a, b, b.axes)
        if area_of_rss(other) < area_of_rss(best):
            best = other
    return best


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
def distance_rss(relative: Relative, a: Rss, b: Rss):
    """A lower bound of the distance of two volumes of two frames; not above 0 where they may meet.

    Projecting back and forth leads to the nearest points of the rectangles, or towards them. How
    far apart the volumes are along the line between is a lower bound for any line, so the number
    of projections decides how tight the bound is and not whether it holds. No branches: threads
    stay together, where the case analysis of rectangles parts them.

    Guarantee:
        Conservative, up to a relative error of 2**-20; poses add theirs (see distance_across).
    """
    turn = wp.mat33f(
        relative.rows[0, 0], relative.rows[0, 1], relative.rows[0, 2],
        relative.rows[1, 0], relative.rows[1, 1], relative.rows[1, 2],
        relative.rows[2, 0], relative.rows[2, 1], relative.rows[2, 2],
    )  # fmt: skip
    shift = wp.vec3f(relative.shift[0], relative.shift[1], relative.shift[2])
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
    slack = ROUNDING * (wp.max(wp.abs(a.centre)) + wp.max(wp.abs(b.centre)) + wp.length(between))
    slack += ROUNDING * (a.half[0] + a.half[1] + b.half[0] + b.half[1])
    reach = reach_rss(a, way) + reach_rss(turned, way)
    return wp.dot(between, way) - reach - slack - wp.float32(2.0) * relative.widen[0]
