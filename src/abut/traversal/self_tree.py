"""Pairs of faces of one mesh whose boxes overlap, each once.

Leaves lie along the Morton curve; each walks the part of the tree behind its own rope, so that
every pair is found by its first leaf alone and no walk starts at the root (the half traversal of
ArborX).
"""

from typing import Any

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.hierarchy.tree import TreeView, first_of, is_leaf, load_node, rope_of
from abut.pairs import PairQueue, pack_pair, push_pair
from abut.runtime import launch
from abut.traversal.descend import Search, test_faces

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
        j = rope_of(leaf)
        while j >= 0:
            node = load_node(tree.nodes, j)
            overlap = overlap_aabb(leaf.low, leaf.high, node.low, node.high)
            if overlap and is_leaf(j):
                low = wp.min(first_of(leaf), first_of(node))
                high = wp.max(first_of(leaf), first_of(node))
                push_pair(candidates_out, pack_pair(0, low, high, bits))
            j = wp.where(overlap and not is_leaf(j), first_of(node), rope_of(node))


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


def list_self_candidates(tree: TreeView, leaf_count: int, bits: Any, queue: Any) -> None:
    """Put all pairs of faces of one mesh with overlapping boxes into a queue."""
    launch(self_list_kernel, leaf_count, [tree, bits, queue], tree.nodes.device)


def test_self_candidates(search: Any, tree: TreeView, leaf_count: int) -> None:
    """Test all pairs of faces of one mesh with overlapping boxes."""
    launch(self_test_kernel, leaf_count, [search, tree], tree.nodes.device, grain=512)
