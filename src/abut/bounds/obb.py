"""Oriented boxes in float32: centre, two axes (the third is their cross product), half sides.

A box is three rows of four: centre and first half side, first axis and second half side, second
axis and third half side. Fitting widens the box by a bound of its rounding errors.
"""

import warp as wp

from abut.bounds.float32 import row_xyz
from abut.bounds.relative_frame import RelativeFrame

SLACK = wp.constant(wp.float32(2.0**-19))  # relative rounding of a fit, with room to spare
UNDERFLOW_SLACK = wp.constant(wp.float32(1e-36))  # covers the rounding of subnormal numbers
WELL_CONDITIONED = wp.constant(wp.float32(0.0625))  # square of a sine
SMALLEST = wp.constant(wp.float32(1e-30))  # of squares whose root is exact
AXIS_ERROR = wp.constant(wp.float32(2.0**-18))  # of a scalar product of two axes


@wp.struct
class Obb:
    """An oriented box; ``axes`` has one axis a row."""

    centre: wp.vec3f
    axes: wp.mat33f
    half: wp.vec3f


@wp.func
def unpack_obb(r0: wp.vec4f, r1: wp.vec4f, r2: wp.vec4f):
    """Return the box in three rows."""
    out = Obb()
    u = row_xyz(r1)
    v = row_xyz(r2)
    out.centre = row_xyz(r0)
    out.axes = wp.matrix_from_rows(u, v, wp.cross(u, v))
    out.half = wp.vec3f(r0[3], r1[3], r2[3])
    return out


@wp.func
def least_axis(v: wp.vec3f):
    """Return the coordinate axis along which v is smallest."""
    size = wp.abs(v)
    if size[0] <= size[1] and size[0] <= size[2]:
        return wp.vec3f(1.0, 0.0, 0.0)
    if size[1] <= size[2]:
        return wp.vec3f(0.0, 1.0, 0.0)
    return wp.vec3f(0.0, 0.0, 1.0)


@wp.func
def to_unit_size(v: wp.vec3f):
    """Return a vector scaled to a largest component of 1, whose square is in range; 0 stays 0."""
    size = wp.max(wp.abs(v))
    if size > wp.float32(0.0):
        return v / size
    return v


@wp.func
def orthonormal_axes(along: wp.vec3f, across_it: wp.vec3f):
    """Return axes along a vector and along the part of another across it.

    They are any axes where one of the vectors is degenerate.

    Guarantee:
        Orthonormal up to a few roundings for all input, as boxes need to hold their faces.
    """
    u = to_unit_size(along)
    v = to_unit_size(across_it)
    z = wp.cross(u, v)
    across = wp.length_sq(z)
    if across > wp.length_sq(u) * wp.length_sq(v) * WELL_CONDITIONED and across > SMALLEST:
        x = wp.normalize(u)
        z = wp.normalize(z)
        return wp.matrix_from_rows(x, wp.cross(z, x), z)
    x = wp.normalize(u)
    if not (wp.length_sq(x) > wp.float32(0.5)):  # zero or NaN
        x = wp.vec3f(1.0, 0.0, 0.0)
    z = wp.cross(x, v)
    if not (wp.length_sq(z) > wp.float32(1.0e-6) * wp.length_sq(v)):  # along u, zero or NaN
        z = wp.cross(x, least_axis(x))
    z = wp.normalize(z)
    z = wp.normalize(z - x * wp.dot(x, z))  # again: errors are large where u and v are close
    return wp.matrix_from_rows(x, wp.cross(z, x), z)


@wp.func
def axes_of_tri(p0: wp.vec3f, p1: wp.vec3f, p2: wp.vec3f):
    """Return axes along the longest edge of a triangle, across it in its plane, and normal."""
    u = p1 - p0
    v = p2 - p1
    w = p0 - p2
    longest = u
    other = v
    if wp.length_sq(v) > wp.length_sq(u) and wp.length_sq(v) >= wp.length_sq(w):
        longest = v
        other = w
    elif wp.length_sq(w) > wp.length_sq(u):
        longest = w
        other = u
    return orthonormal_axes(longest, other)


@wp.func
def fit_obb(axes: wp.mat33f, low: wp.vec3f, high: wp.vec3f):
    """Fit a box to points between ``low`` and ``high`` along axes, widened for rounding.

    Guarantee:
        Conservative, where the extents were computed in float32 from the points.
    """
    out = Obb()
    out.axes = axes
    out.centre = (low + high) * wp.float32(0.5) * axes
    out.half = (high - low) * wp.float32(0.5)
    size = wp.max(wp.abs(out.centre)) + out.half[0] + out.half[1] + out.half[2]
    out.half += wp.vec3f(SLACK * size + UNDERFLOW_SLACK)
    if not wp.isfinite(size):
        out.centre = wp.vec3f()
        out.half = wp.vec3f(wp.inf)  # beyond float32: everything overlaps
    return out


@wp.func
def overlap_obb(relative: RelativeFrame, a: Obb, b: Obb):
    """Return whether boxes of two frames may overlap, by fifteen axes (Gottschalk et al. 1996).

    Guarantee:
        Conservative. False only when the boxes, and all they bound, are apart.
    """
    rotation = wp.mat33f(
        relative.rows[0, 0], relative.rows[0, 1], relative.rows[0, 2],
        relative.rows[1, 0], relative.rows[1, 1], relative.rows[1, 2],
        relative.rows[2, 0], relative.rows[2, 1], relative.rows[2, 2],
    )  # fmt: skip
    shift = row_xyz(relative.shift)
    slack = wp.float32(2.0) * relative.widen[0]
    if not wp.isfinite(slack):
        return True
    slack += AXIS_ERROR * (a.half[0] + a.half[1] + a.half[2] + b.half[0] + b.half[1] + b.half[2])
    between = rotation * b.centre + shift - a.centre
    gap = a.axes * between
    rotated = rotation * wp.transpose(b.axes)  # b's axes in a's frame, one a column
    r = a.axes * rotated
    for i in range(3):
        reach = a.half[i] + wp.dot(wp.abs(r[i]), b.half)
        if wp.abs(gap[i]) > reach + slack:
            return False
    for j in range(3):
        column = wp.vec3f(r[0, j], r[1, j], r[2, j])
        reach = b.half[j] + wp.dot(wp.abs(column), a.half)
        if wp.abs(wp.dot(gap, column)) > reach + slack:
            return False
    for i in range(3):
        i1 = (i + 1) % 3
        i2 = (i + 2) % 3
        for j in range(3):
            j1 = (j + 1) % 3
            j2 = (j + 2) % 3
            reach = a.half[i1] * wp.abs(r[i2, j]) + a.half[i2] * wp.abs(r[i1, j])
            reach += b.half[j1] * wp.abs(r[i, j2]) + b.half[j2] * wp.abs(r[i, j1])
            if wp.abs(gap[i2] * r[i1, j] - gap[i1] * r[i2, j]) > reach + slack:
                return False
    return True
