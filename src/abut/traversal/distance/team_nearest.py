"""The nearest faces of posed pairs, by teams that search both trees at once.

A team opens pairs of nodes, nearest ones first (see node_pool), and compares the pairs of faces
that it comes to, all lanes together, in float32: near points of two faces bound the distance from
above, and the gap along the line between them from below. A pair of nodes or of faces is dropped
where its lower bound exceeds the upper bound of all; vertices of a few faces give a first one. The
few pairs of faces that are left are measured in float64: at once on the CPU, by a later stage on
CUDA, where that would take most of the registers.

The answer does not depend on the order: of all pairs at the smallest distance, as computed, it is
the one with the lowest key. Measured in design/distance.md.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import subtree_slot
from abut.bvh.rss_on_demand import are_fitted, fit_ends
from abut.core.atomics import atomic_min_int64
from abut.core.lanes import (
    WARP_SIZE,
    lane_count,
    lane_index,
    warp_broadcast,
    warp_sync,
)
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import MAX_COUNT, NO_KEY, PairQueue
from abut.core.team import (
    TRIPLE_BLOCK,
    TRIPLES,
    load_triple,
    local_triples,
    next_item,
    shared_triples,
)
from abut.operands.distance_queues import DistanceQueues, box_limit, from_bits, slack_of, to_bits
from abut.operands.posed_pairs import (
    PosedPair,
    WorkItems,
    environment_at,
    frame_of,
    pair_at,
    pair_stop,
)
from abut.options import Bound
from abut.traversal.distance.nearest import NearestPair, nearest_limit
from abut.traversal.distance.node_gaps import first_entry, open_near_for, slab_of, slab_padding
from abut.traversal.distance.node_pool import (
    FACE_PAIRS,
    MOST_CANDIDATES,
    NodePool,
    extend_reach,
    no_pairs,
    opening_lanes,
    push_faces,
    push_opened,
    start_pool,
)
from abut.traversal.distance.samples import sampled_distance, samples_help
from abut.traversal.distance.spill import SpillQueue, load_chunk, spill_pairs
from abut.traversal.distance.team_faces import (
    NearestBounds,
    compare_lanes,
    drop_candidates,
    measure_candidates,
    push_candidates,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TEAM_BLOCKS = 8  # of a multiprocessor, for which registers must do


@wp.func
def start_of_item(pair: PosedPair, items: WorkItems, item: wp.int32):
    """The two subtrees that are an item of work, as an entry of a pool; 1 where there are none."""
    depth_b = items.deepest / 2
    depth_a = items.deepest - depth_b
    slot_a = subtree_slot(pair.tree_a, item >> depth_b, depth_a)
    slot_b = subtree_slot(pair.tree_b, item & ((1 << depth_b) - 1), depth_b)
    if slot_a < 0 or slot_b < 0:
        return wp.vec3i(0, 0, 1)
    return first_entry(pair.tree_a, slot_a, pair.tree_b, slot_b)


@wp.func
def shared_bound(queues: DistanceQueues, rank: wp.int32):
    """The bits of a bound that other teams may lower meanwhile, the same for all lanes."""
    return warp_broadcast(load_relaxed_int64(queues.bound, rank), 0)


@cache
def nearest_in_row_for(bound: Bound, cuda: bool) -> wp.Function:
    """The search of one row of trees with some kind of volume, by a warp or by a CPU thread."""
    open_near = open_near_for(bound)
    together = FACE_PAIRS if cuda else 1
    on_demand = bound is Bound.RSS and not cuda  # volumes that are missing are fitted
    room = int(MOST_CANDIDATES) - (WARP_SIZE if cuda else 1)

    @wp.func
    def nearest_in_row(
        triples: wp.uint64,
        pair: PosedPair,
        frame: RelativeFrame,
        padding: wp.float32,
        start: NodePool,
        upper: wp.float64,
        rank: wp.int32,
        shared: wp.bool,
        rounds: wp.int32,
        queues: DistanceQueues,
        candidates: PairQueue,
        spilled: SpillQueue,
    ):
        """The nearest faces below some pairs of nodes, if they are as near as the bound of the row.

        ``upper`` is another bound, not from faces that meet. Other teams may lower the bound of a
        ``shared`` row; the key is NO_KEY where they have found nearer faces. Distances are bits,
        and 0 for faces that meet. On CUDA, faces are listed as candidates instead, and the bound is
        that of faces that surely cross, or lies above the distance of a candidate; pairs that are
        not opened after so many rounds are spilled.
        """
        lane = lane_index()
        slack = slack_of(pair)
        found = NearestPair()
        found.bits = shared_bound(queues, rank)
        found.key = NO_KEY
        known = NearestBounds()
        known.upper = wp.min(from_bits(found.bits), upper)
        known.limit = box_limit(known.upper, slack, frame.stretch)
        known.keep = known.limit
        slab = slab_of(frame, known.direction, padding)
        pool = start
        round = wp.int32(0)
        while pool.near + pool.far + pool.faces > 0:
            before = known.upper
            if wp.static(cuda):
                if round == rounds:
                    if lane == 0:
                        atomic_min_int64(queues.bound, rank, to_bits(known.upper))
                    if spill_pairs(triples, pool, rank, spilled):
                        pool = NodePool()
                        continue
                round += 1
            if shared:  # another team may have found nearer faces
                other = from_bits(shared_bound(queues, rank))
                known.upper = wp.min(known.upper, other)
            if pool.faces >= wp.static(together) or (pool.near == 0 and pool.faces > 0):
                mine = known.upper
                known = compare_lanes(triples, pool.faces, pair, frame, padding, known)
                pool.faces -= wp.min(pool.faces, lane_count())
                if known.met:
                    found.bits = wp.int64(0)
                    known.candidates = 0
                    pool = NodePool()
                elif known.upper < mine:
                    slab = slab_of(frame, known.direction, padding)
                    if shared and lane == 0:
                        atomic_min_int64(queues.bound, rank, to_bits(known.upper))
                if known.candidates > wp.static(room):
                    known.candidates = drop_candidates(triples, known)
                    if known.candidates > wp.static(room):
                        if wp.static(cuda):
                            bits = queues.contacts.bits
                            push_candidates(triples, known.candidates, rank, bits, candidates)
                        else:
                            found = measure_candidates(
                                triples, known.candidates, rank, pair, queues, found
                            )
                            known.upper = wp.min(known.upper, from_bits(found.bits))
                        known.candidates = 0
            elif pool.near == 0:
                pool = extend_reach(triples, pool, known.limit)
            else:
                taken = opening_lanes(pool)
                pool.near -= taken
                opened = no_pairs()
                entry = wp.vec3i()
                is_faces = wp.bool(False)
                if lane < taken:
                    entry = load_triple(triples, pool.near + taken - 1 - lane)
                    if not (wp.cast(entry[2], wp.float32) > known.limit):
                        is_faces = entry[0] < 0 and entry[1] < 0
                        if not is_faces:
                            if wp.static(on_demand):
                                # Arguments are copied, which takes longer than this test.
                                if not are_fitted(pair.tree_a.rss, entry[0]):
                                    fit_ends(pair.a.points, pair.a.faces, pair.tree_a, entry[0])
                                if not are_fitted(pair.tree_b.rss, entry[1]):
                                    fit_ends(pair.b.points, pair.b.faces, pair.tree_b, entry[1])
                            opened = open_near(
                                frame,
                                slab,
                                pair.tree_a,
                                entry[0],
                                pair.tree_b,
                                entry[1],
                                known.limit,
                            )
                warp_sync()  # all have read what others will overwrite
                pool = push_faces(triples, pool, is_faces, entry)
                pool = push_opened(triples, pool, taken, opened, known.limit)
            if known.upper < before:
                known.keep = box_limit(known.upper, slack, frame.stretch)
                wanted = nearest_limit(known.upper, queues.tolerance)
                known.limit = box_limit(wanted, slack, frame.stretch)
        known.candidates = drop_candidates(triples, known)
        if wp.static(cuda):
            push_candidates(triples, known.candidates, rank, queues.contacts.bits, candidates)
        else:
            found = measure_candidates(triples, known.candidates, rank, pair, queues, found)
        return found

    return nearest_in_row


@cache
def team_nearest_kernel_for(pairs_type: type, bound: Bound, cuda: bool) -> wp.Kernel:
    """The search of a type of posed pairs, by warps or by CPU threads."""
    nearest_in_row = nearest_in_row_for(bound, cuda)

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False},
        launch_bounds=(TRIPLE_BLOCK, TEAM_BLOCKS),
    )
    def team_nearest_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        items: WorkItems,
        fields: wp.array[wp.int32],
        counter: wp.array[wp.int32],
        given: SpillQueue,
        rounds: wp.int32,
        # out
        queues_out: DistanceQueues,
        candidates_out: PairQueue,
        spilled_out: SpillQueue,
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Find the nearest faces of each (row, subtrees of a and b), where they are the nearest.

        On the CPU distances are written as bits; the key is NO_KEY where other teams have found
        nearer faces. On CUDA candidates are listed, the items are the given chunks where there
        are any, and pairs that are left after so many rounds are spilled. Rows of the far field are
        left out.
        """
        if wp.static(cuda):
            triples = shared_triples()
        else:
            entries = wp.zeros(shape=(TRIPLES,), dtype=wp.vec3i)
            triples = local_triples(entries)
        each = items.each
        stop = wp.min(pair_stop(pairs, MAX_COUNT / each) * each, span[1])
        goes_on = given.heads.shape[0] > 0
        if wp.static(cuda):
            if goes_on:
                stop = wp.min(given.count[0], given.heads.shape[0])
        work = next_item(counter, span[0] - 1)
        while work < stop:
            rank = work / each
            if wp.static(cuda):
                if goes_on:
                    rank = given.heads[work][0]
            is_far = wp.bool(False)
            if fields.shape[0] > 0:
                is_far = fields[rank] != 0
            if not is_far:
                pair = pair_at(pairs, rank)
                frame = frame_of(pair)
                padding = slab_padding(frame, pair.tree_a, pair.tree_b)
                shared = each > 1 or goes_on
                if wp.static(not cuda):  # a row of the same environment may have come nearer
                    if queues_out.least.shape[0] > 0:
                        least = load_relaxed_int64(queues_out.least, environment_at(pairs, rank))
                        # 0 would mean that this row itself is in contact
                        atomic_min_int64(queues_out.bound, rank, wp.max(least, wp.int64(1)))
                upper = wp.float64(wp.inf)
                if wp.static(not cuda) or not shared:
                    if samples_help(pair, from_bits(load_relaxed_int64(queues_out.bound, rank))):
                        upper = sampled_distance(triples, pair, frame, padding)
                pool = NodePool()
                if goes_on:
                    if wp.static(cuda):
                        pool = load_chunk(triples, given, work)
                else:
                    pool = start_pool(triples, start_of_item(pair, items, work % each))
                found = nearest_in_row(
                    triples,
                    pair,
                    frame,
                    padding,
                    pool,
                    upper,
                    rank,
                    shared,
                    rounds,
                    queues_out,
                    candidates_out,
                    spilled_out,
                )
                if lane_index() == 0:
                    atomic_min_int64(queues_out.bound, rank, found.bits)
                    if wp.static(not cuda):
                        if queues_out.least.shape[0] > 0:
                            environment = environment_at(pairs, rank)
                            atomic_min_int64(queues_out.least, environment, found.bits)
                        distance_out[work] = found.bits
                        key_out[work] = found.key
            elif wp.static(not cuda):
                if each > 1:
                    key_out[work] = NO_KEY
            work = next_item(counter, work)

    return team_nearest_kernel
