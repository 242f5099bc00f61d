"""Match the rows of a scene with those of the last query, so that rows keep their fronts."""

import warp as wp

from abut.bvh.layout import root_of
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
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.posed_pairs import ScenePairs, frame_of, pair_at, pair_stop
from abut.traversal.front.traversal_tree import FrontRows

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

# How the hierarchy of an object has changed since the last query.
UNCHANGED = wp.constant(0)
REFITTED = wp.constant(1)  # the same topology, other boxes
REBUILT = wp.constant(2)  # another topology


@wp.func
def is_same_pose(a: wp.mat44d, b: wp.mat44d):
    """True when two poses are equal to the last bit."""
    same = wp.bool(True)
    for i in range(3):
        for j in range(4):
            if a[i, j] != b[i, j]:
                same = False
    return same


@wp.kernel
def match_rows_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    last: PairQueue,
    changes: wp.array[wp.int32],
    poses: wp.array[wp.mat44d],
    # out
    rows_out: FrontRows,
    objects_out: PairQueue,
    roots_out: PairQueue,
):
    """Find the frame of each row, its rank in the last query, and whether it is at rest.

    ``last`` and ``objects_out`` list object pairs in the order of ranks. ``changes`` tells how each
    object has changed since the last query, ``poses`` where it was. A row without a front gets the
    pair of its roots.
    """
    for rank in range(span[0] + wp.tid(), pair_stop(pairs, span[1]), span[2]):
        row = unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)
        a = row[0] * pairs.object_count + row[1]
        b = row[0] * pairs.object_count + row[2]
        pair = pair_at(pairs, rank)
        rows_out.frames[rank] = frame_of(pair)
        rows_out.resting[rank] = 0
        objects = (wp.int64(a) << wp.int64(32)) | wp.int64(b)
        store_pair(objects_out, wp.int64(rank), objects)
        if rank == 0:
            objects_out.count[0] = pairs.object_pairs.count[0]
        before = find_key(last.keys, queue_size(last), objects)
        change = wp.max(changes[a], changes[b])
        if before >= 0 and change != REBUILT:
            rows_out.ranks[before] = rank
            if change == UNCHANGED:
                still = is_same_pose(pairs.poses[a], poses[a])
                still = still and is_same_pose(pairs.poses[b], poses[b])
                rows_out.resting[rank] = wp.int32(still or pair.sharing != SHARED_NONE)
        else:
            roots = pack_pair(rank, root_of(pair.tree_a), root_of(pair.tree_b), rows_out.slot_bits)
            push_pair(roots_out, roots)


@wp.kernel
def keep_contacts_kernel(
    # in
    span: wp.vec3i,
    rows: FrontRows,
    contacts: PairQueue,
    # out
    hits_out: PairQueue,
):
    """Push the contacts that rows at rest had in the last query."""
    for i in range(span[0] + wp.tid(), queue_stop(contacts, span[1]), span[2]):
        key = unpack_pair(contacts.keys[i], rows.bits)
        rank = rows.ranks[key[0]]
        if rank >= 0:
            if rows.resting[rank] == 1:
                push_pair(hits_out, pack_pair(rank, key[1], key[2], rows.bits))
