"""Pairs of leaves of one tree whose boxes overlap, each once, found by teams: for CUDA.

An item of work is a subtree: its leaves against each other, and against all that follows them on
the curve. A pair of nodes is either a node with itself, which opens into both children with
themselves and with each other, or two nodes without a common leaf, the earlier one first. Pairs of
leaves wait until there is one for each lane; most fall to the plane filter.
"""

from functools import cache

import warp as wp

from abut.bvh.layout import (
    BvhView,
    Node,
    face_of,
    half_area,
    is_leaf,
    link_of,
    load_node,
    root_of,
    subtree_slot,
)
from abut.bvh.leaf_corners import leaves_apart
from abut.core.lanes import lane_count, lane_index, warp_scan, warp_sync
from abut.core.pair_queue import PairQueue, pack_pair, push_pair
from abut.core.team import (
    TEAM_STACK,
    load_entry,
    local_stack,
    next_item,
    shared_stack,
    store_entry,
)
from abut.traversal.overlap.descend import LEAVES_WAITING, lanes_with_room, push_leaves
from abut.traversal.overlap.leaf_cluster_pairs import overlap_nodes
from abut.traversal.overlap.node_pairs import LARGER, STACK

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Children:
    """Pairs (i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1) of slots; bit k: pair k is wanted."""

    i: wp.int32
    j: wp.int32
    wanted: wp.int32


@wp.func
def leaf_position(slot: wp.int32):
    """Return the position on the curve of the leaf in a slot."""
    return (slot + 1) >> 1


@wp.func
def open_own(tree: BvhView, i: wp.int32, a: Node, j: wp.int32, b: Node):
    """Return the pairs below two nodes of one tree, not both leaves, that are to be searched."""
    open_a = wp.int32(not is_leaf(a) and (is_leaf(b) or not (LARGER * half_area(a) < half_area(b))))
    open_b = wp.int32(not is_leaf(b) and (is_leaf(a) or not (LARGER * half_area(b) < half_area(a))))
    out = Children()
    out.i = wp.where(open_a == 1, 2 * link_of(a), i)
    out.j = wp.where(open_b == 1, 2 * link_of(b), j)
    a0 = load_node(tree.nodes, out.i)
    a1 = load_node(tree.nodes, out.i + open_a)
    if i == j:
        split = wp.int32(not is_leaf(a0)) | (wp.int32(not is_leaf(a1)) << 3)
        out.wanted = split | (overlap_nodes(a0, a1) << 1)
        return out
    b0 = load_node(tree.nodes, out.j)
    b1 = load_node(tree.nodes, out.j + open_b)
    out.wanted = (
        overlap_nodes(a0, b0)
        | ((overlap_nodes(a0, b1) & open_b) << 1)
        | ((overlap_nodes(a1, b0) & open_a) << 2)
        | ((overlap_nodes(a1, b1) & open_a & open_b) << 3)
    )
    return out


@wp.func
def push_children(stack: wp.uint64, held: wp.int32, pairs: Children):
    """Push the wanted pairs of all lanes; returns the size of the stack."""
    count = wp.int32(0)
    for k in range(4):
        count += (pairs.wanted >> k) & 1
    places = warp_scan(count)
    place = held + places[0]
    for k in range(4):
        if ((pairs.wanted >> k) & 1) == 1:
            store_entry(stack, place, wp.vec2i(pairs.i + (k >> 1), pairs.j + (k & 1)))
            place += 1
    warp_sync()
    return held + places[1]


@wp.func
def push_start(stack: wp.uint64, tree: BvhView, slot: wp.int32, lane: wp.int32):
    """Fill a stack with a subtree and itself, and with the overlapping subtrees that follow it.

    Returns the size of the stack.
    """
    box = load_node(tree.nodes, slot)
    held = wp.int32(1)
    if lane == 0:
        store_entry(stack, 0, wp.vec2i(slot, slot))
    above = wp.int32(slot)
    while above != root_of(tree):
        if above % 2 == 0:
            if overlap_nodes(box, load_node(tree.nodes, above + 1)) == 1:
                if lane == 0:
                    store_entry(stack, held, wp.vec2i(slot, above + 1))
                held += 1
        above = tree.split_slots[above >> 1]
    warp_sync()
    return held


@cache
def self_descend_kernel_for(cuda: bool) -> wp.Kernel:
    """The search of one tree for overlapping leaves, by warps or by CPU threads."""
    size = int(TEAM_STACK) if cuda else 2 * int(STACK) + LEAVES_WAITING
    leaves_at = size - LEAVES_WAITING  # end of the stack

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def self_descend_kernel(
        # in
        span: wp.vec3i,
        tree: BvhView,
        corners: wp.array[wp.vec4f],
        depth: wp.int32,
        bits: wp.vec2i,
        counter: wp.array[wp.int32],
        # out
        candidates_out: PairQueue,
    ):
        """Push the pairs of faces that boxes and planes leave, for each subtree at ``depth``."""
        if wp.static(cuda):
            stack = shared_stack()
        else:
            entries = wp.zeros(shape=(wp.static(size),), dtype=wp.vec2i)
            stack = local_stack(entries)
        lane = lane_index()
        item = next_item(counter, span[0] - 1)
        while item < wp.min(1 << depth, span[1]):
            slot = subtree_slot(tree, item, depth)
            held = wp.int32(0)
            if slot >= 0:
                held = push_start(stack, tree, slot, lane)
            leaves = wp.int32(wp.static(leaves_at))  # end of the waiting pairs of leaves
            while held > 0 or leaves > wp.static(leaves_at):
                at = wp.vec2i()
                if held > 0 and leaves - wp.static(leaves_at) < lane_count():
                    taken = lanes_with_room(held, wp.static(leaves_at))
                    held -= taken
                    waits = wp.bool(False)
                    pairs = Children()
                    if lane < taken:
                        at = load_entry(stack, held + taken - 1 - lane)
                        a = load_node(tree.nodes, at[0])
                        b = load_node(tree.nodes, at[1])
                        if is_leaf(a) and is_leaf(b):
                            waits = at[0] != at[1]
                        else:
                            pairs = open_own(tree, at[0], a, at[1], b)
                    warp_sync()  # all have read what others will overwrite
                    leaves = push_leaves(stack, leaves, at, waits)
                    held = push_children(stack, held, pairs)
                else:
                    taken = wp.min(leaves - wp.static(leaves_at), lane_count())
                    leaves -= taken
                    if lane < taken:
                        at = load_entry(stack, leaves + lane)
                        if not leaves_apart(corners, leaf_position(at[0]), leaf_position(at[1])):
                            face_a = face_of(load_node(tree.nodes, at[0]))
                            face_b = face_of(load_node(tree.nodes, at[1]))
                            low = wp.min(face_a, face_b)
                            high = wp.max(face_a, face_b)
                            push_pair(candidates_out, pack_pair(0, low, high, bits))
                    warp_sync()
            item = next_item(counter, item)

    return self_descend_kernel
