"""Distances of candidate pairs of faces: from a queue, or every pair of faces by brute force."""

from functools import cache

import warp as wp

from abut.core.atomics import atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import (
    NO_KEY,
    PairQueue,
    no_key,
    pack_pair,
    push_pair,
    queue_stop,
    unpack_pair,
)
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.operands.contact_queues import first_other
from abut.operands.distance_queues import (
    FACE_MARGIN,
    DistanceQueues,
    certainly_meet,
    clear_of,
    from_bits,
    gap_of,
    slack_of,
    test_near,
    to_bits,
)
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import WorkItems, item_stop, pair_at, row_and_item

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@cache
def filter_near_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel that filters candidates by distance, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def filter_near_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        candidates: PairQueue,
        # out
        queues_out: DistanceQueues,
        near_out: PairQueue,
    ):
        """Push the candidates that are no farther apart than the bound of their row."""
        for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
            row = unpack_pair(candidates.keys[i], queues_out.contacts.bits)
            pair = pair_at(pairs, row[0])
            limit = from_bits(queues_out.bound[row[0]])
            test_near(
                pair.a,
                pair.b,
                pair.pose,
                pair.sharing,
                limit,
                queues_out.contacts,
                row[0],
                row[1],
                row[2],
                near_out,
            )

    return filter_near_kernel


@cache
def lower_bounds_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel that lowers bounds by candidates, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def lower_bounds_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        candidates: PairQueue,
        # out
        queues_out: DistanceQueues,
    ):
        """Lower the bound of each row to the smallest distance of the candidates; 0 if any meet."""
        for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
            row = unpack_pair(candidates.keys[i], queues_out.contacts.bits)
            pair = pair_at(pairs, row[0])
            a = load_face(pair.a, row[1], pair.pose)
            b = load_face(pair.b, row[2], pair.pose)
            best = from_bits(load_relaxed_int64(queues_out.bound, row[0]))
            if not clear_of(a, b, wp.vec3d(), best * FACE_MARGIN + slack_of(pair)):
                if certainly_meet(queues_out.contacts, row[0], row[1], row[2], a, b):
                    atomic_min_int64(queues_out.bound, row[0], wp.int64(0))
                else:
                    near = gap_of(a, b)
                    if near.distance < best:
                        atomic_min_int64(queues_out.bound, row[0], to_bits(near.distance))

    return lower_bounds_kernel


@cache
def pick_nearest_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel that picks the nearest of the candidates, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def pick_nearest_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        queues: DistanceQueues,
        candidates: PairQueue,
        # out
        key_out: wp.array[wp.int64],
    ):
        """The lowest key of each row among the candidates at its bound."""
        bits = queues.contacts.bits
        for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
            row = unpack_pair(candidates.keys[i], bits)
            pair = pair_at(pairs, row[0])
            a = load_face(pair.a, row[1], pair.pose)
            b = load_face(pair.b, row[2], pair.pose)
            least = queues.bound[row[0]]
            if not clear_of(a, b, wp.vec3d(), from_bits(least) * FACE_MARGIN + slack_of(pair)):
                near = gap_of(a, b)
                if to_bits(near.distance) == least:
                    atomic_min_int64(key_out, row[0], pack_pair(0, row[1], row[2], bits))

    return pick_nearest_kernel


@cache
def brute_near_kernel_for(pairs_type: type) -> wp.Kernel:
    """The brute-force search for near faces, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def brute_near_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        items: WorkItems,
        # out
        queues_out: DistanceQueues,
        near_out: PairQueue,
    ):
        """Test every pair of faces for nearness, for each (row, face of a)."""
        for work in range(span[0] + wp.tid(), item_stop(items, span[1]), span[2]):
            at = row_and_item(items, work)
            pair = pair_at(pairs, at[0])
            limit = from_bits(queues_out.bound[at[0]])
            for face_b in range(first_other(pair, at[1]), pair.b.faces.shape[0]):
                test_near(
                    pair.a,
                    pair.b,
                    pair.pose,
                    pair.sharing,
                    limit,
                    queues_out.contacts,
                    at[0],
                    at[1],
                    face_b,
                    near_out,
                )

    return brute_near_kernel


@cache
def brute_nearest_kernel_for(pairs_type: type) -> wp.Kernel:
    """The brute-force search for the nearest faces, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def brute_nearest_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        items: WorkItems,
        fields: wp.array[wp.int32],
        # out
        queues_out: DistanceQueues,
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """The nearest face of b for each (row, face of a), of all; far rows are left out."""
        bits = queues_out.contacts.bits
        for work in range(span[0] + wp.tid(), item_stop(items, span[1]), span[2]):
            at = row_and_item(items, work)
            rank = at[0]
            key = no_key()
            if fields.shape[0] > 0:
                if fields[rank] != 0:
                    if items.each > 1:
                        key_out[work] = key
                    continue
            pair = pair_at(pairs, rank)
            a = load_face(pair.a, at[1], pair.pose)
            best = from_bits(queues_out.bound[rank])
            for face_b in range(pair.b.faces.shape[0]):
                b = load_face(pair.b, face_b, pair.pose)
                verdict = classify_tri_tri(a, b, SHARED_NONE, wp.vec3i(), wp.vec3i())
                if verdict != HIT and verdict != MISS:
                    push_pair(queues_out.contacts.undecided, pack_pair(rank, at[1], face_b, bits))
                near = gap_of(a, b)
                if verdict == HIT:
                    near.distance = wp.float64(0.0)
                if near.distance < best or (near.distance == best and key == NO_KEY):
                    best = near.distance
                    key = pack_pair(0, at[1], face_b, bits)
            distance_out[work] = to_bits(best)
            key_out[work] = key
            atomic_min_int64(queues_out.bound, rank, to_bits(best))

    return brute_nearest_kernel
