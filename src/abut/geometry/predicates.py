"""Orientation signs of points: a floating-point filter with a proven bound, then exact arithmetic.

Filter: let u = 2**-53. A determinant of differences is a sum of products of three; every product
meets at most 8 roundings (three differences, two multiplications, three additions), so the error
is below 8.1 u times the sum of absolute products. The bound used, 16 u, leaves a factor of almost
two. Underflow adds at most 2**-1075 per multiplication, which the constants below cover. They are
larger than they need to be, so that axis-aligned faces meet no subnormal numbers, which processors
multiply slowly. Overflow gives infinity or NaN, which no comparison decides. Derivation:
design/exact-predicates.md.
"""

import warp as wp

from abut.geometry.accumulator import LIMB_COUNT, add_product, empty_span, sum_sign

UNDECIDED = wp.constant(2)
RELATIVE_BOUND = wp.constant(wp.float64(2.0**-49))
ABSOLUTE_BOUND = wp.constant(wp.float64(2.0**-1000))
SPLITTER = wp.constant(wp.float64(2.0**27 + 1.0))
SMALLEST_FACTOR = wp.constant(wp.float64(2.0**-400))  # products of two do not underflow
LARGEST_FACTOR = wp.constant(wp.float64(2.0**500))  # nor overflow
SMALLEST_SPREAD = wp.constant(wp.float64(2.0**-400))


@wp.func
def filtered_sign(value: wp.float64, bound: wp.float64):
    """Sign of ``value`` when it is certain within ``bound``, else UNDECIDED (also for NaN)."""
    up = wp.int32(value > bound)  # without branches: signs are unpredictable
    down = wp.int32(-value > bound)
    return up - down + UNDECIDED * (1 - up - down)


@wp.func
def cross_spread(u: wp.vec3d, v: wp.vec3d):
    """Component-wise sum of the absolute products in ``cross(u, v)``, never below a tiny number."""
    return wp.vec3d(
        wp.abs(u[1] * v[2]) + wp.abs(u[2] * v[1]) + SMALLEST_SPREAD,
        wp.abs(u[2] * v[0]) + wp.abs(u[0] * v[2]) + SMALLEST_SPREAD,
        wp.abs(u[0] * v[1]) + wp.abs(u[1] * v[0]) + SMALLEST_SPREAD,
    )


@wp.func
def side_filtered(normal: wp.vec3d, spread: wp.vec3d, offset: wp.vec3d):
    """Sign of ``dot(normal, offset)``; normal = cross(u, v), spread = cross_spread(u, v).

    Guarantee:
        A returned sign is exact for u, v, offset that are differences of float64 points.
    """
    bound = RELATIVE_BOUND * wp.dot(spread, wp.abs(offset)) + ABSOLUTE_BOUND
    return filtered_sign(wp.dot(normal, offset), bound)


@wp.func
def orient3d_filtered(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d):
    """Return the side of the plane a, b, c that d is on: 1 along the normal, -1, or UNDECIDED."""
    u = b - a
    v = c - a
    return side_filtered(wp.cross(u, v), cross_spread(u, v), d - a)


@wp.func
def orient2d_filtered(
    ax: wp.float64, ay: wp.float64, bx: wp.float64, by: wp.float64, cx: wp.float64, cy: wp.float64
):
    """Return the orientation of a, b, c: 1 counter-clockwise, -1 clockwise, or UNDECIDED."""
    left = (bx - ax) * (cy - ay)
    right = (by - ay) * (cx - ax)
    bound = RELATIVE_BOUND * (wp.abs(left) + wp.abs(right)) + ABSOLUTE_BOUND
    return filtered_sign(left - right, bound)


@wp.func
def add_det3(
    limbs: wp.array[wp.int64],
    span: wp.vec2i,
    a: wp.vec3d,
    b: wp.vec3d,
    c: wp.vec3d,
    sign: wp.float64,
):
    """Add ``sign * det(a, b, c)`` to an accumulator; ``sign`` is 1 or -1. Returns its span."""
    for term in range(6):  # one call, so that the code stays small where it is inlined
        i = term % 3
        j = (i + 1 + term / 3) % 3
        factor = wp.where(term < 3, sign, -sign)
        span = add_product(limbs, span, factor * a[i], b[j], c[3 - i - j])
    return span


@wp.func
def difference_is_exact(a: wp.float64, b: wp.float64):
    """Return True only if ``a - b`` is free of rounding (TwoDiff's tail is zero; Knuth)."""
    x = a - b
    b_virtual = a - x
    a_virtual = x + b_virtual
    tail = (b_virtual - b) + (a - a_virtual)
    return tail == wp.float64(0.0)


