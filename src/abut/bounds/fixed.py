"""k-DOPs in fixed point, with the integers that the hardware model defines.

A reach is a signed integer of ``width`` bits, rounded up; a weight one of -2**(width - 1) to 0,
rounded to the nearest; the constants of an axis have width + 2 bits and cover the rounding of its
weights. An axis separates where ``sum + 2**(width - 1) * constant + 2**(width - 1) - 1`` is not
negative, which is the strict test by a sign alone. Proof in design/fixed-point-kdop.md.
"""

import warp as wp

from abut.bounds.kdop import PICK_BITS, load_reaches
from abut.core.memory_access import load_readonly_vec4i
from abut.errors import OptionError

MIN_WIDTH, MAX_WIDTH = 10, 35
FLOAT32 = 0  # as a width
NARROW = wp.constant(30)  # bits; sums of wider ones do not fit 64
NARROW_ROWS = wp.constant(3)  # of an axis: picks and weights of a, of b, both constants
LOW_BITS = wp.constant(17)  # of a wide reach, which is kept in two parts
LOW_MASK = wp.constant((1 << 17) - 1)


def validate_width(width: int) -> int:
    """Return ``width`` if it is a valid number of bits."""
    if isinstance(width, bool) or not isinstance(width, int):
        raise OptionError(f"width must be a whole number of bits, not {width!r}.")
    if not MIN_WIDTH <= width <= MAX_WIDTH:
        raise OptionError(f"width must be from {MIN_WIDTH} to {MAX_WIDTH} bits, not {width}.")
    return width


def word_count(width: int) -> int:
    """Return the 32-bit integers per reach; 0 for float32."""
    return 0 if width == FLOAT32 else 1 if width <= NARROW else 2


@wp.func
def add_narrow(
    sums: wp.vec2l, words: wp.array[wp.vec2i], at: wp.int32, pick: wp.int32, half: wp.int32,
    weight: wp.int32,
):  # fmt: skip
    """Add a weighted reach to the first sum and its opposite to the second."""
    if weight == 0:  # along a normal of the k-DOP itself, two of three
        return sums
    both = load_reaches(words, at, pick, half)
    return sums + wp.int64(weight) * wp.vec2l(wp.int64(both[0]), wp.int64(both[1]))


@wp.func
def sums_narrow(
    row: wp.vec4i, words: wp.array[wp.vec2i], at: wp.int32, half: wp.int32
):  # fmt: skip
    """Sum weighted reaches of a k-DOP along an axis and against it; a row is picks and weights."""
    sums = wp.vec2l()
    for i in range(3):
        sums = add_narrow(sums, words, at, (row[0] >> (PICK_BITS * i)) & 31, half, row[1 + i])
    return sums


@wp.func
def constants_narrow(row: wp.vec4i, width: wp.int32):
    """Return both constants of an axis, with ones below."""
    shift = wp.int64(width - 1)
    ones = (wp.int64(1) << shift) - wp.int64(1)
    return wp.vec2l((wp.int64(row[0]) << shift) | ones, (wp.int64(row[1]) << shift) | ones)


@wp.func
def overlap_kdop_narrow(
    rows: wp.array[wp.vec4i],
    first: wp.int32,
    stop: wp.int32,
    half: wp.int32,
    width: wp.int32,
    words_a: wp.array[wp.vec2i],
    at_a: wp.int32,
    words_b: wp.array[wp.vec2i],
    at_b: wp.int32,
):
    """Return whether two k-DOPs of at most 30 bits may overlap, by axes ``first`` to ``stop``.

    Guarantee:
        Conservative. False only when the k-DOPs, and all they bound, are apart.
    """
    for axis in range(first, stop):
        row = NARROW_ROWS * axis
        on_a = sums_narrow(load_readonly_vec4i(rows, row), words_a, at_a, half)
        on_b = sums_narrow(load_readonly_vec4i(rows, row + 1), words_b, at_b, half)
        apart = constants_narrow(load_readonly_vec4i(rows, row + 2), width) + on_a
        if apart[0] + on_b[1] >= wp.int64(0) or apart[1] + on_b[0] >= wp.int64(0):
            return False
    return True


@wp.func
def is_apart(high: wp.int64, low: wp.int64):
    """Return whether a high and a low part, with ones below, have a sum that is not negative."""
    return high + ((low + wp.int64(LOW_MASK)) >> wp.int64(LOW_BITS)) >= wp.int64(0)


@wp.func
def add_wide(
    highs: wp.vec2l, lows: wp.vec2l, words: wp.array[wp.vec2i], at: wp.int32, pick: wp.int32,
    half: wp.int32, weight: wp.int64,
):  # fmt: skip
    """Add reaches with a weight of 36 bits, by the high 18 and by the low 17 bits of reaches."""
    if weight != wp.int64(0):
        high = load_reaches(words, at, pick, half)
        low = load_reaches(words, at + half, pick, half)
        highs += weight * wp.vec2l(wp.int64(high[0]), wp.int64(high[1]))
        lows += weight * wp.vec2l(wp.int64(low[0]), wp.int64(low[1]))
    return highs, lows


@wp.func
def overlap_kdop_wide(
    axes: wp.array2d[wp.int64],
    first: wp.int32,
    stop: wp.int32,
    half: wp.int32,
    width: wp.int32,
    words_a: wp.array[wp.vec2i],
    at_a: wp.int32,
    words_b: wp.array[wp.vec2i],
    at_b: wp.int32,
):
    """Test k-DOPs of more than 30 bits; sums take up to 72 bits, in two parts of 64 each."""
    shift = wp.int64(width - 1 - LOW_BITS)
    ones = (wp.int64(1) << shift) - wp.int64(1)
    for axis in range(first, stop):
        picks = wp.int32(axes[axis, 0])
        highs_a = wp.vec2l()
        lows_a = wp.vec2l()
        highs_b = wp.vec2l()
        lows_b = wp.vec2l()
        for i in range(3):
            pick = (picks >> (PICK_BITS * i)) & 31
            weight = axes[axis, 1 + i]
            highs_a, lows_a = add_wide(highs_a, lows_a, words_a, at_a, pick, half, weight)
        for i in range(3):
            pick = (picks >> (PICK_BITS * (3 + i))) & 31
            weight = axes[axis, 4 + i]
            highs_b, lows_b = add_wide(highs_b, lows_b, words_b, at_b, pick, half, weight)
        high = ((axes[axis, 7] << shift) | ones) + highs_a[0] + highs_b[1]
        if is_apart(high, lows_a[0] + lows_b[1]):
            return False
        high = ((axes[axis, 8] << shift) | ones) + highs_a[1] + highs_b[0]
        if is_apart(high, lows_a[1] + lows_b[0]):
            return False
    return True
