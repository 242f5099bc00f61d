"""The nearest faces of many pairs of objects: all share one bound, the most promising come first.

On the CPU. Threads take one pair after the other and search its trees (see team_nearest). On CUDA
all pairs are searched at the same time, see NearestSearch.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import root_of
from abut.core.atomics import atomic_increment, atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import NO_KEY, PairQueue, unpack_pair
from abut.core.serial_sort import sort_serially
from abut.core.team import TRIPLES, local_triples
from abut.operands.distance_queues import (
    DistanceQueues,
    box_limit,
    from_bits,
    gap_of,
)
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import ScenePairs, pair_at
from abut.options import Bound
from abut.traversal.distance.node_gaps import first_entry, slab_padding
from abut.traversal.distance.node_pool import start_pool
from abut.traversal.distance.samples import COARSE, sampled_distance
from abut.traversal.distance.spill import SpillQueue
from abut.traversal.distance.team_nearest import nearest_in_row_for

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LEAST_BITS = wp.constant(wp.int64(1))  # of a distance that is not 0


@wp.struct
class LeastPairs:
    """Pairs of objects that may be the nearest two, an entry for each rank of their queue."""

    frames: wp.array[RelativeFrame]
    gaps: wp.array[wp.float32]  # squared, of their root boxes
    slacks: wp.array[wp.float64]  # see slack_of
    bounds: wp.array[wp.int64]  # bits of the distance found, NO_KEY before
    keys: wp.array[wp.int64]  # of the faces found, or NO_KEY
    order: wp.array[wp.int32]  # ranks, the most promising first
    ranking: wp.array[wp.int64]  # by which they are sorted
    numbers: wp.array[wp.int32]  # ranks in ``order``; pairs that are far apart for their size
    least: wp.array[wp.int64]  # bits of the least distance so far


@cache
def least_nearest_kernel_for(bound: Bound) -> wp.Kernel:
    """The search of trees with some kind of volume."""
    nearest_in_row = nearest_in_row_for(bound, False)

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def least_nearest_kernel(
        # in
        span: wp.vec3i,
        pairs: ScenePairs,
        # out
        counter_out: wp.array[wp.int32],
        listed_out: LeastPairs,
        queues_out: DistanceQueues,
        candidates_out: PairQueue,
        spilled_out: SpillQueue,
    ):
        """Lower the least distance to that of the listed pairs, until two objects meet.

        Candidates and spilled pairs are of CUDA. Each item of the span is a thread.
        """
        entries = wp.zeros(shape=(TRIPLES,), dtype=wp.vec3i)
        triples = local_triples(entries)
        work = atomic_increment(counter_out, 0)
        bits = load_relaxed_int64(listed_out.least, 0)
        while work < listed_out.numbers[0] and bits != wp.int64(0):
            rank = listed_out.order[work]
            frame = listed_out.frames[rank]
            limit = box_limit(from_bits(bits), listed_out.slacks[rank], frame.stretch)
            if not (listed_out.gaps[rank] > limit):
                pair = pair_at(pairs, rank)
                padding = slab_padding(frame, pair.tree_a, pair.tree_b)
                upper = wp.float64(wp.inf)
                if from_bits(bits) > COARSE * listed_out.slacks[rank]:
                    upper = sampled_distance(triples, pair, frame, padding)
                queues_out.bound[rank] = bits
                roots = first_entry(
                    pair.tree_a, root_of(pair.tree_a), pair.tree_b, root_of(pair.tree_b)
                )
                found = nearest_in_row(
                    triples,
                    pair,
                    frame,
                    padding,
                    start_pool(triples, roots),
                    upper,
                    rank,
                    False,
                    0,
                    queues_out,
                    candidates_out,
                    spilled_out,
                )
                listed_out.bounds[rank] = found.bits
                listed_out.keys[rank] = found.key
                atomic_min_int64(listed_out.least, 0, found.bits)
            work = atomic_increment(counter_out, 0)
            bits = load_relaxed_int64(listed_out.least, 0)

    return least_nearest_kernel


@wp.func
def best_rank(pairs: ScenePairs, listed: LeastPairs):
    """The lowest pair of objects at the least distance that was found; -1 where none was."""
    best = wp.int32(-1)
    for at in range(listed.numbers[0]):
        rank = listed.order[at]
        bits = listed.bounds[rank]
        if bits == wp.int64(0) or listed.keys[rank] != NO_KEY:
            if best < 0:
                best = rank
            elif bits < listed.bounds[best]:
                best = rank
            elif bits == listed.bounds[best]:
                if pairs.object_pairs.keys[rank] < pairs.object_pairs.keys[best]:
                    best = rank
    return best


@wp.kernel
def answer_least_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    listed: LeastPairs,
    bits: wp.vec2i,
    # out
    answer_out: wp.array[wp.int32],
    distance_out: wp.array[wp.float64],
    points_out: wp.array[wp.vec3d],
    one_out: PairQueue,
):
    """Write the pair of objects, the faces and their nearest points; one thread.

    Of objects that meet, write no faces and no points.
    """
    for _ in range(span[0] + wp.tid(), span[1], span[2]):
        rank = best_rank(pairs, listed)
        distance = wp.float64(wp.inf)
        for k in range(4):
            answer_out[k] = -1
        for k in range(2):
            points_out[k] = wp.vec3d(wp.float64(wp.nan))
        if rank >= 0:
            objects = unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)
            one_out.keys[0] = pairs.object_pairs.keys[rank]
            answer_out[0] = objects[1]
            answer_out[1] = objects[2]
            distance = from_bits(listed.bounds[rank])
            if listed.bounds[rank] > wp.int64(0):
                pair = pair_at(pairs, rank)
                faces = unpack_pair(listed.keys[rank], bits)
                answer_out[2] = faces[1]
                answer_out[3] = faces[2]
                near = gap_of(load_face(pair.a, faces[1], 0), load_face(pair.b, faces[2], 0))
                points_out[0] = near.p
                points_out[1] = near.q
        distance_out[0] = distance


@wp.kernel
def begin_contacts_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    # out
    listed_out: LeastPairs,
):
    """Let the next search look for the lowest pair of objects that meet; one thread.

    It is asked for those pairs alone that may meet and are not above one that does.
    """
    for _ in range(span[0] + wp.tid(), span[1], span[2]):
        found = best_rank(pairs, listed_out)
        count = wp.int32(0)
        listed = wp.min(wp.int32(pairs.object_pairs.count[0]), listed_out.gaps.shape[0])
        for rank in range(listed):
            key = pairs.object_pairs.keys[rank]
            if not (listed_out.gaps[rank] > wp.float32(0.0)):
                if key <= pairs.object_pairs.keys[found]:
                    listed_out.order[count] = rank
                    listed_out.ranking[count] = key
                    listed_out.bounds[rank] = NO_KEY
                    listed_out.keys[rank] = NO_KEY
                    count += 1
        sort_serially(listed_out.ranking, listed_out.order, count)
        listed_out.numbers[0] = count
        listed_out.least[0] = LEAST_BITS


@wp.kernel
def contact_corners_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    best: wp.array[wp.int64],
    bits: wp.vec2i,
    # out
    answer_out: wp.array[wp.int32],
    corners_out: wp.array[wp.vec3d],
):
    """Write the faces of the one pair of objects that meet, and their corners."""
    for _ in range(span[0] + wp.tid(), span[1], span[2]):
        if best[0] != NO_KEY:
            pair = pair_at(pairs, 0)
            faces = unpack_pair(best[0], bits)
            answer_out[2] = faces[1]
            answer_out[3] = faces[2]
            a = load_face(pair.a, faces[1], 0)
            b = load_face(pair.b, faces[2], 0)
            for k in range(3):
                corners_out[k] = a[k]
                corners_out[3 + k] = b[k]