@wp.func
def differences_are_exact(a: wp.vec3d, b: wp.vec3d):
    """Return True only if all three components of ``a - b`` are free of rounding."""
    return (
        difference_is_exact(a[0], b[0])
        and difference_is_exact(a[1], b[1])
        and difference_is_exact(a[2], b[2])
    )


@wp.func(inline=False)
def orient3d_accumulated(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d):
    """Return ``orient3d`` by exact summation: one determinant of differences, or four of points."""
    limbs = wp.zeros(shape=(LIMB_COUNT,), dtype=wp.int64)
    span = empty_span()
    exact = (
        differences_are_exact(b, a) and differences_are_exact(c, a) and differences_are_exact(d, a)
    )
    for k in range(wp.where(exact, 1, 4)):
        u = b
        v = c
        w = d
        sign = wp.float64(1.0)
        if exact:
            u = b - a
            v = c - a
            w = d - a
        elif k > 0:
            sign = wp.float64(-1.0)
            u = wp.where(k == 1, a, b)
            v = wp.where(k == 2, a, c)
            w = wp.where(k == 3, a, d)
        span = add_det3(limbs, span, u, v, w, sign)
    return sum_sign(limbs, span)


@wp.func
def orient3d(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d):
    """Return the side of the plane a, b, c that d is on: 1 along the normal, -1, or 0 on it.

    Guarantee:
        Exact for all finite float64 coordinates.
    """
    sign = orient3d_filtered(a, b, c, d)
    if sign != UNDECIDED:
        return sign
    for i in range(3):  # an axis-aligned plane, common in man-made shapes
        if a[i] == b[i] and a[i] == c[i] and a[i] == d[i]:
            return 0
    return orient3d_accumulated(a, b, c, d)


@wp.func(inline=False)
def orient2d_accumulated(
    ax: wp.float64, ay: wp.float64, bx: wp.float64, by: wp.float64, cx: wp.float64, cy: wp.float64
):
    """Return ``orient2d`` by exact summation."""
    limbs = wp.zeros(shape=(LIMB_COUNT,), dtype=wp.int64)
    one = wp.float64(1.0)
    a = wp.vec3d(ax, ay, one)
    span = add_det3(limbs, empty_span(), a, wp.vec3d(bx, by, one), wp.vec3d(cx, cy, one), one)
    return sum_sign(limbs, span)


@wp.func
def is_short(x: wp.float64):
    """Return True only if x is 0, or has at most 26 bits and a common size (Veltkamp's split)."""
    scaled = SPLITTER * x
    high = scaled - (scaled - x)
    usual = wp.abs(x) > SMALLEST_FACTOR and wp.abs(x) < LARGEST_FACTOR
    return x == high and (usual or x == wp.float64(0.0))


@wp.func
def orient2d_short(
    ax: wp.float64, ay: wp.float64, bx: wp.float64, by: wp.float64, cx: wp.float64, cy: wp.float64
):
    """Return the orientation of a, b, c if float64 computes it exactly, else UNDECIDED.

    Coordinates of float32, or of a grid, have differences so short that products do not round.
    """
    exact = difference_is_exact(bx, ax) and difference_is_exact(cy, ay)
    exact = exact and difference_is_exact(by, ay) and difference_is_exact(cx, ax)
    exact = exact and is_short(bx - ax) and is_short(cy - ay)
    if not (exact and is_short(by - ay) and is_short(cx - ax)):
        return UNDECIDED
    left = (bx - ax) * (cy - ay)
    right = (by - ay) * (cx - ax)
    return wp.int32(left > right) - wp.int32(left < right)


@wp.func
def orient2d(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, axis: wp.int32):
    """Return the orientation of a, b, c seen along ``axis``: 1 counter-clockwise, -1, 0 on a line.

    Guarantee:
        Exact for all finite float64 coordinates.
    """
    x = (axis + 1) % 3
    y = (axis + 2) % 3
    sign = orient2d_filtered(a[x], a[y], b[x], b[y], c[x], c[y])
    if sign != UNDECIDED:
        return sign
    if (a[x] == b[x] and a[x] == c[x]) or (a[y] == b[y] and a[y] == c[y]):
        return 0
    sign = orient2d_short(a[x], a[y], b[x], b[y], c[x], c[y])
    if sign != UNDECIDED:
        return sign
    return orient2d_accumulated(a[x], a[y], b[x], b[y], c[x], c[y])
