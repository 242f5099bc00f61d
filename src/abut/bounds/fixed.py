"""k-DOPs in fixed point: the integers that the hardware model defines, on every device.

A reach is a signed integer of ``width`` bits, rounded up; a weight one of -2**(width - 1) to 0,
rounded to the nearest; the constants of an axis have width + 2 bits and cover the rounding of its
weights. An axis separates where ``sum + 2**(width - 1) * constant + 2**(width - 1) - 1`` is not
negative, which is the strict test by a sign alone. Proof in design/fixed-point-kdop.md.
"""

import warp as wp

from abut.bounds.kdop import PICK_BITS, opposite
from abut.errors import OptionError

LEAST_WIDTH, MOST_WIDTH = 10, 35
SINGLE = 0  # in place of a width: float32
NARROW = wp.constant(30)  # bits; sums of wider ones do not fit 64
LOW_BITS = wp.constant(17)  # of a wide reach, which is kept in two parts
LOW_MASK = wp.constant((1 << 17) - 1)


def checked_width(width: int) -> int:
    """``width`` where it is one."""
    if isinstance(width, bool) or not isinstance(width, int):
        raise OptionError(f"width must be a whole number of bits, not {width!r}.")
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise OptionError(f"width must be from {LEAST_WIDTH} to {MOST_WIDTH} bits, not {width}.")
    return width


def parts_of(width: int) -> int:
    """How many 32-bit integers a reach takes; 0 for float32."""
    return 0 if width == SINGLE else 1 if width <= NARROW else 2


@wp.func
def overlap_narrow(
    axes: wp.array2d[wp.int64],
    first: wp.int32,
    stop: wp.int32,
    half: wp.int32,
    width: wp.int32,
    reaches_a: wp.array[wp.int32],
    at_a: wp.int32,
    reaches_b: wp.array[wp.int32],
    at_b: wp.int32,
):
    """May two DOPs of at most 30 bits overlap, by the axes in rows ``first`` to ``stop``?

    Guarantee:
        Conservative. False only when the DOPs, and all they bound, are apart.
    """
    shift = wp.int64(width - 1)
    ones = (wp.int64(1) << shift) - wp.int64(1)
    for axis in range(first, stop):
        picks = wp.int32(axes[axis, 0])
        before = (axes[axis, 7] << shift) | ones
        behind = (axes[axis, 8] << shift) | ones
        for i in range(3):
            pick = (picks >> (PICK_BITS * i)) & 31
            weight = wp.int64(wp.int32(axes[axis, 1 + i]))  # one wide product of 32 bits each
            before += weight * wp.int64(reaches_a[at_a + pick])
            behind += weight * wp.int64(reaches_a[at_a + opposite(pick, half)])
        for i in range(3):
            pick = (picks >> (PICK_BITS * (3 + i))) & 31
            weight = wp.int64(wp.int32(axes[axis, 4 + i]))
            before += weight * wp.int64(reaches_b[at_b + opposite(pick, half)])
            behind += weight * wp.int64(reaches_b[at_b + pick])
        if before >= wp.int64(0) or behind >= wp.int64(0):
            return False
    return True


@wp.func
def high_of(before: wp.vec2l):
    """The sum of a high and a low part, without its 17 lowest bits: its sign is the sum's."""
    return before[0] + (before[1] >> wp.int64(LOW_BITS))


@wp.func
def wide_product(weight: wp.int64, reaches: wp.array[wp.int32], at: wp.int32, sides: wp.int32):
    """A weight of 36 bits by the high 18 and by the low 17 bits of a reach."""
    return wp.vec2l(weight * wp.int64(reaches[at]), weight * wp.int64(reaches[at + sides]))


@wp.func
def overlap_wide(
    axes: wp.array2d[wp.int64],
    first: wp.int32,
    stop: wp.int32,
    half: wp.int32,
    width: wp.int32,
    reaches_a: wp.array[wp.int32],
    at_a: wp.int32,
    reaches_b: wp.array[wp.int32],
    at_b: wp.int32,
):
    """``overlap_narrow`` for more bits, whose sums take up to 72: in two parts of 64 each."""
    sides = 2 * half
    shift = wp.int64(width - 1 - LOW_BITS)
    ones = wp.int64(LOW_MASK)
    high_ones = (wp.int64(1) << shift) - wp.int64(1)
    for axis in range(first, stop):
        picks = wp.int32(axes[axis, 0])
        before = wp.vec2l((axes[axis, 7] << shift) | high_ones, ones)
        behind = wp.vec2l((axes[axis, 8] << shift) | high_ones, ones)
        for i in range(3):
            pick = (picks >> (PICK_BITS * i)) & 31
            weight = axes[axis, 1 + i]
            before += wide_product(weight, reaches_a, at_a + pick, sides)
            behind += wide_product(weight, reaches_a, at_a + opposite(pick, half), sides)
        for i in range(3):
            pick = (picks >> (PICK_BITS * (3 + i))) & 31
            weight = axes[axis, 4 + i]
            before += wide_product(weight, reaches_b, at_b + opposite(pick, half), sides)
            behind += wide_product(weight, reaches_b, at_b + pick, sides)
        if high_of(before) >= wp.int64(0) or high_of(behind) >= wp.int64(0):
            return False
    return True
