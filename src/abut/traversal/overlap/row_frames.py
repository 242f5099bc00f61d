"""Rows of posed pairs before a search: relative frames, and how much work each row is."""

from functools import cache
from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame, unbounded_frame
from abut.bvh.layout import load_node, root_of
from abut.core.pair_queue import NO_KEY
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.posed_pairs import (
    WorkItems,
    frame_of,
    pair_at,
    pair_stop,
    row_end,
    subtree_depth,
)
from abut.traversal.overlap.leaf_packets import PACKET
from abut.traversal.overlap.node_pairs import overlap_node_boxes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


# What an item of work is, for rows whose boxes overlap.
SUBTREES = wp.constant(0)  # a subtree of a; of a mesh against itself, a packet of leaves
LEAF_BLOCKS = wp.constant(1)  # a block of leaves of one mesh
FACES = wp.constant(2)  # a face of a, whether boxes overlap or not
LEAF_BLOCK = wp.constant(16)  # leaves whose walks neighbouring CUDA threads make
MANY_ROWS = wp.constant(64)  # that occupy a device by themselves


@wp.func
def walks_from_b(face_count_a: wp.int32, face_count_b: wp.int32, row_count: wp.int32):
    """Whether the leaves of b walk the tree of a, rather than the other way round.

    The leaves of the smaller mesh do, which is less work; unless rows are so few that it takes
    the more numerous leaves to occupy the device.
    """
    return (face_count_b < face_count_a) == (row_count >= MANY_ROWS)


@cache
def frames_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel that prepares rows, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def frames_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        kind: wp.int32,
        items: WorkItems,
        boundless: wp.bool,
        # out
        frames_out: wp.array[RelativeFrame],
        items_out: wp.array[wp.int32],
    ):
        """The relative frame of each row, and its items of work: none for boxes apart."""
        stop = pair_stop(pairs, span[1])
        for rank in range(span[0] + wp.tid(), row_end(stop, span[1]), span[2]):
            count = wp.int32(0)
            if rank < stop:
                pair = pair_at(pairs, rank)
                frame = frame_of(pair)
                if boundless:
                    frame = unbounded_frame()
                if items_out.shape[0] == 0:
                    frames_out[rank] = frame
                else:
                    count_a = pair.a.faces.shape[0]
                    root_a = load_node(pair.tree_a.nodes, root_of(pair.tree_a))
                    root_b = load_node(pair.tree_b.nodes, root_of(pair.tree_b))
                    if kind == FACES:
                        count = count_a
                    elif overlap_node_boxes(frame, root_a, root_b) == 1:
                        count = 1 << subtree_depth(items, count_a)
                        if kind == LEAF_BLOCKS:
                            count_b = pair.b.faces.shape[0]
                            from_b = walks_from_b(count_a, count_b, stop)
                            leaves = wp.where(from_b, count_b, count_a)
                            count = (leaves + LEAF_BLOCK - 1) / LEAF_BLOCK
                        elif pair.sharing != SHARED_NONE:
                            count = (count_a + PACKET - 1) / PACKET
                        frames_out[rank] = frame  # of rows that are apart nothing reads it
            if items_out.shape[0] > 0:
                items_out[rank] = count

    return frames_kernel


def frames_alone(pairs: Any, frames: wp.array) -> list[Any]:
    """Arguments of a frames kernel that counts no items of work."""
    nothing = wp.empty(0, dtype=wp.int32, device=frames.device)
    return [pairs, SUBTREES, WorkItems(), False, frames, nothing]


@wp.kernel
def clear_first_kernel(
    # in
    span: wp.vec3i,
    # out
    counts_out: wp.array[wp.int64],
    best_out: wp.array[wp.int64],
):
    """Empty the queues of a search for one pair of each row, and the pairs found."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        best_out[i] = NO_KEY
        if i == 0:
            for k in range(counts_out.shape[0]):
                counts_out[k] = wp.int64(0)
