"""Pairs of faces of two meshes whose boxes overlap.

Two ways, chosen by measurement (design/traversal.md): descend walks both trees at once and tests
faces on the spot, the least work, for the CPU and for batches of poses; list walks b's tree for
every leaf of a and leaves the tests to a later launch, the most parallel, for one query on CUDA.
"""

import warp as wp

from abut.atomics import load_wide, reserve
from abut.bounds.obb import overlap_obb, unpack_obb
from abut.bounds.relative import (
    Relative,
    overlap_across,
    separation_across,
    shifted_frame,
    turned_frame,
)
from abut.faces import Faces, pose_of
from abut.hierarchy.tree import (
    Node,
    TreeView,
    escape_of,
    face_of,
    is_leaf,
    link_of,
    load_node,
    reach_of,
    root_of,
    subtree,
)
from abut.pairs import PairQueue, pack_pair, store_pair
from abut.search import Search, test_faces

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(128)  # a tree is at most 30 + 31 deep, and each level leaves one pair behind
LISTED = wp.constant(16)  # leaves gathered before room is asked for


@wp.kernel
def relative_kernel(
    # in
    span: wp.vec3i,
    a: Faces,
    b: Faces,
    tree_a: TreeView,
    tree_b: TreeView,
    # out
    relative_out: wp.array[Relative],
):
    """How b's frame sits in a's, for each pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        reach_a = reach_of(load_node(tree_a.nodes, root_of(tree_a)))
        reach_b = reach_of(load_node(tree_b.nodes, root_of(tree_b)))
        if a.pose_count == 0 and b.pose_count == 0:
            relative_out[i] = shifted_frame(tree_a.origin, tree_b.origin, reach_b)
        else:
            relative_out[i] = turned_frame(
                pose_of(a, i), pose_of(b, i), tree_a.origin, tree_b.origin, reach_a, reach_b
            )


@wp.func
def separation(frame: Relative, a: Node, b: Node):
    """How far apart two nodes are; not above 0 where they may overlap."""
    return separation_across(frame, a.low, a.high, b.low, b.high)


@wp.func
def load_obb(tree: TreeView, slot: wp.int32):
    """Read an oriented box, 48 bytes."""
    return unpack_obb(
        load_wide(tree.obbs, 3 * slot),
        load_wide(tree.obbs, 3 * slot + 1),
        load_wide(tree.obbs, 3 * slot + 2),
    )


@wp.func
def oriented_overlap(frame: Relative, tree_a: TreeView, i: wp.int32, tree_b: TreeView, j: wp.int32):
    """May the oriented boxes of two slots overlap? True where the trees have none."""
    if tree_a.obbs.shape[0] == 0:
        return True
    return overlap_obb(frame, load_obb(tree_a, i), load_obb(tree_b, j))


@wp.func
def overlap(frame: Relative, a: Node, b: Node):
    """1 when the boxes of two nodes may overlap, else 0."""
    return wp.int32(overlap_across(frame, a.low, a.high, b.low, b.high))


@wp.func
def half_area(node: Node):
    """Half the surface of a box."""
    side = node.high - node.low
    return side[0] * side[1] + side[1] * side[2] + side[2] * side[0]


@wp.func
def opens_first(a: Node, b: Node):
    """Whether of two nodes, not both leaves, the first is to be opened: the larger inner one."""
    return is_leaf(b) or (not is_leaf(a) and half_area(a) > half_area(b))


@wp.func
def start_of(frame: Relative, tree_a: TreeView, tree_b: TreeView, item: wp.int32, depth: wp.int32):
    """Slot of a's subtree ``item``; -1 where there is none or b is apart from it."""
    slot = subtree(tree_a, item, depth)
    if slot >= 0:
        root = load_node(tree_b.nodes, root_of(tree_b))
        if overlap(frame, load_node(tree_a.nodes, slot), root) == 0:
            slot = -1
    return slot


