"""Descend both hierarchies of each posed pair as a team, and test faces on the way.

Each lane takes a pair of nodes from the top of the team's stack, opens it and pushes the pairs of
children that overlap. A CPU thread is a team of one lane: the text is then a plain depth-first
descent. The stack always holds pairs in depth-first order, the next one on top. Where all pairs of
faces are wanted, pairs of leaves wait until there is one for each lane.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame, unbounded_frame
from abut.bvh.deferred_subtrees import build_if_deferred, is_deferred
from abut.bvh.layout import face_of, is_leaf, load_node, root_of
from abut.core.atomics import atomic_max_int32
from abut.core.lanes import (
    WARP_SIZE,
    lane_count,
    lane_index,
    warp_broadcast,
    warp_first,
    warp_scan,
    warp_sync,
)
from abut.core.memory_access import load_l2_int32
from abut.core.pair_queue import MAX_COUNT, no_key, pack_pair, push_pair
from abut.core.team import (
    TEAM_STACK,
    load_entry,
    local_stack,
    next_item,
    shared_stack,
    store_entry,
)
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.operands.contact_queues import ContactQueues
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.operands.posed_pairs import (
    MeshPairs,
    WorkItems,
    environment_at,
    frame_of,
    item_stop,
    pair_at,
    pair_stop,
    row_and_item,
    subtree_depth,
)
from abut.traversal.overlap.kdop_frames import KdopFrames
from abut.traversal.overlap.leaf_packets import FOUND, test_own_packet
from abut.traversal.overlap.leaf_packets import STACK as PACKET_STACK
from abut.traversal.overlap.node_pairs import (
    STACK,
    Opened,
    farthest_first,
    finer_overlap,
    open_pair,
    start_of,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

WANTS_LOWEST = wp.constant(-(2**31))  # flag of an environment that is asked for its lowest row

LEAVES_WAITING = 2 * WARP_SIZE  # pairs of leaves that wait for a test, at most
SMALLEST = wp.constant(wp.float32(1.0e-38))  # a gap, whatever its lowest bits


@wp.func
def lanes_with_room(held: wp.int32, capacity: wp.int32):
    """Return how many lanes may take a pair from a stack.

    Each may leave three more behind. One lane alone needs STACK entries, so while fewer than that
    are free, only one takes a pair.
    """
    return wp.min(wp.min(held, lane_count()), wp.max(1, (capacity - STACK - held) / 3))


@wp.func
def push_team(stack: wp.uint64, held: wp.int32, pairs: Opened, wanted: wp.bool):
    """Push the overlapping pairs of all lanes with ``wanted``; returns the size of the stack.

    The pairs of the first lane come to lie on top, and of each lane the deepest overlap.
    """
    gaps = farthest_first(pairs.gaps)
    count = wp.int32(0)
    if wanted:
        for k in range(4):
            count += wp.int32(not (gaps[k] > SMALLEST))
    places = warp_scan(count)
    place = held + places[1] - places[0] - count
    if wanted:
        for k in range(4):
            if not (gaps[k] > SMALLEST):
                at = wp.cast(gaps[k], wp.int32) & 3
                store_entry(stack, place, wp.vec2i(pairs.i + (at >> 1), pairs.j + (at & 1)))
                place += 1
    warp_sync()
    return held + places[1]


@wp.func
def push_leaves(stack: wp.uint64, leaves_at: wp.int32, at: wp.vec2i, wanted: wp.bool):
    """Append the pairs of all lanes with ``wanted`` above ``leaves_at``; returns where they end."""
    places = warp_scan(wp.int32(wanted))
    if wanted:
        store_entry(stack, leaves_at + places[0], at)
    warp_sync()
    return leaves_at + places[1]


@wp.func
def test_leaves(
    a: PosedMesh,
    b: PosedMesh,
    pose: wp.int32,
    sharing: wp.int32,
    queues: ContactQueues,
    rank: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
):
    """Return the key of two faces that certainly meet, else NO_KEY; undecided pairs are pushed.

    Of one mesh each pair of faces counts once.
    """
    out = no_key()
    if sharing == SHARED_NONE or face_a < face_b:
        corners_a = load_face(a, face_a, pose)
        corners_b = load_face(b, face_b, pose)
        verdict = classify_tri_tri(corners_a, corners_b, sharing, a.faces[face_a], b.faces[face_b])
        key = pack_pair(rank, face_a, face_b, queues.bits)
        if verdict == HIT:
            out = key
        elif verdict != MISS:
            push_pair(queues.undecided, key)
    return out


@wp.func
def is_over(flags: wp.array[wp.int32], environment: wp.int32, rank: wp.int32):
    """Whether another row has answered for its environment; all lanes must call it."""
    flag = load_l2_int32(flags, environment)
    met = flag != 0 and flag > -1 - rank
    return warp_first(met) < lane_count()  # lanes may have read at different times


@wp.func
def note_contact(flags: wp.array[wp.int32], environment: wp.int32, rank: wp.int32):
    """Flag the environment of a row that met: with its rank where the lowest is wanted."""
    lowest = load_l2_int32(flags, environment) < 0
    atomic_max_int32(flags, environment, wp.where(lowest, -1 - rank, 1))


@cache
def descend_kernel_for(
    pairs_type: type, finer: bool, own: bool, first: bool, cuda: bool, framed: bool = False
) -> wp.Kernel:
    """The descent of a type of posed pairs.

    Args:
        pairs_type: MeshPairs or ScenePairs.
        finer: Trees have volumes beside their boxes.
        own: Rows may pair a mesh with itself.
        first: Find one pair per row, the first that a depth-first descent comes to.
        cuda: A team is a warp.
        framed: Frames of the rows are given; else each team computes its own.
    """
    packets = own and not first and not cuda  # of one mesh against itself
    lazy = pairs_type is MeshPairs and not finer and not cuda  # subtrees may be deferred
    size = int(TEAM_STACK) if cuda else int(STACK) + LEAVES_WAITING
    leaves_at = size if first else size - LEAVES_WAITING  # end of the stack

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def descend_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        items: WorkItems,
        boundless: wp.bool,
        dops: KdopFrames,
        counter: wp.array[wp.int32],
        # out
        queues_out: ContactQueues,
        colliding_out: wp.array[wp.int32],
    ):
        """Test faces whose volumes overlap, an item of work for each team.

        Where ``colliding_out`` is given, a row stops as soon as any row of its environment met;
        where it begins at WANTS_LOWEST, as soon as a lower row met.
        """
        if wp.static(cuda):
            stack = shared_stack()
        else:
            entries = wp.zeros(shape=(wp.static(size),), dtype=wp.vec2i)
            stack = local_stack(entries)
        if wp.static(packets):
            packet_stack = wp.zeros(shape=(PACKET_STACK,), dtype=wp.int32)
            packet_found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
        lane = lane_index()
        stop = item_stop(items, span[1])
        if items.starts.shape[0] == 0:
            stop = wp.min(pair_stop(pairs, MAX_COUNT / items.each) * items.each, stop)
        work = next_item(counter, span[0] - 1)
        while work < stop:
            row = row_and_item(items, work)
            rank = row[0]
            if wp.static(first):
                if colliding_out.shape[0] > 0:
                    if is_over(colliding_out, environment_at(pairs, rank), rank):
                        work = next_item(counter, work)
                        continue
            pair = pair_at(pairs, rank)
            if wp.static(packets):
                if pair.sharing != SHARED_NONE:
                    test_own_packet(
                        pair.a,
                        pair.tree_a,
                        pair.sharing,
                        queues_out,
                        rank,
                        row[1],
                        packet_stack,
                        packet_found,
                    )
                    work = next_item(counter, work)
                    continue
            if wp.static(framed):
                frame = frames[rank]
            else:
                frame = frame_of(pair)
                if boundless:
                    frame = unbounded_frame()
            depth = subtree_depth(items, pair.a.faces.shape[0])
            start = start_of(frame, pair.tree_a, pair.tree_b, row[1], depth)
            if lane == 0:
                store_entry(stack, 0, wp.vec2i(start, root_of(pair.tree_b)))
            warp_sync()
            held = wp.int32(start >= 0)
            leaves = wp.int32(wp.static(leaves_at))  # end of the waiting pairs of leaves
            found = no_key()
            sharing = wp.where(wp.static(own), pair.sharing, SHARED_NONE)
            while held > 0 or leaves > wp.static(leaves_at):
                if wp.static(first):
                    if colliding_out.shape[0] > 0:
                        if is_over(colliding_out, pair.environment, rank):
                            break
                at = wp.vec2i()
                opens = wp.bool(False)
                tests = wp.bool(False)
                opened = Opened()
                opening = wp.bool(True)
                if wp.static(not first):
                    opening = held > 0 and leaves - wp.static(leaves_at) < lane_count()
                if opening:
                    taken = lanes_with_room(held, wp.static(leaves_at))
                    held -= taken
                    if lane < taken:
                        at = load_entry(stack, held + taken - 1 - lane)
                        if wp.static(lazy):
                            if is_deferred(pair.tree_a.nodes, at[0]):
                                build_if_deferred(pair.a.points, pair.a.faces, pair.tree_a, at[0])
                            if is_deferred(pair.tree_b.nodes, at[1]):
                                build_if_deferred(pair.b.points, pair.b.faces, pair.tree_b, at[1])
                        a = load_node(pair.tree_a.nodes, at[0])
                        b = load_node(pair.tree_b.nodes, at[1])
                        near = wp.bool(True)
                        if wp.static(finer):
                            near = finer_overlap(
                                frame, dops, rank, pair.tree_a, at[0], pair.tree_b, at[1]
                            )
                        if is_leaf(a) and is_leaf(b):
                            tests = near
                            at = wp.vec2i(face_of(a), face_of(b))
                        elif near:
                            opens = True
                            opened = open_pair(frame, pair.tree_a, at[0], a, pair.tree_b, at[1], b)
                    warp_sync()  # all have read what others will overwrite
                    if wp.static(not first):
                        leaves = push_leaves(stack, leaves, at, tests)
                        tests = wp.bool(False)
                elif wp.static(not first):
                    taken = wp.min(leaves - wp.static(leaves_at), lane_count())
                    leaves -= taken
                    tests = lane < taken
                    if tests:
                        at = load_entry(stack, leaves + lane)
                    warp_sync()
                key = no_key()
                if tests:
                    key = test_leaves(
                        pair.a, pair.b, pair.pose, sharing, queues_out, rank, at[0], at[1]
                    )
                if wp.static(first):
                    winner = warp_first(key != no_key())
                    if winner < lane_count():  # a descent comes to all that is left later
                        found = warp_broadcast(key, winner)
                        held = 0
                        opens = opens and lane < winner and colliding_out.shape[0] == 0
                elif key != no_key():
                    push_pair(queues_out.hits, key)
                if opening:
                    held = push_team(stack, held, opened, opens)
            if wp.static(first):
                if lane == 0 and found != no_key():
                    queues_out.best[rank] = found
                    if colliding_out.shape[0] > 0:
                        note_contact(colliding_out, pair.environment, rank)
            warp_sync()
            work = next_item(counter, work)

    return descend_kernel
