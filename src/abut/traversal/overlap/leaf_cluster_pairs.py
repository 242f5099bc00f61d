"""Pairs of leaves of one tree whose boxes overlap, each once, by leaf clusters: for CUDA.

A leaf cluster walks the part of the tree that follows it, so that every pair is found by its first
leaf and no walk starts at the root (the half traversal of ArborX). Walks follow escapes, since a
stack would live in slow memory. Threads share long walks. ``leaf_packets`` is the counterpart for
the CPU. Measured in design/traversal.md.
"""

from collections.abc import Iterator
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

LISTED = wp.constant(32)  # clusters that a walk of LONG_WALK visits can find
LONG_WALK = 32  # visits of one thread before others share the rest
REST_QUEUES = ("rest", "late")  # queues of unfinished walks, one after the other
LEAST_PART = 64  # leaves of a part of a walk
CHAIN = wp.constant(64)  # parts pushed together
CLUSTER_PAIRS = wp.constant(16)


@wp.func
def overlap_nodes(a: Node, b: Node):
    """1 when the boxes of two nodes in one frame overlap, else 0."""
    return wp.int32(overlap_aabb(a.low, a.high, b.low, b.high))


@wp.func
def push_clusters(
    own: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    queue: PairQueue,
):
    """Push the pairs of a cluster and those found."""
    place = atomic_add_aggregated(queue.count, count)
    for i in range(count):
        key = (wp.int64(own) << wp.int64(32)) | wp.int64(found[i])
        store_pair(queue, place + wp.int64(i), key)


@wp.func
def walk_clusters(
    tree: BvhView,
    own: wp.int32,
    box: Node,
    start: wp.int32,
    stop: wp.int32,
    most: wp.int32,
    queue: PairQueue,
):
    """List the clusters from slot ``start`` to ``stop`` that overlap a box.

    Returns the slot where the walk ended: ``stop``, or another after ``most`` visits.
    """
    found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
    count = wp.int32(0)
    visits = wp.int32(0)
    slot = wp.int32(start)
    first = leaf_begin(tree, slot)
    while slot != stop and visits < most:
        node = load_node(tree.nodes, slot)
        hit = overlap_nodes(box, node)
        size = leaf_end(tree, node) - first
        opened = hit == 1 and size > CLUSTER_SIZE
        slot = wp.where(opened, 2 * link_of(node), escape_of(node))
        visits += 1
        if hit == 1 and size <= CLUSTER_SIZE:
            found[count] = cluster_code(first, size)
            count += 1
            if count == LISTED:
                push_clusters(own, found, count, queue)
                count = 0
        if not opened:
            first = first_leaf_of_right(slot)
    push_clusters(own, found, count, queue)  # threads of a warp together
    return slot


@wp.func
def push_rest(
    tree: BvhView,
    cluster: wp.int32,
    box: Node,
    start: wp.int32,
    stop: wp.int32,
    largest: wp.int32,
    queue: PairQueue,
):
    """Push the rest of a walk: subtrees of at most ``largest`` leaves, for as many threads."""
    if start == stop:
        return
    found = wp.zeros(shape=(CHAIN,), dtype=wp.int32)
    count = wp.int32(0)
    slot = wp.int32(start)
    first = leaf_begin(tree, slot)
    while slot != stop:
        node = load_node(tree.nodes, slot)
        hit = overlap_nodes(box, node)
        opened = hit == 1 and leaf_end(tree, node) - first > largest
        if hit == 1 and not opened:
            found[count] = slot
            count += 1
            if count == CHAIN:
                push_clusters(cluster, found, count, queue)
                count = 0
        slot = wp.where(opened, 2 * link_of(node), escape_of(node))
        if not opened:
            first = first_leaf_of_right(slot)
    push_clusters(cluster, found, count, queue)