@wp.kernel
def descend_kernel(
    # in
    span: wp.vec3i,
    search: Search,
    tree_a: TreeView,
    tree_b: TreeView,
    frames: wp.array[Relative],
    depth: wp.int32,
):
    """Walk both trees for each (pose, subtree of a) and test all faces whose boxes overlap."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work >> depth
        frame = frames[pose]
        start = start_of(frame, tree_a, tree_b, work & ((1 << depth) - 1), depth)
        stack[0] = wp.vec2i(start, root_of(tree_b))
        held = wp.int32(start >= 0)
        while held > 0:
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
            a = load_node(tree_a.nodes, i)
            b = load_node(tree_b.nodes, j)
            if not oriented_overlap(frame, tree_a, i, tree_b, j):
                continue
            if is_leaf(a) and is_leaf(b):
                test_faces(search, pose, 0, face_of(a), face_of(b))
            elif opens_first(a, b):  # children go on the stack, and stay if they overlap
                child = 2 * link_of(a)
                for k in range(2):
                    stack[held] = wp.vec2i(child + k, j)
                    node = load_node(tree_a.nodes, child + k)
                    held += overlap(frame, node, b)
            else:
                child = 2 * link_of(b)
                for k in range(2):
                    stack[held] = wp.vec2i(i, child + k)
                    node = load_node(tree_b.nodes, child + k)
                    held += overlap(frame, a, node)


@wp.kernel
def first_kernel(
    # in
    span: wp.vec3i,
    search: Search,
    tree_a: TreeView,
    tree_b: TreeView,
    frames: wp.array[Relative],
    depth: wp.int32,
):
    """Walk both trees for each (pose, subtree of a) until two faces meet.

    Of two children the one that overlaps more goes first. What is found does not depend on the
    order of threads: the lowest item with an answer gives it.
    """
    item_shift = wp.int64(search.bits[0] + search.bits[1])
    zero = wp.float32(0.0)
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work >> depth
        item = work & ((1 << depth) - 1)
        if (search.best[pose] >> item_shift) < wp.int64(item):
            continue
        frame = frames[pose]
        start = start_of(frame, tree_a, tree_b, item, depth)
        stack[0] = wp.vec2i(start, root_of(tree_b))
        held = wp.int32(start >= 0)
        while held > 0:
            if (search.best[pose] >> item_shift) < wp.int64(item):
                break
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
            a = load_node(tree_a.nodes, i)
            b = load_node(tree_b.nodes, j)
            if not oriented_overlap(frame, tree_a, i, tree_b, j):
                continue
            if is_leaf(a) and is_leaf(b):
                if test_faces(search, pose, item, face_of(a), face_of(b)):
                    held = 0
            else:
                left = wp.vec2i(i, j)
                right = wp.vec2i(i, j)
                gap_left = zero
                gap_right = zero
                if opens_first(a, b):
                    i = 2 * link_of(a)
                    gap_left = separation(frame, load_node(tree_a.nodes, i), b)
                    gap_right = separation(frame, load_node(tree_a.nodes, i + 1), b)
                    left = wp.vec2i(i, j)
                    right = wp.vec2i(i + 1, j)
                else:
                    j = 2 * link_of(b)
                    gap_left = separation(frame, a, load_node(tree_b.nodes, j))
                    gap_right = separation(frame, a, load_node(tree_b.nodes, j + 1))
                    left = wp.vec2i(i, j)
                    right = wp.vec2i(i, j + 1)
                near = wp.where(gap_left <= gap_right, left, right)
                far = wp.where(gap_left <= gap_right, right, left)
                stack[held] = far
                held += wp.int32(not (wp.max(gap_left, gap_right) > zero))
                stack[held] = near
                held += wp.int32(not (wp.min(gap_left, gap_right) > zero))


@wp.func
def list_found(
    pose: wp.int32,
    face: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    bits: wp.vec2i,
    queue: PairQueue,
):
    """Put the pairs of a face of a and those found of b into a queue."""
    place = reserve(queue.count, count)
    for i in range(count):
        store_pair(queue, place + wp.int64(i), pack_pair(pose, face, found[i], bits))


@wp.kernel
def list_kernel(
    # in
    span: wp.vec3i,
    tree_a: TreeView,
    tree_b: TreeView,
    frames: wp.array[Relative],
    leaf_count: wp.int32,
    bits: wp.vec2i,
    # out
    candidates_out: PairQueue,
):
    """Walk b's tree, without a stack, for each (pose, leaf of a)."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / leaf_count
        leaf_slot = tree_a.leaf_slots[work - pose * leaf_count]
        leaf = load_node(tree_a.nodes, leaf_slot)
        frame = frames[pose]
        found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
        count = wp.int32(0)
        slot = root_of(tree_b)
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = overlap(frame, leaf, node)
            if hit == 1:
                hit = wp.int32(oriented_overlap(frame, tree_a, leaf_slot, tree_b, slot))
            link = link_of(node)
            slot = wp.where(hit == 1 and link >= 0, 2 * link, escape_of(node))
            if hit == 1 and link < 0:
                found[count] = -1 - link
                count += 1
                if count == LISTED:
                    list_found(pose, face_of(leaf), found, count, bits, candidates_out)
                    count = 0
        list_found(pose, face_of(leaf), found, count, bits, candidates_out)
