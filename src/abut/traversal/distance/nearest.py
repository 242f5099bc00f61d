"""NearestPair: the nearest faces of a search so far, and the choice among several searches.

The answer does not depend on the order of a search: of all pairs at the smallest distance, as
computed, it is the one with the lowest key.
"""

import warp as wp

from abut.core.atomics import atomic_min_int64
from abut.core.pair_queue import NO_KEY, pack_pair
from abut.operands.contact_queues import ContactQueues
from abut.operands.distance_queues import (
    certainly_meet,
    from_bits,
    gap_of,
    to_bits,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class NearestPair:
    """The nearest faces of a search so far."""

    bits: wp.int64  # of their distance
    key: wp.int64  # without a row; NO_KEY where there are none, or where faces meet
    direction: wp.vec3d  # from a to b


@wp.func
def nearest_limit(distance: wp.float64, tolerance: wp.float64):
    """The distance at which faces may still be the answer, or improve on it by the tolerance."""
    return wp.max(distance - tolerance, wp.float64(0.0))


@wp.func
def compare_faces(
    queues: ContactQueues,
    rank: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    a: wp.mat33d,
    b: wp.mat33d,
    gap: wp.float32,
    found: NearestPair,
):
    """The nearer of the pair found and two faces whose boxes are ``gap`` apart, squared.

    Faces that meet have bits of 0 and no key.
    """
    out = NearestPair()
    out.bits = found.bits
    out.key = found.key
    out.direction = found.direction
    met = wp.bool(False)
    if not (gap > wp.float32(0.0)):
        met = certainly_meet(queues, rank, face_a, face_b, a, b)
    if met:
        out.bits = wp.int64(0)
    else:
        near = gap_of(a, b)
        best = from_bits(found.bits)
        if near.distance <= best:
            key = pack_pair(0, face_a, face_b, queues.bits)
            out.bits = to_bits(near.distance)
            out.key = wp.where(near.distance < best, key, wp.min(found.key, key))
            out.direction = near.q - near.p
    return out


@wp.kernel
def choose_kernel(
    # in
    span: wp.vec3i,
    bound: wp.array[wp.int64],
    distances: wp.array[wp.int64],
    keys: wp.array[wp.int64],
    each: wp.int32,
    # out
    key_out: wp.array[wp.int64],
):
    """The lowest key of each row among the pairs at its bound, of ``each`` walks a row."""
    for work in range(span[0] + wp.tid(), wp.min(span[1], keys.shape[0]), span[2]):
        row = work / each
        if keys[work] != NO_KEY and distances[work] == bound[row]:
            atomic_min_int64(key_out, row, keys[work])
