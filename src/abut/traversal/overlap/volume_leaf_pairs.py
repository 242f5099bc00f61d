"""Candidate pairs of leaves of two trees in one frame by oriented boxes or swept spheres.

Each leaf walks the other tree from its root, or its own tree from what follows it. Axis-aligned
boxes are compared first.
"""

import warp as wp

from abut.bounds.relative_frame import translated_frame
from abut.bvh.layout import BvhView, escape_of, face_of, is_leaf, load_node, next_slot, root_of
from abut.core.pair_queue import PairQueue, pack_pair, push_all_pairs
from abut.traversal.overlap.kdop_frames import KdopFrames
from abut.traversal.overlap.leaf_cluster_pairs import overlap_nodes
from abut.traversal.overlap.node_pairs import finer_overlap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

HELD = wp.constant(16)  # pairs that a thread holds before it reserves room


@wp.kernel
def volume_leaf_pairs_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    own: wp.bool,
    bits: wp.vec2i,
    swapped: wp.bool,
    # out
    candidates_out: PairQueue,
):
    """List the leaves of b that overlap each leaf of a, with ``swapped`` as keys (b, a).

    ``own``: b is a, and each pair is listed once, the lower feature first.
    """
    frame = translated_frame(tree_a.origin, tree_b.origin, wp.float64(0.0))
    no_dops = KdopFrames()
    held = wp.zeros(shape=(HELD,), dtype=wp.int64)
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf_slot = tree_a.leaf_slots[k]
        leaf = load_node(tree_a.nodes, leaf_slot)
        feature = face_of(leaf)
        count = wp.int32(0)
        slot = root_of(tree_b)
        if own:
            slot = escape_of(leaf)
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = overlap_nodes(leaf, node) == 1
            if hit:
                hit = finer_overlap(frame, no_dops, 0, tree_a, leaf_slot, tree_b, slot)
            if hit and is_leaf(node):
                other = face_of(node)
                low = wp.int32(feature)
                high = wp.int32(other)
                if swapped or (own and other < feature):
                    low = other
                    high = feature
                held[count] = pack_pair(0, low, high, bits)
                count += 1
                if count == HELD:
                    push_all_pairs(candidates_out, held, 0, count)
                    count = wp.int32(0)
            slot = next_slot(node, hit)
        push_all_pairs(candidates_out, held, 0, count)
