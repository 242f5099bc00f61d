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

from abut.bounds.float32 import row_xyz, to_vec3f, to_vec4f
from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import subtree_slot
from abut.bvh.rss_on_demand import fit_ends
from abut.core.atomics import atomic_min_int64
from abut.core.lanes import (
    WARP_SIZE,
    lane_count,
    lane_index,
    warp_broadcast_vec3f,
    warp_count,
    warp_first,
    warp_min,
    warp_rank,
    warp_sync,
)
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import MAX_COUNT, NO_KEY, PairQueue, pack_pair, push_pair
from abut.core.team import (
    TRIPLE_BLOCK,
    TRIPLES,
    load_triple,
    local_triples,
    next_item,
    shared_triples,
    store_triple,
)
from abut.geometry.near_tri_tri import between_corners, gap_along, near_tri_tri, surely_cross
from abut.operands.distance_queues import DistanceQueues, box_limit, from_bits, slack_of, to_bits
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.operands.posed_pairs import PosedPair, WorkItems, frame_of, pair_at, pair_stop
from abut.options import Bound
from abut.traversal.distance.nearest import NearestPair, compare_faces, nearest_limit
from abut.traversal.distance.node_gaps import first_entry, open_near_for, slab_of, slab_padding
from abut.traversal.distance.node_pool import (
    FACE_PAIRS,
    FIRST_CANDIDATE,
    MOST_CANDIDATES,
    POOL,
    NodePool,
    extend_reach,
    no_pairs,
    opening_lanes,
    push_faces,
    push_opened,
    start_pool,
)
from abut.traversal.distance.samples import sampled_distance

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
def single_corners(mesh: PosedMesh, face: wp.int32, origin: wp.vec3d):
    """Corners of a face of a mesh without its pose, relative to an origin, in float32."""
    corners = mesh.faces[face]
    return wp.matrix_from_rows(
        to_vec3f(mesh.points[corners[0]] - origin),
        to_vec3f(mesh.points[corners[1]] - origin),
        to_vec3f(mesh.points[corners[2]] - origin),
    )


@wp.func
def corners_in_frame(frame: RelativeFrame, corners: wp.mat33f):
    """Corners of a face of b in the frame of a."""
    return wp.matrix_from_rows(
        row_xyz(frame.rows * to_vec4f(corners[0]) + frame.shift),
        row_xyz(frame.rows * to_vec4f(corners[1]) + frame.shift),
        row_xyz(frame.rows * to_vec4f(corners[2]) + frame.shift),
    )


@wp.func
def clear_of_faces(
    a: wp.mat33f, b: wp.mat33f, direction: wp.vec3f, padding: wp.float32, limit: wp.float32
):
    """Whether two faces are farther apart along a direction than a squared limit."""
    gap = gap_along(a, b, wp.normalize(direction)) - padding
    return gap > wp.float32(0.0) and gap * gap > limit


@wp.struct
class NearestBounds:
    """Bounds of the distance of a row, as its team knows them."""

    upper: wp.float64  # of the distance
    limit: wp.float32  # squared gap above which no faces are nearer than that by the tolerance
    keep: wp.float32  # squared gap above which no faces are as near as that
    direction: wp.vec3f  # from a to b, of the pair that gave the bound
    met: wp.bool  # faces cross
    candidates: wp.int32  # pairs of faces that may be the nearest, in the memory of the team


@wp.func
def compare_lanes(
    triples: wp.uint64,
    faces: wp.int32,
    pair: PosedPair,
    frame: RelativeFrame,
    padding: wp.float32,
    known: NearestBounds,
):
    """Compare the last pairs of faces, one for each lane; all that may be nearest are kept.

    The limits do not follow the upper bound.
    """
    out = known
    lane = lane_index()
    entry = wp.vec3i()
    upper = wp.float64(wp.inf)
    direction = wp.vec3f()
    kept = wp.bool(False)
    crossed = wp.bool(False)
    if lane < faces:
        entry = load_triple(triples, POOL + faces - 1 - lane)
        gap = wp.cast(entry[2], wp.float32)
        if not (gap > known.limit):
            entry = wp.vec3i(-1 - entry[0], -1 - entry[1], 0)  # faces
            p = single_corners(pair.a, entry[0], pair.tree_a.origin)
            q = corners_in_frame(frame, single_corners(pair.b, entry[1], pair.tree_b.origin))
            if not clear_of_faces(p, q, between_corners(p, q), padding, known.limit):
                direction = near_tri_tri(p, q)
                length = wp.length(wp.vec3d(direction))
                if length >= wp.float64(0.0):  # a number
                    upper = length * wp.float64(frame.stretch) + wp.float64(padding)
                low = wp.max(gap_along(p, q, wp.normalize(direction)) - padding, wp.float32(0.0))
                kept = not (low * low > known.keep)
                entry[2] = wp.cast(low * low, wp.int32)
                if not (gap > wp.float32(0.0)) and not (low > wp.float32(0.0)):
                    crossed = surely_cross(
                        load_face(pair.a, entry[0], pair.pose),
                        load_face(pair.b, entry[1], pair.pose),
                    )
    out.met = warp_first(crossed) < lane_count()
    place = FIRST_CANDIDATE + known.candidates + warp_rank(kept)
    if kept:
        store_triple(triples, place, entry)
    out.candidates += warp_count(kept)
    least = warp_min(upper)
    if least < known.upper:
        out.upper = least
        out.direction = warp_broadcast_vec3f(direction, warp_first(upper == least))
    warp_sync()
    return out


