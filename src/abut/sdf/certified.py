"""Certified intervals of the true distance, from the samples of a field.

The squared distance from a surface is |p|^2 - 2 P(p), where P is convex and the closest point of p
is a subgradient of P. Trilinear weights are convex combinations, so samples bound the distance
between them to second order in the spacing, and differences of P bound closest points. Signs follow
from the empty balls around samples. Proofs: design/distance-field-bounds.md. All in float64.
"""

import warp as wp

from abut.sdf.grid import GRADIENT_STEPS, FieldGrid

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))
HALF = wp.constant(wp.float64(0.5))
THIRD = wp.constant(wp.float64(1.0 / 3.0))
PER_STEP = wp.constant(wp.float64(1.0 / GRADIENT_STEPS))
FOOT_ERROR = wp.constant(wp.float64(3.0e-5))  # of a distance, by steps of the gradient
SLACK = wp.constant(wp.float64(1.0e-9))  # of a bound; exceeds the rounding of float64
TINY = wp.constant(wp.float64(1.0e-8))  # cells; exceeds the rounding of the box and of P
FARTHEST = wp.constant(wp.float64(1.0e300))
SHORT_STEP, LONG_STEP = wp.constant(wp.float64(1.5)), wp.constant(wp.float64(5.0))  # cells
LEAF_COLUMNS = 16  # lower and then upper bounds: force, torque, area, energy


@wp.struct
class CertifiedField:
    """A field, with bounds on the errors of its samples."""

    grid: FieldGrid
    error: wp.float64  # of a sample's distance
    band: wp.float64  # distances from here on are clamped


@wp.struct
class Interval:
    """Bounds of the unsigned distance, and the sign where it is certain, else 0."""

    low: wp.float64
    high: wp.float64
    sign: wp.float64


@wp.func
def box_cell(grid: FieldGrid, held: wp.vec3d):
    """Return the cell of a point of the box, in cells."""
    out = wp.vec3i()
    for x in range(3):
        out[x] = wp.clamp(wp.int32(held[x]), 0, grid.shape[x] - 2)
    return out


@wp.func
def distance_interval(field: CertifiedField, p: wp.vec3d):
    """Return bounds of the distance of any point."""
    grid = field.grid
    at = (p - grid.lower) / grid.spacing
    held = wp.vec3d()
    for x in range(3):
        held[x] = wp.clamp(at[x], ZERO, wp.float64(grid.shape[x] - 1))
    beyond = grid.spacing * wp.length(at - held)
    cell = box_cell(grid, held)
    share = held - wp.vec3d(cell)
    out = Interval()
    out.high = FARTHEST
    squares = wp.float64(0.0)
    spread = wp.float64(0.0)
    ball = wp.float64(0.0)
    for x in range(3):
        spread += share[x] * (ONE - share[x])
    if beyond > ZERO:
        out.sign = ONE
    for corner in range(8):
        k = wp.vec3i(corner >> 2, (corner >> 1) & 1, corner & 1)
        weight = wp.float64(1.0)
        for x in range(3):
            weight *= wp.where(k[x] == 1, share[x], ONE - share[x])
        i = cell + k
        signed = wp.float64(grid.distance[i[0], i[1], i[2]])
        size = wp.abs(signed)
        sure = wp.max(size - field.error, ZERO)
        squares += weight * sure * sure
        away = p - (grid.lower + grid.spacing * wp.vec3d(i))
        gap = sure - wp.length(away)
        if beyond == ZERO:
            ball = wp.max(ball, gap)
            if gap > ZERO:
                out.sign = wp.where(signed > ZERO, ONE, -ONE)
        if size < field.band:
            g = grid.gradient[i[0], i[1], i[2]]
            to_foot = wp.vec3d()
            for x in range(3):
                to_foot[x] = away[x] + signed * PER_STEP * wp.float64(g[x])
            reach = wp.length(away) + size
            if not (g == wp.vec3s()):
                reach = wp.min(reach, wp.length(to_foot) + FOOT_ERROR * size)
            out.high = wp.min(out.high, reach + field.error)
    squares -= grid.spacing * grid.spacing * spread
    past = wp.max(beyond - TINY * grid.spacing, ZERO)  # the box cuts 2^-40 of its side, at most
    squares = wp.max(squares, ball * ball) + past * past
    out.low = wp.sqrt(wp.max(squares, ZERO)) * (ONE - SLACK)
    out.high = out.high * (ONE + SLACK)
    return out


@wp.func
def signed_interval(found: Interval):
    """Return (lower, upper) bound of the signed distance."""
    if found.sign > ZERO:
        return wp.vec2d(found.low, found.high)
    if found.sign < ZERO:
        return wp.vec2d(-found.high, -found.low)
    return wp.vec2d(-found.high, found.high)


@wp.func
def potential_interval(field: CertifiedField, p: wp.vec3d, origin: wp.vec3d):
    """Return bounds of P = (|p - origin|^2 - distance^2) / 2."""
    found = distance_interval(field, p)
    square = wp.length_sq(p - origin)
    low = HALF * (square - found.high * found.high)
    return wp.vec2d(low, HALF * (square - found.low * found.low))


@wp.func
def longest_edge_length(t: wp.mat33d):
    """Return the longest edge of a triangle."""
    return wp.max(wp.length(t[1] - t[0]), wp.max(wp.length(t[2] - t[1]), wp.length(t[0] - t[2])))


