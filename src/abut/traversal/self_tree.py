"""Pairs of faces of one mesh whose boxes overlap, each once.

Leaves lie along the Morton curve; each walks the part of the tree behind its own rope, so that
every pair is found by its first leaf alone and no walk starts at the root (the half traversal of
ArborX).
"""

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.hierarchy.tree import TreeView, first_of, is_leaf, load_node, rope_of
from abut.pairs import BLOCK, PairQueue, pack_pair, push_block
from abut.search import Search, test_faces

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def self_list_kernel(
    # in
    span: wp.vec3i,
    tree: TreeView,
    bits: wp.vec2i,
    # out
    candidates_out: PairQueue,
):
    """List the pairs (low, high) of overlapping leaves."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf = load_node(tree.nodes, 2 * k)
        block = wp.zeros(shape=(BLOCK,), dtype=wp.int64)
        held = wp.int32(0)
        j = rope_of(leaf)
        while j >= 0:
            node = load_node(tree.nodes, j)
            overlap = overlap_aabb(leaf.low, leaf.high, node.low, node.high)
            if overlap and is_leaf(j):
                low = wp.min(first_of(leaf), first_of(node))
                high = wp.max(first_of(leaf), first_of(node))
                block[held] = pack_pair(0, low, high, bits)
                held += 1
                if held == BLOCK:
                    push_block(candidates_out, block, held)
                    held = 0
            j = wp.where(overlap and not is_leaf(j), first_of(node), rope_of(node))
        push_block(candidates_out, block, held)


@wp.kernel
def self_test_kernel(
    # in
    span: wp.vec3i,
    search: Search,
    tree: TreeView,
):
    """Test the pairs of overlapping leaves on the spot."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf = load_node(tree.nodes, 2 * k)
        j = rope_of(leaf)
        while j >= 0:
            node = load_node(tree.nodes, j)
            overlap = overlap_aabb(leaf.low, leaf.high, node.low, node.high)
            if overlap and is_leaf(j):
                test_faces(search, 0, 0, first_of(leaf), first_of(node))
            j = wp.where(overlap and not is_leaf(j), first_of(node), rope_of(node))
