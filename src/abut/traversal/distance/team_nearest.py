"""The nearest faces of posed pairs, by teams that search both trees at once.

A team opens pairs of nodes, nearest ones first (see node_pool), and measures the pairs of faces
that it comes to, all lanes together. A pair is opened only if its lower bound does not exceed the
best distance so far, which the vertices of a few faces bound at first. Most pairs of faces are
separated by their extent along the line between their centres, or along the line of the best pair
so far, which takes a tenth of the time.

The answer does not depend on the order: of all pairs at the smallest distance, as computed, it is
the one with the lowest key. Measured in design/distance.md.
"""

from functools import cache

import warp as wp

from abut.bvh.layout import face_of, is_leaf, load_node, subtree_slot
from abut.core.atomics import atomic_min_int64
from abut.core.lanes import (
    lane_count,
    lane_index,
    warp_broadcast_vec3d,
    warp_first,
    warp_min,
    warp_min_int64,
    warp_sync,
)
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import MAX_COUNT, NO_KEY, no_key, pack_pair
from abut.core.team import TRIPLES, load_triple, local_triples, next_item, shared_triples
from abut.operands.contact_queues import ContactQueues
from abut.operands.distance_queues import (
    FACE_MARGIN,
    DistanceQueues,
    box_limit,
    certainly_meet,
    clear_of,
    from_bits,
    gap_of,
    slack_of,
    to_bits,
)
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.operands.posed_pairs import PosedPair, WorkItems, frame_of, pair_at, pair_stop
from abut.options import Bound
from abut.traversal.distance.nearest import NearestPair, nearest_limit
from abut.traversal.distance.node_gaps import open_near_for, slab_along, slab_padding
from abut.traversal.distance.node_pool import (
    FACE_PAIRS,
    POOL,
    NodePool,
    extend_reach,
    opening_lanes,
    push_faces,
    push_opened,
    start_pool,
)
from abut.traversal.distance.samples import CPU_SAMPLES, MOST_SAMPLES, sampled_distance
from abut.traversal.overlap.node_pairs import Opened

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def start_slots(pair: PosedPair, items: WorkItems, item: wp.int32):
    """Slots of a and b that are an item of work; -1 where there is no such subtree."""
    depth_b = items.deepest / 2
    depth_a = items.deepest - depth_b
    return wp.vec2i(
        subtree_slot(pair.tree_a, item >> depth_b, depth_a),
        subtree_slot(pair.tree_b, item & ((1 << depth_b) - 1), depth_b),
    )


@wp.func
def measure_faces(
    triples: wp.uint64,
    faces: wp.int32,
    a: PosedMesh,
    b: PosedMesh,
    pose: wp.int32,
    rank: wp.int32,
    limit: wp.float32,
    reach: wp.float64,
    queues: ContactQueues,
    found: NearestPair,
):
    """The nearest of the pair found and the last pairs of faces, one for each lane.

    Faces that meet have bits of 0 and no key.
    """
    distance = wp.float64(wp.inf)
    key = no_key()
    direction = wp.vec3d()
    lane = lane_index()
    if lane < faces:
        entry = load_triple(triples, POOL + faces - 1 - lane)
        gap = wp.cast(entry[2], wp.float32)
        if not (gap > limit):
            p = load_face(a, entry[0], pose)
            q = load_face(b, entry[1], pose)
            if not clear_of(p, q, found.direction, reach):
                met = wp.bool(False)
                if not (gap > wp.float32(0.0)):
                    met = certainly_meet(queues, rank, entry[0], entry[1], p, q)
                if met:
                    distance = wp.float64(0.0)
                else:
                    near = gap_of(p, q)
                    distance = near.distance
                    direction = near.q - near.p
                    key = pack_pair(0, entry[0], entry[1], queues.bits)
    out = NearestPair()
    out.bits = found.bits
    out.key = found.key
    out.direction = found.direction
    least = warp_min(distance)
    before = from_bits(found.bits)
    if least <= before:
        lowest = warp_min_int64(wp.where(distance == least, key, NO_KEY))
        out.key = wp.where(least < before, lowest, wp.min(found.key, lowest))
        if least < before:
            out.bits = to_bits(least)
            winner = warp_first(distance == least and key == lowest)
            out.direction = warp_broadcast_vec3d(direction, winner)
    return out