@wp.func
def radius_about(t: wp.mat33d, middle: wp.vec3d):
    """Return the radius of a triangle about a point."""
    far = wp.max(wp.length(t[1] - middle), wp.length(t[2] - middle))
    return wp.max(wp.length(t[0] - middle), far)


@wp.func
def triangle_interval(field: CertifiedField, t: wp.mat33d):
    """Return a lower bound of the signed distance on a triangle, and an upper bound of its least.

    The third number bounds how deep any of its points is, the fourth is 1 where all are outside,
    -1 where all are inside.
    """
    middle = THIRD * (t[0] + t[1] + t[2])
    radius = radius_about(t, middle)
    found = distance_interval(field, middle)
    signed = signed_interval(found)
    high = signed[1]
    least = wp.float64(1.0e300)
    for k in range(3):
        corner = distance_interval(field, t[k])
        high = wp.min(high, signed_interval(corner)[1])
        least = wp.min(least, corner.low)
    low = signed[0] - radius
    side = wp.float64(0.0)
    if found.low > radius:
        side = found.sign
    edge = longest_edge_length(t)
    if side > ZERO:
        low = wp.max(low, wp.sqrt(wp.max(least * least - THIRD * edge * edge, ZERO)))
    depth = wp.max(-low, ZERO)
    return wp.vec4d(low, high, depth, side)


@wp.kernel
def triangle_intervals_kernel(
    # in
    span: wp.vec3i,
    field: CertifiedField,
    triangles: wp.array[wp.mat33d],
    # out
    intervals_out: wp.array[wp.vec4d],
):
    """Bound the distances on triangles."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        intervals_out[i] = triangle_interval(field, triangles[i])


@wp.func
def mean_potential(field: CertifiedField, t: wp.mat33d, middle: wp.vec3d, shift: wp.vec3d):
    """Return bounds of the mean of P on a shifted triangle; P is convex and about ``middle``."""
    low = potential_interval(field, middle + shift, middle)[0]
    high = wp.float64(0.0)
    for k in range(3):
        high += THIRD * potential_interval(field, t[k] + shift, middle)[1]
    return wp.vec2d(low, high)


@wp.func
def mean_foot(field: CertifiedField, t: wp.mat33d, middle: wp.vec3d, axis: wp.int32):
    """Return bounds of the mean of (closest point - p) on a triangle along an axis."""
    here = mean_potential(field, t, middle, wp.vec3d())
    low = wp.float64(-1.0e300)
    high = wp.float64(1.0e300)
    for k in range(2):
        step = field.grid.spacing * wp.where(k == 0, SHORT_STEP, LONG_STEP)
        shift = wp.vec3d()
        shift[axis] = step
        high = wp.min(high, (mean_potential(field, t, middle, shift)[1] - here[0]) / step)
        low = wp.max(low, (here[0] - mean_potential(field, t, middle, -shift)[1]) / step)
    rounding = TINY * field.grid.spacing
    return wp.vec2d(low - rounding, high + rounding)


@wp.func
def times(a: wp.float64, b: wp.vec2d):
    """Return an interval times a number."""
    x = a * b[0]
    y = a * b[1]
    return wp.vec2d(wp.min(x, y), wp.max(x, y))


@wp.kernel
def leaf_forces_kernel(
    # in
    span: wp.vec3i,
    field: CertifiedField,
    triangles: wp.array[wp.mat33d],
    centre: wp.vec3d,
    stiffness: wp.float64,
    # out
    leaves_out: wp.array2d[wp.float64],
):
    """Bound the penalty force, its torque, area and energy of the part of each triangle inside."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        t = triangles[i]
        middle = THIRD * (t[0] + t[1] + t[2])
        found = triangle_interval(field, t)
        depth = found[2]
        area = HALF * wp.length(wp.cross(t[1] - t[0], t[2] - t[0]))
        scale = stiffness * area
        radius = radius_about(t, middle)
        lever = middle - centre
        least = wp.float64(0.0)  # depth of all points inside
        low = wp.vec3d()
        high = wp.vec3d()
        if found[3] > ZERO:
            area = ZERO
            scale = ZERO
        for x in range(3):
            high[x] = depth
            low[x] = -depth
        if found[3] < ZERO:
            inside = distance_interval(field, middle)
            least = wp.max(inside.low - radius, ZERO)
            for x in range(3):
                foot = mean_foot(field, t, middle, x)
                high[x] = wp.min(high[x], -foot[0])
                low[x] = wp.max(low[x], -foot[1])
        for x in range(3):
            y = (x + 1) % 3
            z = (x + 2) % 3
            one = times(lever[y], wp.vec2d(low[z], high[z]))
            two = times(-lever[z], wp.vec2d(low[y], high[y]))
            leaves_out[i, x] = scale * low[x]
            leaves_out[i, 8 + x] = scale * high[x]
            leaves_out[i, 3 + x] = scale * (one[0] + two[0] - radius * depth)
            leaves_out[i, 11 + x] = scale * (one[1] + two[1] + radius * depth)
        leaves_out[i, 6] = wp.where(found[3] < ZERO, area, ZERO)
        leaves_out[i, 14] = area
        leaves_out[i, 7] = HALF * scale * least * least
        leaves_out[i, 15] = HALF * scale * depth * depth
