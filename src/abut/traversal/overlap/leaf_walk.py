"""Walk the hierarchy of one mesh for each leaf of the other and list what overlaps.

The most parallel strategy: for one query, or few, on CUDA. Faces are tested by a later stage.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import escape_of, face_of, is_leaf, load_node, next_slot, root_of
from abut.core.pair_queue import PairQueue, push_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.posed_pairs import WorkItems, item_stop, pair_at, pair_stop, row_and_item
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.kdop_frames import KdopFrames
from abut.traversal.overlap.node_pairs import finer_overlap, overlap_node_boxes
from abut.traversal.overlap.row_frames import LEAF_BLOCK, walks_from_b

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_BLOCKS = wp.constant(1 << 26)  # of leaves in one launch; beyond, trees are to be descended


@cache
def leaf_walk_kernel_for(pairs_type: type, finer: bool, own: bool) -> wp.Kernel:
    """The kernel that lists overlapping faces, for a type of posed pairs (see descend)."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def leaf_walk_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        items: WorkItems,
        dops: KdopFrames,
        bits: wp.vec2i,
        # out
        candidates_out: PairQueue,
        skipped_out: PairQueue,
    ):
        """List the faces whose volumes overlap, for each leaf of one mesh of each row.

        Leaves beyond the most that one launch can count are skipped; ``skipped_out`` says so.
        """
        blocks = item_stop(items, (span[1] - 1) / LEAF_BLOCK + 1)
        if blocks > MOST_BLOCKS:
            blocks = MOST_BLOCKS
            if wp.tid() == 0:
                push_pair(skipped_out, wp.int64(0))
        row_count = pair_stop(pairs, wp.int32(0x7FFFFFFF))
        stop = wp.min(blocks * LEAF_BLOCK, span[1])  # a slice may end within a block
        for work in range(span[0] + wp.tid(), stop, span[2]):
            at = row_and_item(items, work / LEAF_BLOCK)
            rank = at[0]
            pair = pair_at(pairs, rank)
            from_b = walks_from_b(pair.a.faces.shape[0], pair.b.faces.shape[0], row_count)
            walker = pair.tree_a
            walked = pair.tree_b
            if from_b:
                walker = pair.tree_b
                walked = pair.tree_a
            k = at[1] * LEAF_BLOCK + work % LEAF_BLOCK
            if k < walker.leaf_slots.shape[0]:
                frame = frames[rank]
                leaf_slot = walker.leaf_slots[k]
                leaf = load_node(walker.nodes, leaf_slot)
                face = face_of(leaf)
                found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
                count = wp.int32(0)
                slot = root_of(walked)
                if wp.static(own):
                    if pair.sharing != SHARED_NONE:
                        slot = escape_of(leaf)
                while slot >= 0:
                    node = load_node(walked.nodes, slot)
                    hit = wp.int32(0)
                    if from_b:
                        hit = overlap_node_boxes(frame, node, leaf)
                    else:
                        hit = overlap_node_boxes(frame, leaf, node)
                    if wp.static(finer):
                        if hit == 1:
                            i = wp.where(from_b, slot, leaf_slot)
                            j = wp.where(from_b, leaf_slot, slot)
                            near = finer_overlap(frame, dops, rank, pair.tree_a, i, pair.tree_b, j)
                            hit = wp.int32(near)
                    slot = next_slot(node, hit == 1)
                    if hit == 1 and is_leaf(node):
                        count = note_found(
                            face_of(node), rank, face, found, count, bits, from_b, candidates_out
                        )
                list_found(rank, face, found, count, bits, from_b, candidates_out)

    return leaf_walk_kernel
