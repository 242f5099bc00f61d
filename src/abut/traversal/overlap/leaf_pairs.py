"""Pairs of leaves of two trees about one origin whose boxes overlap: for CUDA.

Each leaf of one tree walks the other, without a stack. For the CPU see groups.
"""

import warp as wp

from abut.bvh.layout import BvhView, face_of, is_leaf, load_node, next_slot, root_of
from abut.core.pair_queue import PairQueue
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.leaf_cluster_pairs import overlap_boxes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def list_leaves_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    bits: wp.vec2i,
    swapped: wp.bool,
    # out
    candidates_out: PairQueue,
):
    """List the leaves of b that overlap each leaf of a; ``swapped``: as keys (b, a)."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf = load_node(tree_a.nodes, tree_a.leaf_slots[k])
        face = face_of(leaf)
        found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
        count = wp.int32(0)
        slot = root_of(tree_b)
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = overlap_boxes(leaf, node) == 1
            slot = next_slot(node, hit)
            if hit and is_leaf(node):
                count = note_found(
                    face_of(node), 0, face, found, count, bits, swapped, candidates_out
                )
        list_found(0, face, found, count, bits, swapped, candidates_out)