@wp.func
def drop_candidates(triples: wp.uint64, known: NearestBounds):
    """Return the number of candidates that may still be the nearest; they come first."""
    lane = lane_index()
    count = wp.int32(0)
    first = wp.int32(0)
    while first < known.candidates:
        entry = load_triple(triples, FIRST_CANDIDATE + wp.min(first + lane, known.candidates - 1))
        kept = not (wp.cast(entry[2], wp.float32) > known.keep)
        kept = kept and first + lane < known.candidates
        place = FIRST_CANDIDATE + count + warp_rank(kept)
        warp_sync()
        if kept:
            store_triple(triples, place, entry)
        count += warp_count(kept)
        warp_sync()
        first += lane_count()
    return count


@wp.func
def push_candidates(
    triples: wp.uint64, count: wp.int32, rank: wp.int32, bits: wp.vec2i, candidates: PairQueue
):
    """List so many candidates of a row."""
    for k in range(lane_index(), count, lane_count()):
        entry = load_triple(triples, FIRST_CANDIDATE + k)
        push_pair(candidates, pack_pair(rank, entry[0], entry[1], bits))
    warp_sync()


@wp.func
def measure_candidates(
    triples: wp.uint64,
    count: wp.int32,
    rank: wp.int32,
    pair: PosedPair,
    queues: DistanceQueues,
    before: NearestPair,
):
    """The nearest of the pair found before and so many candidates of a row, in float64."""
    found = NearestPair()
    found.bits = before.bits
    found.key = before.key
    for k in range(count):
        entry = load_triple(triples, FIRST_CANDIDATE + k)
        p = load_face(pair.a, entry[0], pair.pose)
        q = load_face(pair.b, entry[1], pair.pose)
        gap = wp.cast(entry[2], wp.float32)
        if found.bits > wp.int64(0):
            found = compare_faces(queues.contacts, rank, entry[0], entry[1], p, q, gap, found)
    return found


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
        start: wp.vec3i,
        rank: wp.int32,
        shared: wp.bool,
        queues: DistanceQueues,
        candidates: PairQueue,
    ):
        """The nearest faces below a pair of nodes, if they are as near as the bound of the row.

        Other teams may lower the bound of a ``shared`` row; the key is NO_KEY where they have
        found nearer faces. Distances are bits, and 0 for faces that meet. On CUDA, faces are listed
        as candidates instead, and the bound is that of faces that surely cross, or lies above the
        distance of a candidate.
        """
        lane = lane_index()
        frame = frame_of(pair)
        slack = slack_of(pair)
        padding = slab_padding(frame, pair.tree_a, pair.tree_b)
        found = NearestPair()
        found.bits = load_relaxed_int64(queues.bound, rank)
        found.key = NO_KEY
        known = NearestBounds()
        known.upper = from_bits(found.bits)
        sampled = sampled_distance(triples, pair, frame, padding)
        known.upper = wp.min(known.upper, sampled)
        known.limit = box_limit(known.upper, slack, frame.stretch)
        known.keep = known.limit
        slab = slab_of(frame, known.direction, padding)
        pool = start_pool(triples, start, wp.float32(0.0))
        while pool.near + pool.far + pool.faces > 0:
            before = known.upper
            if shared:  # another team may have found nearer faces
                other = from_bits(load_relaxed_int64(queues.bound, rank))
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
                                fit_ends(pair.a.points, pair.a.faces, pair.tree_a, entry[0])
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
        # out
        queues_out: DistanceQueues,
        candidates_out: PairQueue,
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Find the nearest faces of each (row, subtrees of a and b), where they are the nearest.

        On the CPU distances are written as bits; the key is NO_KEY where other teams have found
        nearer faces. On CUDA candidates are listed. Rows of the far field are left out.
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
                start = start_of_item(pair, items, work % each)
                found = nearest_in_row(
                    triples, pair, start, rank, each > 1, queues_out, candidates_out
                )
                if lane_index() == 0:
                    atomic_min_int64(queues_out.bound, rank, found.bits)
                    if wp.static(not cuda):
                        distance_out[work] = found.bits
                        key_out[work] = found.key
            elif wp.static(not cuda):
                if each > 1:
                    key_out[work] = NO_KEY
            work = next_item(counter, work)

    return team_nearest_kernel
