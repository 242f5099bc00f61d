"""Advance fronts of posed pairs to the boxes as they are now."""

from functools import cache
from typing import Any

import warp as wp

from abut.core.pair_queue import PairQueue, pack_pair, push_all_pairs, queue_stop, unpack_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.posed_pairs import MeshPairs, pair_at
from abut.options import Bound
from abut.traversal.front.traversal_tree import (
    FrontRows,
    TraversalTree,
    VolumeTree,
    faces_key,
    first_slots,
    gap_between,
    gives_way,
    highest_apart,
    leaf_count_of,
    links_of_pair,
    node_key,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(128)
HELD = wp.constant(32)  # pairs that a thread holds before it reserves room in a queue
FULL = wp.constant(29)  # an opened pair adds three at most
WIDE = wp.constant(40)  # pairs that are opened breadth first at most, on the stack


@wp.struct
class FrontQueues:
    """Outputs of an advance."""

    kept: PairQueue  # pairs of the new front
    unopened: PairQueue  # overlapping pairs that another launch opens
    found: PairQueue  # faces whose boxes overlap


@wp.func
def put_pair(
    tree: Any,
    x: wp.int32,
    y: wp.int32,
    at: wp.vec3i,
    stack: wp.array[wp.int64],
    kept: wp.array[wp.int64],
):
    """Put a pair on the stack if its boxes overlap, else among those kept; ``at`` counts both."""
    hit = wp.int32(not (gap_between(tree, x, y) > wp.float32(0.0)))
    stack[at[0]] = node_key(tree, x, y)
    kept[at[1]] = node_key(tree, x, y)
    return wp.vec3i(at[0] + hit, at[1] + 1 - hit, at[2])


@wp.func
def put_children(
    tree: Any,
    x: wp.int32,
    y: wp.int32,
    links: wp.vec2i,
    at: wp.vec3i,
    stack: wp.array[wp.int64],
    kept: wp.array[wp.int64],
):
    """Put the pairs below one on the stack or among those kept: two, or three of a node and itself.

    ``links`` are those of x and y.
    """
    same = tree.within and x == y
    opens_x = leaf_count_of(tree.ranges_a, x) >= leaf_count_of(tree.ranges_b, y)
    k = wp.where(same, 0, 1)
    while k < 3:  # not unrolled: a test across frames is long
        child = wp.vec2i(x, 2 * links[1] + k - 1)
        if same:  # left and right, left and left, right and right
            left = 2 * links[0]
            child = wp.where(k == 0, wp.vec2i(left, left + 1), wp.vec2i(left + k - 1))
        elif opens_x:
            child = wp.vec2i(2 * links[0] + k - 1, y)
        at = put_pair(tree, child[0], child[1], at, stack, kept)
        k += 1
    return at


@wp.func
def flush_full(
    at: wp.vec3i,
    kept: wp.array[wp.int64],
    found: wp.array[wp.int64],
    least: wp.int32,
    queues: FrontQueues,
):
    """Push the held pairs to their queues once they are at least ``least``."""
    out = at
    if at[1] >= least:
        push_all_pairs(queues.kept, kept, 0, at[1])
        out[1] = 0
    if at[2] >= least:
        push_all_pairs(queues.found, found, 0, at[2])
        out[2] = 0
    return out


@wp.func
def advance_pair(
    tree: Any,
    start: wp.vec2i,
    most: wp.int32,
    climb: wp.bool,
    at: wp.vec3i,
    stack: wp.array[wp.int64],
    kept: wp.array[wp.int64],
    found: wp.array[wp.int64],
    queues: FrontQueues,
):
    """Move a pair of a front up or down, opening at most ``most`` pairs.

    Overlapping pairs of leaves are found. Pairs move up only with ``climb``. ``at`` counts the
    pairs on the stack, which begins and ends empty, those kept and those found. Up to WIDE pairs
    are opened breadth first, so that the unopened pairs are many of one size.
    """
    place = at[1]
    at = put_pair(tree, start[0], start[1], at, stack, kept)
    if climb and gives_way(tree, at[0] > 0):
        high = highest_apart(tree, start[0], start[1])
        if at[0] == 0 or high[0] != start[0] or high[1] != start[1]:
            kept[place] = node_key(tree, high[0], high[1])
            at = wp.vec3i(0, place + wp.int32(high[0] >= 0), at[2])
    opened = wp.int32(0)
    head = wp.int32(0)
    while at[0] > head:
        if opened == most:
            push_all_pairs(queues.unopened, stack, head, at[0])
            at[0] = head
            continue
        if most > WIDE:
            at[0] = at[0] - 1
            key = stack[at[0]]
        else:
            key = stack[head]
            head += 1
        row = unpack_pair(key, tree.slot_bits)
        links = links_of_pair(tree, row[1], row[2])
        if wp.max(links) >= 0:
            opened += 1
            at = put_children(tree, row[1], row[2], links, at, stack, kept)
        elif not (tree.within and row[1] == row[2]):
            kept[at[1]] = node_key(tree, row[1], row[2])
            found[at[2]] = faces_key(tree, -1 - links[0], -1 - links[1])
            at = wp.vec3i(at[0], at[1] + 1, at[2] + 1)
        at = flush_full(at, kept, found, FULL, queues)
    at[0] = 0
    return flush_full(at, kept, found, FULL, queues)


@wp.func
def resting_pair(tree: Any, pair: wp.vec2i):
    """The pair to keep for a pair of a row at rest; (-1, -1) if another pair stands for it."""
    if gap_between(tree, pair[0], pair[1]) > wp.float32(0.0):
        return highest_apart(tree, pair[0], pair[1])
    return pair


@cache
def advance_kernel_for(pairs_type: type, bound: Bound = Bound.AABB) -> wp.Kernel:
    """The kernel that advances fronts, for a type of posed pairs and the volumes of nodes.

    Two meshes are one row, which is always there and never at rest; they alone have other volumes
    than boxes.
    """
    many = pairs_type is not MeshPairs
    tree_type = TraversalTree if bound is Bound.AABB else VolumeTree

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def advance_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        rows: FrontRows,
        last: PairQueue,
        renumber: wp.bool,
        most: wp.int32,
        climb: wp.bool,
        # out
        queues_out: FrontQueues,
    ):
        """Move each pair of ``last`` up or down; pairs of rows that are gone are dropped.

        With ``renumber`` the pairs of ``last`` have the ranks of the last query.
        """
        stack = wp.zeros(shape=(STACK,), dtype=wp.int64)
        kept = wp.zeros(shape=(HELD,), dtype=wp.int64)
        found = wp.zeros(shape=(HELD,), dtype=wp.int64)
        at = wp.vec3i(0, 0, 0)
        tree = tree_type()
        tree.rank = -1
        if wp.static(bound is Bound.RSS):
            tree.swept = True
        tree.slot_bits = rows.slot_bits
        tree.bits = rows.bits
        for i in range(span[0] + wp.tid(), queue_stop(last, span[1]), span[2]):
            row = unpack_pair(last.keys[i], rows.slot_bits)
            start = wp.vec2i(row[1], row[2])
            rank = row[0]
            resting = wp.bool(False)
            if wp.static(many):
                if renumber:
                    rank = rows.ranks[rank]
                if rank < 0:
                    continue
                resting = rows.resting[rank] == 1
            if rank != tree.rank and (climb or not resting):  # filled in place: copies are slow
                pair = pair_at(pairs, rank)
                slots = first_slots(pairs, rank)
                if wp.static(bound is Bound.AABB):
                    tree.nodes_a = pair.tree_a.nodes
                    tree.nodes_b = pair.tree_b.nodes
                if wp.static(bound is Bound.OBB):
                    tree.nodes_a = pair.tree_a.obbs
                    tree.nodes_b = pair.tree_b.obbs
                if wp.static(bound is Bound.RSS):
                    tree.nodes_a = pair.tree_a.rss
                    tree.nodes_b = pair.tree_b.rss
                tree.splits_a = pair.tree_a.split_slots
                tree.splits_b = pair.tree_b.split_slots
                stop_a = slots[0] + 2 * pair.tree_a.leaf_slots.shape[0]
                stop_b = slots[1] + 2 * pair.tree_b.leaf_slots.shape[0]
                tree.ranges_a = rows.leaf_ranges[slots[0] : stop_a]
                tree.ranges_b = rows.leaf_ranges[slots[1] : stop_b]
                tree.frames = rows.frames[rank : rank + 1]
                tree.within = pair.sharing != SHARED_NONE
                tree.rank = rank
            if resting:
                if climb:
                    start = resting_pair(tree, start)
                kept[at[1]] = pack_pair(rank, start[0], start[1], rows.slot_bits)
                at[1] = at[1] + wp.int32(start[0] >= 0)
                if at[1] >= FULL:
                    at = flush_full(at, kept, found, FULL, queues_out)
            else:
                at = advance_pair(tree, start, most, climb, at, stack, kept, found, queues_out)
        flush_full(at, kept, found, 1, queues_out)

    return advance_kernel
