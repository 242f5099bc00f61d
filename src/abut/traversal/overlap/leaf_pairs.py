"""Candidate pairs of leaves of two trees in one frame, by a walk per leaf; and all pairs."""

import warp as wp

from abut.bvh.layout import BvhView, face_of, is_leaf, load_node, next_slot, root_of
from abut.core.atomics import atomic_add_aggregated
from abut.core.pair_queue import PairQueue, pack_pair, store_pair
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.leaf_cluster_pairs import overlap_nodes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def leaf_pairs_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    bits: wp.vec2i,
    swapped: wp.bool,
    # out
    candidates_out: PairQueue,
):
    """List the leaves of b that overlap each leaf of a, with ``swapped`` as keys (b, a)."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf = load_node(tree_a.nodes, tree_a.leaf_slots[k])
        face = face_of(leaf)
        found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
        count = wp.int32(0)
        slot = root_of(tree_b)
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = overlap_nodes(leaf, node) == 1
            slot = next_slot(node, hit)
            if hit and is_leaf(node):
                count = note_found(
                    face_of(node), 0, face, found, count, bits, swapped, candidates_out
                )
        list_found(0, face, found, count, bits, swapped, candidates_out)


@wp.kernel
def every_pair_kernel(
    # in
    span: wp.vec3i,
    count_b: wp.int32,
    half: wp.bool,
    bits: wp.vec2i,
    # out
    candidates_out: PairQueue,
):
    """List all pairs of each item of a; with ``half`` only those with later items."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        start = wp.where(half, i + 1, 0)
        place = atomic_add_aggregated(candidates_out.count, wp.max(count_b - start, 0))
        for j in range(start, count_b):
            store_pair(candidates_out, place + wp.int64(j - start), pack_pair(0, i, j, bits))