@cache
def nearest_in_row_for(bound: Bound, cuda: bool) -> wp.Function:
    """The search of one row of trees with some kind of volume, by a warp or by a CPU thread."""
    open_near = open_near_for(bound)
    sample_count = MOST_SAMPLES if cuda else CPU_SAMPLES
    together = FACE_PAIRS if cuda else 1

    @wp.func
    def nearest_in_row(
        triples: wp.uint64,
        pair: PosedPair,
        slots: wp.vec2i,
        rank: wp.int32,
        shared: wp.bool,
        queues: DistanceQueues,
    ):
        """The nearest faces below two slots, if they are as near as the bound of the row.

        Other teams may lower the bound of a ``shared`` row; the key is NO_KEY where they have
        found nearer faces. Distances are bits, and 0 for faces that meet.
        """
        lane = lane_index()
        frame = frame_of(pair)
        slack = slack_of(pair)
        padding = slab_padding(frame, pair.tree_a, pair.tree_b)
        found = NearestPair()
        found.bits = load_relaxed_int64(queues.bound, rank)
        found.key = NO_KEY
        sampled = sampled_distance(triples, pair, frame, padding, wp.static(sample_count))
        wanted = wp.min(from_bits(found.bits), sampled)
        limit = box_limit(wanted, slack, frame.stretch)
        slab = slab_along(frame, pair, found.direction, padding)
        pool = start_pool(triples, slots[0], slots[1], wp.float32(0.0))
        while pool.near + pool.far + pool.faces > 0:
            best = found.bits
            if shared:
                known = load_relaxed_int64(queues.bound, rank)
                if known < found.bits:  # another team has found nearer faces
                    found.bits = known
                    found.key = NO_KEY
            if pool.faces >= wp.static(together) or (pool.near == 0 and pool.faces > 0):
                found = measure_faces(
                    triples,
                    pool.faces,
                    pair.a,
                    pair.b,
                    pair.pose,
                    rank,
                    limit,
                    wanted * FACE_MARGIN + slack,
                    queues.contacts,
                    found,
                )
                pool.faces -= wp.min(pool.faces, lane_count())
                if found.bits < best:
                    if lane == 0:
                        atomic_min_int64(queues.bound, rank, found.bits)
                    slab = slab_along(frame, pair, found.direction, padding)
                    if found.bits == wp.int64(0):  # they meet
                        pool = NodePool()
                warp_sync()
            elif pool.near == 0:
                pool = extend_reach(triples, pool, limit)
            else:
                taken = opening_lanes(pool)
                pool.near -= taken
                opened = Opened()
                opened.gaps = wp.vec4f(wp.float32(-1.0))
                entry = wp.vec3i()
                is_faces = wp.bool(False)
                if lane < taken:
                    entry = load_triple(triples, pool.near + taken - 1 - lane)
                    if not (wp.cast(entry[2], wp.float32) > limit):
                        a = load_node(pair.tree_a.nodes, entry[0])
                        b = load_node(pair.tree_b.nodes, entry[1])
                        if is_leaf(a) and is_leaf(b):
                            is_faces = True
                            entry = wp.vec3i(face_of(a), face_of(b), entry[2])
                        else:
                            opened = open_near(
                                frame, slab, pair.tree_a, entry[0], a, pair.tree_b, entry[1], b
                            )
                warp_sync()  # all have read what others will overwrite
                pool = push_faces(triples, pool, is_faces, entry)
                pool = push_opened(triples, pool, taken, opened, limit)
            if found.bits < best:
                wanted = wp.min(wanted, nearest_limit(from_bits(found.bits), queues.tolerance))
                limit = box_limit(wanted, slack, frame.stretch)
        return found

    return nearest_in_row


@cache
def team_nearest_kernel_for(pairs_type: type, bound: Bound, cuda: bool) -> wp.Kernel:
    """The search of a type of posed pairs, by warps or by CPU threads."""
    nearest_in_row = nearest_in_row_for(bound, cuda)

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def team_nearest_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        items: WorkItems,
        fields: wp.array[wp.int32],
        counter: wp.array[wp.int32],
        # out
        queues_out: DistanceQueues,
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Find the nearest faces of each (row, subtrees of a and b), where they are the nearest.

        Distances are written as bits; the key is NO_KEY where other teams have found nearer faces.
        Rows of the far field are left out.
        """
        if wp.static(cuda):
            triples = shared_triples()
        else:
            entries = wp.zeros(shape=(TRIPLES,), dtype=wp.vec3i)
            triples = local_triples(entries)
        each = items.each
        stop = wp.min(pair_stop(pairs, MAX_COUNT / each) * each, span[1])
        work = next_item(counter, span[0] - 1)
        while work < stop:
            rank = work / each
            is_far = wp.bool(False)
            if fields.shape[0] > 0:
                is_far = fields[rank] != 0
            if not is_far:
                pair = pair_at(pairs, rank)
                slots = start_slots(pair, items, work % each)
                found = nearest_in_row(triples, pair, slots, rank, each > 1, queues_out)
                if lane_index() == 0:
                    distance_out[work] = found.bits
                    key_out[work] = found.key
            elif each > 1 and lane_index() == 0:
                key_out[work] = NO_KEY
            work = next_item(counter, work)

    return team_nearest_kernel
