"""Pairs of faces of one mesh whose boxes overlap, each once.

Each leaf looks at what follows it in the tree alone: every pair is found by its first leaf, and
no walk starts at the root (the half traversal of ArborX). On CUDA a walk follows escapes, without
a stack, which would live in slow memory. On the CPU it climbs to the root and descends wherever
it comes up from the left, reading two children at a time and never branching on whether boxes
overlap, which no processor can predict. Measured in design/traversal.md.
"""

import warp as wp

from abut.atomics import reserve
from abut.bounds.aabb import overlap_aabb
from abut.faces import load_face
from abut.hierarchy.tree import (
    Node,
    TreeView,
    escape_of,
    face_of,
    link_of,
    load_node,
    root_of,
)
from abut.pairs import PairQueue, pack_pair, push_pair, queue_stop, store_pair
from abut.search import Search, test_corners

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(64)  # a tree is at most 30 + 31 deep
FOUND = wp.constant(32)  # room for leaves that are gathered before they are dealt with
FULL = wp.constant(30)  # a step finds two at most
LISTED = wp.constant(16)


@wp.func
def overlap_boxes(a: Node, b: Node):
    """1 when two nodes of one tree overlap, else 0."""
    return wp.int32(overlap_aabb(a.low, a.high, b.low, b.high))


@wp.func
def keep(
    node: Node,
    overlap: wp.int32,
    at: wp.vec2i,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Put an overlapping node on the stack, or a leaf among those found; ``at`` counts both."""
    link = link_of(node)
    leaf = wp.int32(link < 0)
    stack[at[0]] = link
    found[at[1]] = link
    return wp.vec2i(at[0] + (overlap & (1 - leaf)), at[1] + (overlap & leaf))


@wp.func
def climb(
    tree: TreeView,
    slot: wp.int32,
    leaf: Node,
    at: wp.vec2i,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Keep the right sibling of a slot if ``leaf`` overlaps it."""
    sibling = load_node(tree.nodes, slot | 1)
    overlap = (1 - (slot & 1)) & overlap_boxes(leaf, sibling)
    return keep(sibling, overlap, at, stack, found)


@wp.func
def open_top(
    tree: TreeView,
    leaf: Node,
    at: wp.vec2i,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Take a node off the stack and keep those of its children that ``leaf`` overlaps."""
    child = 2 * stack[at[0] - 1]
    left = load_node(tree.nodes, child)
    right = load_node(tree.nodes, child + 1)
    at = keep(left, overlap_boxes(leaf, left), wp.vec2i(at[0] - 1, at[1]), stack, found)
    return keep(right, overlap_boxes(leaf, right), at, stack, found)


@wp.func
def test_found(search: Search, face: wp.int32, found: wp.array[wp.int32], count: wp.int32):
    """Test a face against the leaves found."""
    corners = load_face(search.a, face, 0)
    for i in range(count):
        test_corners(search, 0, 0, face, corners, -1 - found[i])


@wp.func
def list_found(
    face: wp.int32, found: wp.array[wp.int32], count: wp.int32, bits: wp.vec2i, queue: PairQueue
):
    """Put the pairs (low, high) of a face and those found into a queue."""
    place = reserve(queue.count, count)
    for i in range(count):
        key = pack_pair(0, wp.min(face, found[i]), wp.max(face, found[i]), bits)
        store_pair(queue, place + wp.int64(i), key)


@wp.func
def list_walk(
    tree: TreeView,
    leaf: Node,
    start: wp.int32,
    stop: wp.int32,
    most: wp.int32,
    bits: wp.vec2i,
    queue: PairQueue,
):
    """List the leaves from ``start`` to ``stop`` that ``leaf`` overlaps, without a stack.

    Returns the slot to go on from: ``stop``, or another after ``most`` visits.
    """
    found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
    count = wp.int32(0)
    visits = wp.int32(0)
    slot = wp.int32(start)
    while slot != stop and visits < most:
        node = load_node(tree.nodes, slot)
        hit = overlap_boxes(leaf, node)
        link = link_of(node)
        slot = wp.where(hit == 1 and link >= 0, 2 * link, escape_of(node))
        visits += 1
        if hit == 1 and link < 0:
            found[count] = -1 - link
            count += 1
            if count == LISTED:
                list_found(face_of(leaf), found, count, bits, queue)
                count = 0
    list_found(face_of(leaf), found, count, bits, queue)  # threads of a warp together
    return slot


@wp.func
def leave_rest(
    tree: TreeView,
    leaf_slot: wp.int32,
    leaf: Node,
    start: wp.int32,
    stop: wp.int32,
    queue: PairQueue,
):
    """Put what is left of a walk into a queue: a chain of subtrees, which many can walk at once."""
    slot = wp.int32(start)
    while slot != stop:
        node = load_node(tree.nodes, slot)
        if overlap_boxes(leaf, node) == 1:
            push_pair(queue, (wp.int64(leaf_slot) << wp.int64(32)) | wp.int64(slot))
        slot = escape_of(node)


@wp.kernel
def self_list_kernel(
    # in
    span: wp.vec3i,
    tree: TreeView,
    bits: wp.vec2i,
    most: wp.int32,
    # out
    candidates_out: PairQueue,
    rest_out: PairQueue,
):
    """List the pairs of overlapping leaves; what is left after ``most`` visits goes to a queue."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf_slot = tree.leaf_slots[k]
        leaf = load_node(tree.nodes, leaf_slot)
        slot = list_walk(tree, leaf, escape_of(leaf), -1, most, bits, candidates_out)
        leave_rest(tree, leaf_slot, leaf, slot, -1, rest_out)


@wp.kernel
def self_rest_kernel(
    # in
    span: wp.vec3i,
    tree: TreeView,
    bits: wp.vec2i,
    most: wp.int32,
    rest: PairQueue,
    # out
    candidates_out: PairQueue,
    rest_out: PairQueue,
):
    """List the pairs of the subtrees that longer walks left."""
    for i in range(span[0] + wp.tid(), queue_stop(rest, span[1]), span[2]):
        leaf_slot = wp.int32(rest.keys[i] >> wp.int64(32))
        start = wp.int32(rest.keys[i] & wp.int64(0x7FFFFFFF))
        leaf = load_node(tree.nodes, leaf_slot)
        stop = escape_of(load_node(tree.nodes, start))
        slot = list_walk(tree, leaf, start, stop, most, bits, candidates_out)
        leave_rest(tree, leaf_slot, leaf, slot, stop, rest_out)


@wp.kernel
def self_test_kernel(
    # in
    span: wp.vec3i,
    search: Search,
    tree: TreeView,
):
    """Test the pairs of overlapping leaves on the spot."""
    root = root_of(tree)
    stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
    found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree.leaf_slots[k]
        leaf = load_node(tree.nodes, slot)
        at = wp.vec2i(0, 0)
        while slot != root or at[0] > 0:
            if at[0] > 0:
                at = open_top(tree, leaf, at, stack, found)
            else:
                at = climb(tree, slot, leaf, at, stack, found)
                slot = tree.split_slots[slot >> 1]
            if at[1] >= FULL or (slot == root and at[0] == 0):
                test_found(search, face_of(leaf), found, at[1])
                at = wp.vec2i(at[0], 0)
