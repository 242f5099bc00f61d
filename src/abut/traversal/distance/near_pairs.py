"""Pairs of faces whose boxes come as near as the bound of their row.

As for contact, walking both trees at once is the least work, for the CPU and for batches of poses.
Listing the leaves near each leaf gives the most threads, for CUDA.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import (
    BvhView,
    Node,
    escape_of,
    face_of,
    is_leaf,
    load_node,
    next_slot,
    root_of,
    subtree_slot,
)
from abut.core.atomics import atomic_add_aggregated
from abut.core.pair_queue import PairQueue
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.distance_queues import DistanceQueues, box_limit, from_bits, slack_of, test_near
from abut.operands.posed_pairs import (
    PosedPair,
    ScenePairs,
    WorkItems,
    item_stop,
    pair_at,
    pair_stop,
    row_and_item,
    row_end,
    subtree_depth,
)
from abut.traversal.distance.node_gaps import gap_nodes
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(128)


@wp.func
def row_limit(pair: PosedPair, frame: RelativeFrame, bound: wp.int64):
    """The squared gap of boxes above which no face in them comes as near as the bound of a row."""
    return box_limit(from_bits(bound), slack_of(pair), frame.stretch)


@wp.func
def push_near(
    stack: wp.array[wp.vec2i],
    held: wp.int32,
    frame: RelativeFrame,
    limit: wp.float32,
    tree_a: BvhView,
    i: wp.int32,
    a: Node,
    tree_b: BvhView,
    j: wp.int32,
    b: Node,
):
    """Open the larger of two nodes; pairs within a limit go on the stack. Returns its size."""
    top = held
    for side in range(2):
        stack[top] = pair_below(i, a, j, b, side)
        lower_a = load_node(tree_a.nodes, stack[top][0])
        lower_b = load_node(tree_b.nodes, stack[top][1])
        top += wp.int32(not (gap_nodes(frame, lower_a, lower_b) > limit))
    return top


@wp.kernel
def near_items_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    frames: wp.array[RelativeFrame],
    bound: wp.array[wp.int64],
    fields: wp.array[wp.int32],
    items: WorkItems,
    leafwise: wp.bool,
    # out
    items_out: wp.array[wp.int32],
):
    """Items of work of each row: subtrees of a, or its leaves; none for boxes farther apart.

    A mesh against itself has its leaves as items. Rows of the far field have none.
    """
    stop = pair_stop(pairs, span[1])
    for rank in range(span[0] + wp.tid(), row_end(stop, span[1]), span[2]):
        count = wp.int32(0)
        far = wp.bool(False)
        if rank < stop and fields.shape[0] > 0:
            far = fields[rank] != 0
        if rank < stop and not far:
            pair = pair_at(pairs, rank)
            frame = frames[rank]
            root_a = load_node(pair.tree_a.nodes, root_of(pair.tree_a))
            root_b = load_node(pair.tree_b.nodes, root_of(pair.tree_b))
            if not (gap_nodes(frame, root_a, root_b) > row_limit(pair, frame, bound[rank])):
                face_count = pair.a.faces.shape[0]
                count = 1 << subtree_depth(items, face_count)
                if leafwise or pair.sharing != SHARED_NONE:
                    count = face_count
        items_out[rank] = count


@cache
def near_kernel_for(pairs_type: type, own: bool) -> wp.Kernel:
    """The descent of a type of posed pairs; with ``own`` rows may pair a mesh with itself."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def near_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        items: WorkItems,
        # out
        queues_out: DistanceQueues,
        near_out: PairQueue,
    ):
        """Test all faces whose boxes are near, for each subtree of a, or each leaf of one mesh."""
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
        for work in range(span[0] + wp.tid(), item_stop(items, span[1]), span[2]):
            at = row_and_item(items, work)
            rank = at[0]
            pair = pair_at(pairs, rank)
            frame = frames[rank]
            distance = from_bits(queues_out.bound[rank])
            limit = box_limit(distance, slack_of(pair), frame.stretch)
            contacts = queues_out.contacts
            if wp.static(own):
                if pair.sharing != SHARED_NONE:
                    leaf = load_node(pair.tree_a.nodes, pair.tree_a.leaf_slots[at[1]])
                    slot = escape_of(leaf)
                    while slot >= 0:
                        node = load_node(pair.tree_a.nodes, slot)
                        near = not (gap_nodes(frame, leaf, node) > limit)
                        slot = next_slot(node, near)
                        if near and is_leaf(node):
                            test_near(
                                pair.a,
                                pair.b,
                                pair.pose,
                                pair.sharing,
                                distance,
                                contacts,
                                rank,
                                face_of(leaf),
                                face_of(node),
                                near_out,
                            )
                    continue
            depth = subtree_depth(items, pair.a.faces.shape[0])
            start = wp.int32(-1)
            if at[1] < 1 << depth:
                start = subtree_slot(pair.tree_a, at[1], depth)
            stack[0] = wp.vec2i(start, root_of(pair.tree_b))
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                a = load_node(pair.tree_a.nodes, i)
                b = load_node(pair.tree_b.nodes, j)
                if is_leaf(a) and is_leaf(b):
                    test_near(
                        pair.a,
                        pair.b,
                        pair.pose,
                        SHARED_NONE,
                        distance,
                        contacts,
                        rank,
                        face_of(a),
                        face_of(b),
                        near_out,
                    )
                else:
                    held = push_near(
                        stack, held, frame, limit, pair.tree_a, i, a, pair.tree_b, j, b
                    )

    return near_kernel


@cache
def near_leaves_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel that lists leaves of b near each leaf of a, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def near_leaves_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        items: WorkItems,
        fields: wp.array[wp.int32],
        queues: DistanceQueues,
        most_nodes: wp.int32,
        # out
        candidates_out: PairQueue,
        skipped_out: PairQueue,
    ):
        """List the leaves of b near each (row, leaf of a), without a stack.

        In a mesh against itself only later leaves are visited. Rows of the far field are left out.
        A walk ends after ``most_nodes``, and is counted if it has skipped some.
        """
        bits = queues.contacts.bits
        for work in range(span[0] + wp.tid(), item_stop(items, span[1]), span[2]):
            at = row_and_item(items, work)
            rank = at[0]
            if fields.shape[0] > 0:
                if fields[rank] != 0:
                    continue
            pair = pair_at(pairs, rank)
            leaf = load_node(pair.tree_a.nodes, pair.tree_a.leaf_slots[at[1]])
            face = face_of(leaf)
            frame = frames[rank]
            limit = row_limit(pair, frame, queues.bound[rank])
            found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
            count = wp.int32(0)
            slot = root_of(pair.tree_b)
            if pair.sharing != SHARED_NONE:
                slot = escape_of(leaf)
            left = most_nodes
            while slot >= 0 and left > 0:
                node = load_node(pair.tree_b.nodes, slot)
                near = not (gap_nodes(frame, leaf, node) > limit)
                slot = next_slot(node, near)
                left -= 1
                if near and is_leaf(node):
                    count = note_found(
                        face_of(node), rank, face, found, count, bits, False, candidates_out
                    )
            if slot >= 0:
                atomic_add_aggregated(skipped_out.count, 1)
            list_found(rank, face, found, count, bits, False, candidates_out)

    return near_leaves_kernel
