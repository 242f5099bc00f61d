"""Pairs of faces of one mesh whose boxes overlap, each once: for CUDA.

Each leaf looks at what follows it in the tree alone: every pair is found by its first leaf, and
no walk starts at the root (the half traversal of ArborX). A walk follows escapes, without a stack,
which would live in slow memory, and small subtrees (twigs) walk for all their leaves. Long walks
are shared. For the CPU see groups. Measured in design/traversal.md.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bvh.layout import (
    BvhView,
    Node,
    escape_of,
    face_of,
    link_of,
    load_node,
)
from abut.bvh.leaf_clusters import (
    CLUSTER_SIZE,
    cluster_code,
    cluster_code_of,
    cluster_first,
    cluster_size,
    first_leaf_of_right,
    leaf_begin,
    leaf_end,
)
from abut.core.atomics import atomic_add_aggregated
from abut.core.launch import UNKNOWN_COUNT
from abut.core.pair_queue import (
    PairQueue,
    PairQueues,
    pack_pair,
    push_all_pairs,
    push_pair,
    queue_stop,
    store_pair,
    team_stop,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LISTED = wp.constant(32)  # room for all twigs that a walk of 32 visits can find
LONG_WALK = 32  # visits of one thread, before others share the rest
SHARES = ("rest", "late", "last")  # queues of what long walks leave, one after the other
MANY_CLUSTERS = 1 << 14  # more than this, and walks are shared in all of them
CHAIN = wp.constant(64)  # room for what is left of a walk: a subtree a level
CLUSTER_PAIRS = wp.constant(16)


@wp.func
def overlap_boxes(a: Node, b: Node):
    """1 when two nodes of one tree overlap, else 0."""
    return wp.int32(overlap_aabb(a.low, a.high, b.low, b.high))


@wp.func
def list_found(
    own: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    queue: PairQueue,
):
    """Put the pairs of a twig and those found into a queue."""
    place = atomic_add_aggregated(queue.count, count)
    for i in range(count):
        key = (wp.int64(own) << wp.int64(32)) | wp.int64(found[i])
        store_pair(queue, place + wp.int64(i), key)


@wp.func
def list_walk(
    tree: BvhView,
    own: wp.int32,
    box: Node,
    start: wp.int32,
    stop: wp.int32,
    most: wp.int32,
    queue: PairQueue,
):
    """List the twigs from ``start`` to ``stop`` that overlap a box, without a stack.

    Returns the slot to go on from: ``stop``, or another after ``most`` visits.
    """
    found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
    count = wp.int32(0)
    visits = wp.int32(0)
    slot = wp.int32(start)
    first = leaf_begin(tree, slot)
    while slot != stop and visits < most:
        node = load_node(tree.nodes, slot)
        hit = overlap_boxes(box, node)
        size = leaf_end(tree, node) - first
        opened = hit == 1 and size > CLUSTER_SIZE
        slot = wp.where(opened, 2 * link_of(node), escape_of(node))
        visits += 1
        if hit == 1 and size <= CLUSTER_SIZE:
            found[count] = cluster_code(first, size)
            count += 1
            if count == LISTED:
                list_found(own, found, count, queue)
                count = 0
        if not opened:
            first = first_leaf_of_right(slot)
    list_found(own, found, count, queue)  # threads of a warp together
    return slot


@wp.func
def leave_rest(
    tree: BvhView,
    twig: wp.int32,
    box: Node,
    start: wp.int32,
    stop: wp.int32,
    queue: PairQueue,
):
    """Put what is left of a walk into a queue: a chain of subtrees, which many can walk at once."""
    found = wp.zeros(shape=(CHAIN,), dtype=wp.int32)
    count = wp.int32(0)
    slot = wp.int32(start)
    while slot != stop:
        node = load_node(tree.nodes, slot)
        found[count] = slot
        count += overlap_boxes(box, node)
        slot = escape_of(node)
    list_found(twig, found, count, queue)


@wp.kernel
def self_list_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    twigs: wp.array[wp.int32],
    most: wp.int32,
    # out
    twigs_out: PairQueue,
    rest_out: PairQueue,
):
    """List the pairs of overlapping twigs; what is left after ``most`` visits goes to a queue."""
    for twig in range(span[0] + wp.tid(), span[1], span[2]):
        slot = twigs[twig]
        box = load_node(tree.nodes, slot)
        own = cluster_code_of(tree, slot, box)
        push_pair(twigs_out, (wp.int64(own) << wp.int64(32)) | wp.int64(own))
        slot = list_walk(tree, own, box, escape_of(box), -1, most, twigs_out)
        leave_rest(tree, twig, box, slot, -1, rest_out)


@wp.kernel
def self_rest_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    twigs: wp.array[wp.int32],
    most: wp.int32,
    rest: PairQueue,
    # out
    twigs_out: PairQueue,
    rest_out: PairQueue,
):
    """List the pairs of the subtrees that longer walks left."""
    for i in range(span[0] + wp.tid(), queue_stop(rest, span[1]), span[2]):
        twig = wp.int32(rest.keys[i] >> wp.int64(32))
        start = wp.int32(rest.keys[i] & wp.int64(0x7FFFFFFF))
        box = load_node(tree.nodes, twigs[twig])
        own = cluster_code_of(tree, twigs[twig], box)
        stop = escape_of(load_node(tree.nodes, start))
        slot = list_walk(tree, own, box, start, stop, most, twigs_out)
        leave_rest(tree, twig, box, slot, stop, rest_out)


def cluster_walks(
    tree: Any, clusters: wp.array, queues: PairQueues
) -> Iterator[tuple[wp.Kernel, int, list[Any]]]:
    """Kernel, count and arguments of the launches that list pairs of leaf clusters.

    Threads share long walks.
    """
    shares = SHARES if clusters.shape[0] > MANY_CLUSTERS else SHARES[:-1]
    found, rest = queues["clusters"], [queues[name] for name in shares]
    yield self_list_kernel, clusters.shape[0], [tree, clusters, LONG_WALK, found, rest[0]]
    for here, there in pairwise(rest):
        yield self_rest_kernel, UNKNOWN_COUNT, [tree, clusters, LONG_WALK, here, found, there]
    last = [tree, clusters, UNKNOWN_COUNT, rest[-1], found, rest[0]]
    yield self_rest_kernel, UNKNOWN_COUNT, last


@wp.func
def open_clusters(
    tree: BvhView,
    pair: wp.int64,
    k: wp.int32,
    bits: wp.vec2i,
    by_leaf: wp.bool,
    found: wp.array[wp.int64],
    count: wp.int32,
):
    """Add to those found the pairs of leaf k of a twig with the leaves of another."""
    own = wp.int32(pair >> wp.int64(32))
    other = wp.int32(pair & wp.int64(0x7FFFFFFF))
    if k < cluster_size(own):
        a = load_node(tree.nodes, tree.leaf_slots[cluster_first(own) + k])
        for j in range(CLUSTER_SIZE):
            if j < cluster_size(other) and (own != other or j > k):
                b = load_node(tree.nodes, tree.leaf_slots[cluster_first(other) + j])
                low = wp.min(face_of(a), face_of(b))
                high = wp.max(face_of(a), face_of(b))
                if by_leaf:
                    low = cluster_first(own) + k
                    high = cluster_first(other) + j
                found[count] = pack_pair(0, low, high, bits)
                count += overlap_boxes(a, b)
    return count


@wp.kernel
def self_open_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    bits: wp.vec2i,
    by_leaf: wp.bool,
    pairs: PairQueue,
    # out
    candidates_out: PairQueue,
):
    """List the pairs of overlapping leaves of pairs of twigs, a thread for each of the first's.

    Keys name faces, the lower one first; or, ``by_leaf``, places along the curve.
    """
    found = wp.zeros(shape=(CLUSTER_PAIRS,), dtype=wp.int64)
    stop = team_stop(pairs, CLUSTER_SIZE, span[1])
    for start in range(span[0] + wp.tid(), stop, CLUSTER_SIZE * span[2]):
        count = wp.int32(0)
        for step in range(CLUSTER_SIZE):  # some at a time, since all ask one counter for room
            i = start + step * span[2]
            if i < stop:
                pair = pairs.keys[i / CLUSTER_SIZE]
                count = open_clusters(tree, pair, i % CLUSTER_SIZE, bits, by_leaf, found, count)
        push_all_pairs(candidates_out, found, 0, count)
