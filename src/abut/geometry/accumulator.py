"""Exact sums of triple products: a fixed-point number wide enough for any three float64 factors.

A float64 is ``mantissa * 2**(exponent - 1075)`` with a 53-bit integer mantissa, so a product of
three is a 159-bit integer shifted by the sum of three biased exponents (3 to 6138). Adding such
integers into one long two's-complement number loses nothing: no rounding, overflow, underflow or
dependence on how the processor treats floating point. This takes the place of floating-point
expansions (Shewchuk 1997), which need all of that to be right. See design/exact-predicates.md.
"""

import warp as wp

LIMB_COUNT = wp.constant(200)  # 6138 // 32 + 7 limbs are touched by the largest product
PRODUCT_LIMBS = wp.constant(7)  # touched by a product
DIGIT = wp.constant(wp.uint64(0xFFFFFFFF))
FRACTION = wp.constant(wp.uint64(0xFFFFFFFFFFFFF))
IMPLICIT_ONE = wp.constant(wp.uint64(0x10000000000000))


@wp.func
def biased_exponent(x: wp.float64):
    """Return e such that |x| = mantissa(x) * 2**(e - 1075); 1 for subnormal numbers."""
    bits = wp.cast(x, wp.uint64)
    return wp.max(wp.int32((bits >> wp.uint64(52)) & wp.uint64(0x7FF)), 1)


@wp.func
def mantissa(x: wp.float64):
    """Return the 53-bit integer of |x|."""
    bits = wp.cast(x, wp.uint64)
    fraction = bits & FRACTION
    if ((bits >> wp.uint64(52)) & wp.uint64(0x7FF)) != wp.uint64(0):
        fraction = fraction | IMPLICIT_ONE
    return fraction


@wp.func
def add_digits(limbs: wp.array[wp.int64], at: wp.int32, digits: wp.uint64, negative: wp.bool):
    """Add a 64-bit integer at limb ``at``; carries are left for ``sum_sign``."""
    low = wp.int64(digits & DIGIT)
    high = wp.int64(digits >> wp.uint64(32))
    if negative:
        low = -low
        high = -high
    limbs[at] = limbs[at] + low
    limbs[at + 1] = limbs[at + 1] + high


@wp.func
def empty_span():
    """Return the span (first, stop) of the limbs touched by no product."""
    return wp.vec2i(LIMB_COUNT, 0)


@wp.func
def add_product(
    limbs: wp.array[wp.int64], span: wp.vec2i, x: wp.float64, y: wp.float64, z: wp.float64
):
    """Add x * y * z exactly; returns ``span`` with the limbs it touches.

    Each limb has room for 2**30 such calls.

    Guarantee:
        Exact for all finite factors, subnormal ones included.
    """
    if x == wp.float64(0.0) or y == wp.float64(0.0) or z == wp.float64(0.0):
        return span
    negative = ((x < wp.float64(0.0)) != (y < wp.float64(0.0))) != (z < wp.float64(0.0))
    exponent = biased_exponent(x) + biased_exponent(y) + biased_exponent(z)
    at = exponent >> 5

    # (x1 x0) * (y1 y0) in digits of 32 bits
    mx = mantissa(x)
    my = mantissa(y)
    x0 = mx & DIGIT
    x1 = mx >> wp.uint64(32)
    y0 = my & DIGIT
    y1 = my >> wp.uint64(32)
    p0 = x0 * y0
    p1 = x0 * y1 + x1 * y0 + (p0 >> wp.uint64(32))
    p2 = x1 * y1 + (p1 >> wp.uint64(32))
    d = wp.vec4ul(p0 & DIGIT, p1 & DIGIT, p2 & DIGIT, p2 >> wp.uint64(32))

    # z, shifted to the limb boundary: 84 bits
    shift = wp.uint64(exponent & 31)
    mz = mantissa(z)
    low = (mz & DIGIT) << shift
    high = ((mz >> wp.uint64(32)) << shift) + (low >> wp.uint64(32))
    f = wp.vec3ul(low & DIGIT, high & DIGIT, high >> wp.uint64(32))

    for i in range(4):
        for j in range(3):
            add_digits(limbs, at + i + j, d[i] * f[j], negative)
    return wp.vec2i(wp.min(span[0], at), wp.max(span[1], at + PRODUCT_LIMBS))


@wp.func
def sum_sign(limbs: wp.array[wp.int64], span: wp.vec2i):
    """Return the sign (-1, 0, 1) of the sum held in ``limbs``, of which ``span`` was touched."""
    carry = wp.int64(0)
    rest = wp.int64(0)
    for i in range(span[0], span[1]):
        value = limbs[i] + carry
        rest = rest | (value & wp.int64(0xFFFFFFFF))
        carry = value >> wp.int64(32)
    if carry < wp.int64(0):
        return -1
    if carry > wp.int64(0) or rest != wp.int64(0):
        return 1
    return 0
