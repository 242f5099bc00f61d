"""Walk both hierarchies of each posed pair at once and test faces where they overlap.

The least work of all strategies: for the CPU, for batches of poses and for many object pairs.
"""

from functools import cache
from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame, unbounded_frame
from abut.bvh.layout import face_of, is_leaf, load_node, root_of
from abut.core.pair_queue import NO_KEY
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.contact_queues import ContactQueues, test_unshared
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import (
    PosedPair,
    WorkItems,
    frame_of,
    item_stop,
    pair_at,
    pair_stop,
    row_and_item,
    row_end,
    subtree_depth,
)
from abut.traversal.overlap.kdop_frames import KdopFrames
from abut.traversal.overlap.leaf_packets import FOUND, PACKET, test_own_packet
from abut.traversal.overlap.leaf_packets import STACK as PACKET_STACK
from abut.traversal.overlap.node_pairs import (
    STACK,
    finer_overlap,
    open_pair,
    overlap,
    push_overlapping,
    start_of,
)

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
                    elif overlap(frame, root_a, root_b) == 1:
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


@cache
def descend_kernel_for(pairs_type: type, finer: bool, own: bool) -> wp.Kernel:
    """The kernel that finds all pairs of a type of posed pairs.

    Args:
        pairs_type: MeshPairs or ScenePairs.
        finer: Trees have volumes beside their boxes.
        own: Rows may pair a mesh with itself.
    """

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def descend_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        items: WorkItems,
        dops: KdopFrames,
        # out
        queues_out: ContactQueues,
    ):
        """Test all faces whose volumes overlap, for each item of work."""
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
        if wp.static(own):
            packet_stack = wp.zeros(shape=(PACKET_STACK,), dtype=wp.int32)
            found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
        pair = PosedPair()
        rank = wp.int32(-1)
        for work in range(span[0] + wp.tid(), item_stop(items, span[1]), span[2]):
            at = row_and_item(items, work)
            if at[0] != rank:  # a row is large: items of one row in sequence read it once
                rank = at[0]
                pair = pair_at(pairs, rank)
            if wp.static(own):
                if pair.sharing != SHARED_NONE:
                    test_own_packet(
                        pair.a,
                        pair.tree_a,
                        pair.sharing,
                        queues_out,
                        rank,
                        at[1],
                        packet_stack,
                        found,
                    )
                    continue
            frame = frames[rank]
            depth = subtree_depth(items, pair.a.faces.shape[0])
            start = start_of(frame, pair.tree_a, pair.tree_b, at[1], depth)
            stack[0] = wp.vec2i(start, root_of(pair.tree_b))
            held = wp.int32(start >= 0)
            loaded = wp.int32(-1)
            corners_a = wp.mat33d()
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                a = load_node(pair.tree_a.nodes, i)
                b = load_node(pair.tree_b.nodes, j)
                if wp.static(finer):
                    if not finer_overlap(frame, dops, rank, pair.tree_a, i, pair.tree_b, j):
                        continue
                if is_leaf(a) and is_leaf(b):
                    if loaded != i:
                        loaded = i
                        corners_a = load_face(pair.a, face_of(a), pair.pose)
                    test_unshared(
                        pair.b, pair.pose, queues_out, rank, face_of(a), corners_a, face_of(b)
                    )
                else:
                    opened = open_pair(frame, pair.tree_a, i, a, pair.tree_b, j, b)
                    held = push_overlapping(stack, held, opened)

    return descend_kernel


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
