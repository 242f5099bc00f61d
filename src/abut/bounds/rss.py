"""Rectangle swept spheres in float32: all points within a radius of a rectangle (Larsen 2000).

A volume is three rows of four: centre and radius, first axis and half the first side, second axis
and half the second side. The third axis, across the rectangle, is their cross product.

A volume is fitted to extents along its axes. So the points are also in the box with the sides of
the rectangle and twice the radius thick, and every test here holds for that box: a swept sphere is
never looser than the oriented box of its axes. The rectangle less the radius at every end gives
the line along which two volumes are compared.
"""

import warp as wp

from abut.bounds.float32 import row_xyz
from abut.bounds.obb import UNDERFLOW_SLACK, Obb, overlap_obb
from abut.bounds.relative_frame import RelativeFrame

PROJECTIONS = wp.constant(2)  # back and forth; see gap_rss
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
    """Return the volume in three rows."""
    out = Rss()
    u = row_xyz(r1)
    v = row_xyz(r2)
    out.centre = row_xyz(r0)
    out.axes = wp.matrix_from_rows(u, v, wp.cross(u, v))
    out.half = wp.vec2f(r1[3], r2[3])
    out.radius = r0[3]
    return out


@wp.func
def box_of_rss(a: Rss):
    """Return the oriented box that holds the points too."""
    out = Obb()
    out.centre = a.centre
    out.axes = a.axes
    out.half = wp.vec3f(a.half[0], a.half[1], a.radius)
    return out


@wp.func
def support_rss(a: Rss, direction: wp.vec3f):
    """Return the support of the box of a volume from its centre along a unit direction."""
    along = wp.abs(a.axes * direction)
    return along[0] * a.half[0] + along[1] * a.half[1] + along[2] * a.radius


@wp.func
def clamp_to_rectangle(a: Rss, p: wp.vec3f):
    """Return the nearest point to p of the rectangle less the radius, relative to its centre."""
    half_u = wp.max(a.half[0] - a.radius, wp.float32(0.0))
    half_v = wp.max(a.half[1] - a.radius, wp.float32(0.0))
    x = wp.clamp(wp.dot(a.axes[0], p), -half_u, half_u)
    y = wp.clamp(wp.dot(a.axes[1], p), -half_v, half_v)
    return a.axes[0] * x + a.axes[1] * y


@wp.func
def gap_rss(relative: RelativeFrame, a: Rss, b: Rss):
    """Return a lower bound of the distance of the points in two volumes of two frames.

    It is the gap of their boxes along one line, and not above 0 on overlap. Alternating
    projections converge to the nearest points of the rectangles. The gap along any line is a lower
    bound, so the number of projections affects only its tightness. There are no branches, so
    threads do not diverge as in a case analysis of rectangles.

    Guarantee:
        Conservative, up to a relative error of 2**-20; poses add theirs (see gap_boxes).
    """
    rotation = wp.mat33f(
        relative.rows[0, 0], relative.rows[0, 1], relative.rows[0, 2],
        relative.rows[1, 0], relative.rows[1, 1], relative.rows[1, 2],
        relative.rows[2, 0], relative.rows[2, 1], relative.rows[2, 2],
    )  # fmt: skip
    shift = row_xyz(relative.shift)
    rotated = Rss()
    rotated.axes = b.axes * wp.transpose(rotation)
    rotated.half = b.half
    rotated.radius = b.radius
    between = rotation * b.centre + shift - a.centre
    p = wp.vec3f()
    q = wp.vec3f()
    for _round in range(PROJECTIONS):
        p = clamp_to_rectangle(a, between + q)
        q = clamp_to_rectangle(rotated, p - between)
    direction = wp.normalize(between + q - p)
    size = wp.max(wp.abs(a.centre)) + wp.max(wp.abs(b.centre)) + wp.length(between)
    slack = ROUNDING * size + UNDERFLOW_SLACK
    slack += ROUNDING * (a.half[0] + a.half[1] + b.half[0] + b.half[1])
    reach = support_rss(a, direction) + support_rss(rotated, direction)
    return wp.dot(between, direction) - reach - slack - wp.float32(2.0) * relative.widen[0]


@wp.func
def overlap_rss(relative: RelativeFrame, a: Rss, b: Rss):
    """Return whether volumes of two frames may overlap: by the axes of their boxes, then a line.

    Guarantee:
        Conservative. False only when the points are apart, and wherever ``overlap_obb`` is.
    """
    if not overlap_obb(relative, box_of_rss(a), box_of_rss(b)):
        return False
    return not (gap_rss(relative, a, b) > wp.float32(0.0))