@wp.kernel
def list_clusters_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    clusters: wp.array[wp.int32],
    most: wp.int32,
    largest: wp.int32,
    # out
    clusters_out: PairQueue,
    rest_out: PairQueue,
):
    """List the pairs of overlapping clusters; a walk pushes what is left after ``most`` visits."""
    for cluster in range(span[0] + wp.tid(), span[1], span[2]):
        slot = clusters[cluster]
        box = load_node(tree.nodes, slot)
        own = cluster_code_of(tree, slot, box)
        push_pair(clusters_out, (wp.int64(own) << wp.int64(32)) | wp.int64(own))
        slot = walk_clusters(tree, own, box, escape_of(box), -1, most, clusters_out)
        push_rest(tree, cluster, box, slot, -1, largest, rest_out)


@wp.kernel
def resume_walks_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    clusters: wp.array[wp.int32],
    most: wp.int32,
    largest: wp.int32,
    rest: PairQueue,
    # out
    clusters_out: PairQueue,
    rest_out: PairQueue,
):
    """List the pairs of clusters in the subtrees that are left of longer walks."""
    for i in range(span[0] + wp.tid(), queue_stop(rest, span[1]), span[2]):
        cluster = wp.int32(rest.keys[i] >> wp.int64(32))
        start = wp.int32(rest.keys[i] & wp.int64(0x7FFFFFFF))
        box = load_node(tree.nodes, clusters[cluster])
        own = cluster_code_of(tree, clusters[cluster], box)
        stop = escape_of(load_node(tree.nodes, start))
        slot = walk_clusters(tree, own, box, start, stop, most, clusters_out)
        push_rest(tree, cluster, box, slot, stop, largest, rest_out)


def cluster_walks(
    tree: Any, clusters: wp.array, queues: PairQueues
) -> Iterator[tuple[wp.Kernel, int, list[Any]]]:
    """Kernel, count and arguments of the launches that list pairs of leaf clusters.

    Threads share long walks. A box as large as the mesh meets all of n leaves: its walk is cut
    into parts of n to the 2/3 leaves, and these into parts of n to the 1/3.
    """
    cube_root = tree.leaf_slots.shape[0] ** (1 / 3)
    parts = [max(LEAST_PART, int(cube_root**power)) for power in (2, 1)]
    found, (rest, late) = queues["clusters"], (queues[name] for name in REST_QUEUES)
    about = tree, clusters
    walks = [*about, LONG_WALK, parts[0], found, rest]
    yield list_clusters_kernel, clusters.shape[0], walks
    walks = [*about, LONG_WALK, parts[1], rest, found, late]
    yield resume_walks_kernel, UNKNOWN_COUNT, walks
    walks = [*about, UNKNOWN_COUNT, parts[1], late, found, rest]
    yield resume_walks_kernel, UNKNOWN_COUNT, walks


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
    """Add the pairs of leaf k of a cluster with the leaves of another to those found."""
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
                count += overlap_nodes(a, b)
    return count


@wp.kernel
def open_clusters_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    bits: wp.vec2i,
    by_leaf: wp.bool,
    pairs: PairQueue,
    # out
    candidates_out: PairQueue,
):
    """List the pairs of overlapping leaves in pairs of clusters, a thread per leaf of the first.

    Keys name faces, the lower one first, or with ``by_leaf`` the positions of the leaves.
    """
    found = wp.zeros(shape=(CLUSTER_PAIRS,), dtype=wp.int64)
    stop = team_stop(pairs, CLUSTER_SIZE, span[1])
    for start in range(span[0] + wp.tid(), stop, CLUSTER_SIZE * span[2]):
        count = wp.int32(0)
        for step in range(CLUSTER_SIZE):  # some at a time, since all threads share one counter
            i = start + step * span[2]
            if i < stop:
                pair = pairs.keys[i / CLUSTER_SIZE]
                count = open_clusters(tree, pair, i % CLUSTER_SIZE, bits, by_leaf, found, count)
        push_all_pairs(candidates_out, found, 0, count)
