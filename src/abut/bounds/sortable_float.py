"""Integers that are ordered as float32 are, for atomic maxima and for keys to sort by."""

import warp as wp


@wp.func
def to_sortable(x: wp.float32):
    """The integer of a float32."""
    bits = wp.cast(x, wp.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@wp.func
def from_sortable(i: wp.int32):
    """The float32 of an integer."""
    return wp.cast(i ^ ((i >> 31) & 0x7FFFFFFF), wp.float32)
