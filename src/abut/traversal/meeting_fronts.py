"""Fronts of all meetings of a crowd, side by side in one queue and moved together.

Meetings come and go and their ranks change. A front belongs to a meeting for as long as the two
objects are listed and their trees have kept their topology; others begin at the roots. A meeting
rests when nothing at all has changed about it: its front stays and its rows are those of before.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.core.pair_queue import (
    PairQueue,
    find_key,
    pack_pair,
    push_pair,
    queue_size,
    queue_stop,
    store_pair,
    unpack_pair,
)
from abut.operands.scene_pairs import Crowd, Meeting, frame_of, meeting_at
from abut.traversal.front import (
    FULL,
    HELD,
    STACK,
    Front,
    Moved,
    advance_pair,
    flush_full,
    gap_between,
    highest_apart,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


SAME = wp.constant(0)  # what an object is compared with before: the same tree and shape,
BENT = wp.constant(1)  # the same tree about another shape, or
OTHER = wp.constant(2)  # another tree


@wp.struct
class Fronts:
    """What the fronts of all meetings have in common."""

    ranges: wp.array[wp.vec2i]  # leaves below the slots of all bodies
    slot_bits: wp.vec2i  # layout of keys of nodes
    ranks: wp.array[wp.int32]  # of the meetings there were, their ranks of now; -1: no more
    frames: wp.array[RelativeFrame]  # of the meetings there are
    resting: wp.array[wp.int32]  # whether a meeting rests


@wp.func
def roots_key(meeting: Meeting, rank: wp.int32, slot_bits: wp.vec2i):
    """The pair at which a new front begins."""
    root_a = 2 * meeting.body_a.face_count - 2
    root_b = 2 * meeting.body_b.face_count - 2
    return pack_pair(rank, root_a, root_b, slot_bits)


@wp.func
def stand_in(front: Front, pair: wp.vec2i):
    """What is kept for a pair whose boxes have not moved: one above it, or none, if it is apart."""
    if gap_between(front, pair[0], pair[1]) > wp.float32(0.0):
        return highest_apart(front, pair[0], pair[1])
    return pair


@wp.func
def is_same_pose(a: wp.mat44d, b: wp.mat44d):
    """Whether two poses are the same to the last bit."""
    same = wp.bool(True)
    for i in range(3):
        for j in range(4):
            if a[i, j] != b[i, j]:
                same = False
    return same


@wp.func
def known_rank(fronts: Fronts, rank: wp.int32, from_before: wp.bool):
    """The rank that a meeting has now."""
    if from_before:
        return fronts.ranks[rank]
    return rank


@wp.kernel
def begin_fronts_kernel(
    # in
    span: wp.vec3i,
    kept: wp.int32,
    # out
    ranks_out: wp.array[wp.int32],
    counts_out: wp.array[wp.int64],
):
    """No meeting is known again yet; queues are empty, but for the first and those of fronts."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if i < ranks_out.shape[0]:
            ranks_out[i] = -1
        if i > 0 and i < counts_out.shape[0] and i != kept and i != kept + 1:
            counts_out[i] = wp.int64(0)


@wp.kernel
def adopt_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    last: PairQueue,
    changes: wp.array[wp.int32],
    poses: wp.array[wp.mat44d],
    # out
    fronts_out: Fronts,
    met_out: PairQueue,
    starts_out: PairQueue,
):
    """The frame of each meeting, and where its front is: as it was, or at the roots.

    ``last`` and ``met_out`` list pairs of objects in the order of ranks; ``changes`` and ``poses``
    are those of objects since and before.
    """
    for rank in range(span[0] + wp.tid(), queue_stop(crowd.meetings, span[1]), span[2]):
        meeting = meeting_at(crowd, rank)
        a = meeting.at_a
        b = meeting.at_b
        fronts_out.frames[rank] = frame_of(crowd, meeting)
        fronts_out.resting[rank] = 0
        pair = (wp.int64(a) << wp.int64(32)) | wp.int64(b)
        store_pair(met_out, wp.int64(rank), pair)
        if rank == 0:
            met_out.count[0] = crowd.meetings.count[0]
        before = find_key(last.keys, queue_size(last), pair)
        change = wp.max(changes[a], changes[b])
        if before >= 0 and change != OTHER:
            fronts_out.ranks[before] = rank
            if change == SAME:
                still = is_same_pose(crowd.poses[a], poses[a])
                still = still and is_same_pose(crowd.poses[b], poses[b])
                fronts_out.resting[rank] = wp.int32(still or meeting.own)
        else:
            push_pair(starts_out, roots_key(meeting, rank, fronts_out.slot_bits))


@wp.kernel
def keep_rows_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    fronts: Fronts,
    rows: PairQueue,
):
    """The rows of meetings that rest."""
    for i in range(span[0] + wp.tid(), queue_stop(rows, span[1]), span[2]):
        row = unpack_pair(rows.keys[i], crowd.bits)
        rank = fronts.ranks[row[0]]
        if rank >= 0:
            if fronts.resting[rank] == 1:
                push_pair(crowd.hits, pack_pair(rank, row[1], row[2], crowd.bits))


@wp.kernel
def advance_meetings_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    fronts: Fronts,
    last: PairQueue,
    from_before: wp.bool,
    most: wp.int32,
    climb: wp.bool,
    # out
    moved_out: Moved,
):
    """Move each pair of the fronts; those of meetings that are no more are dropped."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.int64)
    kept = wp.zeros(shape=(HELD,), dtype=wp.int64)
    found = wp.zeros(shape=(HELD,), dtype=wp.int64)
    at = wp.vec3i(0, 0, 0)
    front = Front()
    front.number = -1
    front.slot_bits = fronts.slot_bits
    front.bits = crowd.bits
    for i in range(span[0] + wp.tid(), queue_stop(last, span[1]), span[2]):
        row = unpack_pair(last.keys[i], fronts.slot_bits)
        rank = known_rank(fronts, row[0], from_before)
        if rank < 0:
            continue
        start = wp.vec2i(row[1], row[2])
        resting = fronts.resting[rank] == 1
        if rank != front.number and (climb or not resting):  # filled in place: copies are slow
            meeting = meeting_at(crowd, rank)
            a = meeting.body_a
            b = meeting.body_b
            stop_a = a.first_face + a.face_count
            stop_b = b.first_face + b.face_count
            front.nodes_a = crowd.forest.nodes[4 * a.first_face : 4 * stop_a - 2]
            front.nodes_b = crowd.forest.nodes[4 * b.first_face : 4 * stop_b - 2]
            front.splits_a = crowd.forest.split_slots[a.first_face : stop_a]
            front.splits_b = crowd.forest.split_slots[b.first_face : stop_b]
            front.ranges_a = fronts.ranges[2 * a.first_face : 2 * stop_a]
            front.ranges_b = fronts.ranges[2 * b.first_face : 2 * stop_b]
            front.frames = fronts.frames[rank : rank + 1]
            front.within = meeting.own
            front.number = rank
        if resting:
            if climb:
                start = stand_in(front, start)
            kept[at[1]] = pack_pair(rank, start[0], start[1], fronts.slot_bits)
            at[1] = at[1] + wp.int32(start[0] >= 0)
            if at[1] >= FULL:
                at = flush_full(at, kept, found, FULL, moved_out)
        else:
            at = advance_pair(front, start, most, climb, at, stack, kept, found, moved_out)
    flush_full(at, kept, found, 1, moved_out)
