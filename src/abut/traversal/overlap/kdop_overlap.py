"""Whether the DOPs of two posed trees overlap, along axes that were worked out before."""

import warp as wp

from abut.bounds.fixed import overlap_kdop_narrow, overlap_kdop_wide
from abut.bounds.kdop import overlap_kdop

SINGLE_DOPS = wp.constant(1)
NARROW_DOPS = wp.constant(2)
WIDE_DOPS = wp.constant(3)


@wp.struct
class DopFrames:
    """DOPs of two trees and the axes of every pose; ``kind`` says which arrays are used."""

    kind: wp.int32
    width: wp.int32
    half: wp.int32  # normals, k / 2
    stride: wp.int32  # pairs of words of a slot
    axis_count: wp.int32
    words_a: wp.array[wp.vec2i]
    words_b: wp.array[wp.vec2i]
    axes: wp.array2d[wp.int64]
    narrow_axes: wp.array[wp.vec4i]  # the same, for numbers that fit
    single_axes: wp.array2d[wp.float32]


@wp.func
def overlap_dops(dops: DopFrames, pose: wp.int32, i: wp.int32, j: wp.int32):
    """May the DOPs of slot i of a and slot j of b overlap? True where there are none."""
    first = pose * dops.axis_count
    stop = first + dops.axis_count
    at_a = dops.stride * i
    at_b = dops.stride * j
    if dops.kind == NARROW_DOPS:
        rows = dops.narrow_axes
        return overlap_kdop_narrow(
            rows, first, stop, dops.half, dops.width, dops.words_a, at_a, dops.words_b, at_b
        )
    if dops.kind == WIDE_DOPS:
        return overlap_kdop_wide(
            dops.axes, first, stop, dops.half, dops.width, dops.words_a, at_a, dops.words_b, at_b
        )
    if dops.kind == SINGLE_DOPS:
        return overlap_kdop(
            dops.single_axes, first, stop, dops.half, dops.words_a, at_a, dops.words_b, at_b
        )
    return True
