"""Pairs of faces of two meshes whose boxes overlap.

Two ways, chosen by measurement (design/traversal.md): descend walks both trees at once and tests
faces on the spot, the least work, for the CPU and for batches of poses; list walks b's tree for
every leaf of a and leaves the tests to a later launch, the most parallel, for one query on CUDA.
"""

import warp as wp

from abut.bounds.relative import Relative, shifted_frame, turned_frame
from abut.faces import Faces
from abut.hierarchy.tree import (
    Node,
    TreeView,
    first_of,
    is_leaf,
    load_node,
    rope_of,
    subtree,
)
from abut.pairs import BLOCK, PairQueue, pack_pair, push_block
from abut.search import Search
from abut.traversal.descend import descend, overlap_nodes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


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
        reach_a = reach(load_node(tree_a.nodes, tree_a.root[0]))
        reach_b = reach(load_node(tree_b.nodes, tree_b.root[0]))
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
        root_a = tree_a.root[0]
        root_b = tree_b.root[0]
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
        node_a = load_node(tree_a.nodes, 2 * (work - pose * leaf_count))
        frame = frames[pose]
        block = wp.zeros(shape=(BLOCK,), dtype=wp.int64)
        held = wp.int32(0)
        j = tree_b.root[0]
        while j >= 0:
            node_b = load_node(tree_b.nodes, j)
            overlap = overlap_nodes(frame, node_a, node_b)
            if overlap and is_leaf(j):
                block[held] = pack_pair(pose, first_of(node_a), first_of(node_b), bits)
                held += 1
                if held == BLOCK:
                    push_block(candidates_out, block, held)
                    held = 0
            j = wp.where(overlap and not is_leaf(j), first_of(node_b), rope_of(node_b))
        push_block(candidates_out, block, held)
