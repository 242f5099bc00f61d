"""Faces that a traversal finds, collected per thread and pushed to a queue in groups."""

import warp as wp

from abut.core.atomics import atomic_add_aggregated
from abut.core.pair_queue import PairQueue, pack_pair, store_pair

LISTED = wp.constant(16)  # faces gathered before room is asked for


@wp.func
def list_found(
    pose: wp.int32,
    face: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    bits: wp.vec2i,
    swapped: wp.bool,
    queue: PairQueue,
):
    """Push the pairs of a face and ``count`` faces found of the other mesh."""
    place = atomic_add_aggregated(queue.count, count)
    for i in range(count):
        key = pack_pair(pose, face, found[i], bits)
        if swapped:
            key = pack_pair(pose, found[i], face, bits)
        store_pair(queue, place + wp.int64(i), key)


@wp.func
def note_found(
    other: wp.int32,
    pose: wp.int32,
    face: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    bits: wp.vec2i,
    swapped: wp.bool,
    queue: PairQueue,
):
    """Collect one more face; a full buffer is pushed. Returns the number of faces it holds."""
    found[count] = other
    held = count + 1
    if held == LISTED:
        list_found(pose, face, found, held, bits, swapped, queue)
        held = 0
    return held
