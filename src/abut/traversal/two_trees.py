"""Pairs of faces of two meshes whose boxes overlap.

Two ways, chosen by measurement (design/traversal.md): descend walks both trees at once and tests
faces on the spot, the least work, for the CPU and for batches of poses; list walks b's tree for
every leaf of a and leaves the tests to a later launch, the most parallel, for one query on CUDA.
"""

import warp as wp

from abut.atomics import reserve
from abut.bounds.relative import Relative, shifted_frame, turned_frame
from abut.faces import Faces
from abut.hierarchy.tree import (
    Node,
    TreeView,
    face_of,
    is_leaf,
    link_of,
    load_node,
    root_of,
    subtree,
)
from abut.pairs import PairQueue, pack_pair, store_pair
from abut.search import Search
from abut.traversal.descend import STACK, descend, overlap_nodes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FOUND = wp.constant(16)  # leaves gathered before they are listed


@wp.func
def reach(node: Node):
    """Largest absolute coordinate of a box."""
    far = wp.max(wp.abs(node.low), wp.abs(node.high))
    return wp.float64(wp.max(wp.max(far[0], far[1]), far[2]))


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
        reach_a = reach(load_node(tree_a.nodes, root_of(tree_a)))
        reach_b = reach(load_node(tree_b.nodes, root_of(tree_b)))
        if a.pose_count == 0 and b.pose_count == 0:
            relative_out[i] = shifted_frame(tree_a.origin, tree_b.origin, reach_b)
        else:
            pose_a = wp.identity(n=4, dtype=wp.float64)
            pose_b = wp.identity(n=4, dtype=wp.float64)
            if a.pose_count > 0:
                pose_a = a.poses[wp.min(i, a.pose_count - 1)]
            if b.pose_count > 0:
                pose_b = b.poses[wp.min(i, b.pose_count - 1)]
            relative_out[i] = turned_frame(
                pose_a, pose_b, tree_a.origin, tree_b.origin, reach_a, reach_b
            )


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
    """Walk both trees for each (pose, subtree of a)."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work >> depth
        item = work & ((1 << depth) - 1)
        frame = frames[pose]
        root_a = root_of(tree_a)
        root_b = root_of(tree_b)
        if overlap_nodes(frame, load_node(tree_a.nodes, root_a), load_node(tree_b.nodes, root_b)):
            start = subtree(tree_a, item, depth)
            if start >= 0:
                descend(search, frame, tree_a.nodes, tree_b.nodes, start, root_b, pose, item)


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
    """Walk b's tree along its ropes for each (pose, leaf of a)."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / leaf_count
        leaf = load_node(tree_a.nodes, tree_a.leaf_slots[work - pose * leaf_count])
        frame = frames[pose]
        found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
        count = wp.int32(0)
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack[0] = root_of(tree_b)
        held = wp.int32(1)
        while held > 0:
            held -= 1
            node = load_node(tree_b.nodes, stack[held])
            if overlap_nodes(frame, leaf, node):
                if is_leaf(node):
                    found[count] = face_of(node)
                    count += 1
                else:
                    stack[held] = 2 * link_of(node) + 1
                    stack[held + 1] = 2 * link_of(node)
                    held += 2
            if count == FOUND or held == 0:
                slot = reserve(candidates_out.count, count)
                for i in range(count):
                    key = pack_pair(pose, face_of(leaf), found[i], bits)
                    store_pair(candidates_out, slot + wp.int64(i), key)
                count = 0
