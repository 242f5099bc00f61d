"""Fronts of all meetings of a crowd, side by side in one queue and moved together.

Meetings come and go and their ranks change. A front belongs to a meeting for as long as the two
objects are listed and their trees have kept their topology; others begin at the roots.
"""

import warp as wp

from abut.bounds.relative import Relative
from abut.crowd import Crowd, Meeting, frame_of, meeting_at
from abut.hierarchy.forest import tree_of
from abut.pairs import PairQueue, pack_pair, push_pair, queue_stop, store_pair, unpack_pair
from abut.traversal.front import HELD, STACK, Front, Moved, advance_pair, flush_full

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Fronts:
    """What the fronts of all meetings have in common."""

    ranges: wp.array[wp.vec2i]  # leaves below the slots of all bodies
    frames: wp.array[Relative]  # of meetings
    slot_bits: wp.vec2i  # layout of keys of nodes


@wp.func
def front_of(crowd: Crowd, fronts: Fronts, rank: wp.int32):
    """The front of a meeting."""
    meeting = meeting_at(crowd, rank)
    a = meeting.body_a
    b = meeting.body_b
    out = Front()
    out.tree_a = tree_of(crowd.forest, a)
    out.tree_b = tree_of(crowd.forest, b)
    out.ranges_a = fronts.ranges[2 * a.first_face : 2 * (a.first_face + a.face_count)]
    out.ranges_b = fronts.ranges[2 * b.first_face : 2 * (b.first_face + b.face_count)]
    out.frames = fronts.frames[rank : rank + 1]
    out.within = meeting.own
    out.number = rank
    out.slot_bits = fronts.slot_bits
    out.bits = crowd.bits
    return out


@wp.func
def roots_key(meeting: Meeting, rank: wp.int32, slot_bits: wp.vec2i):
    """The pair at which a new front begins."""
    root_a = 2 * meeting.body_a.face_count - 2
    root_b = 2 * meeting.body_b.face_count - 2
    return pack_pair(rank, root_a, root_b, slot_bits)


@wp.func
def place_of(queue: PairQueue, key: wp.int64):
    """Where a key is in a sorted queue, -1 where it is not."""
    low = wp.int32(0)
    high = queue_stop(queue, queue.keys.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if queue.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < queue_stop(queue, queue.keys.shape[0]):
        if queue.keys[low] == key:
            return low
    return -1


@wp.kernel
def begin_fronts_kernel(
    # in
    span: wp.vec3i,
    kept: wp.int32,
    # out
    ranks_out: wp.array[wp.int32],
    counts_out: wp.array[wp.int64],
):
    """No meeting is known again yet; queues are empty, but for those of the fronts as they are."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if i < ranks_out.shape[0]:
            ranks_out[i] = -1
        if i < counts_out.shape[0] and i != kept and i != kept + 1:
            counts_out[i] = wp.int64(0)


@wp.kernel
def adopt_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    last: PairQueue,
    changed: wp.array[wp.int32],
    slot_bits: wp.vec2i,
    # out
    frames_out: wp.array[Relative],
    met_out: PairQueue,
    ranks_out: wp.array[wp.int32],
    starts_out: PairQueue,
):
    """The frame of each meeting, and where its front is: as it was, or at the roots.

    ``last`` and ``met_out`` list pairs of objects in the order of ranks; ``ranks_out`` tells new
    ranks by old ones. A tree that has ``changed`` ends the fronts of its object.
    """
    for rank in range(span[0] + wp.tid(), queue_stop(crowd.meetings, span[1]), span[2]):
        meeting = meeting_at(crowd, rank)
        frames_out[rank] = frame_of(crowd, meeting)
        pair = (wp.int64(meeting.at_a) << wp.int64(32)) | wp.int64(meeting.at_b)
        store_pair(met_out, wp.int64(rank), pair)
        if rank == 0:
            met_out.count[0] = crowd.meetings.count[0]
        before = place_of(last, pair)
        if before >= 0 and changed[meeting.at_a] + changed[meeting.at_b] == 0:
            ranks_out[before] = rank
        else:
            push_pair(starts_out, roots_key(meeting, rank, slot_bits))


@wp.kernel
def advance_meetings_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    fronts: Fronts,
    last: PairQueue,
    ranks: wp.array[wp.int32],
    most: wp.int32,
    climb: wp.bool,
    # out
    moved_out: Moved,
):
    """Move each pair of the fronts; those of meetings that are no more are dropped.

    Without ``ranks`` keys have those of now.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.int64)
    kept = wp.zeros(shape=(HELD,), dtype=wp.int64)
    found = wp.zeros(shape=(HELD,), dtype=wp.int64)
    at = wp.vec3i(0, 0, 0)
    front = Front()
    front.number = -1
    for i in range(span[0] + wp.tid(), queue_stop(last, span[1]), span[2]):
        row = unpack_pair(last.keys[i], fronts.slot_bits)
        rank = row[0]
        if ranks.shape[0] > 0:
            rank = ranks[rank]
        if rank < 0:
            continue
        if rank != front.number:
            front = front_of(crowd, fronts, rank)
        start = wp.vec2i(row[1], row[2])
        at = advance_pair(front, start, most, climb, at, stack, kept, found, moved_out)
    flush_full(at, kept, found, 1, moved_out)
