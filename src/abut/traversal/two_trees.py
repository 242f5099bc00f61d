"""Pairs of faces of two meshes whose boxes overlap.

Two ways, chosen by measurement (design/traversal.md): descend walks both trees at once and tests
faces on the spot, the least work, for the CPU and for batches of poses; list walks b's tree for
every leaf of a and leaves the tests to a later launch, the most parallel, for one query on CUDA.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame, boundless_frame, shifted_frame, turned_frame
from abut.bvh.layout import (
    BvhView,
    face_of,
    is_leaf,
    load_node,
    next_slot,
    reach_of,
    root_of,
)
from abut.core.pair_queue import NO_KEY, PairQueue
from abut.operands.contact_operands import Search, test_faces
from abut.operands.posed_mesh import PosedMesh, pose_of
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.kdop_overlap import DopFrames
from abut.traversal.overlap.node_pairs import (
    STACK,
    finer_overlap,
    open_pair,
    overlap,
    push_by_overlap,
    push_overlapping,
    start_of,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def relative_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    tree_a: BvhView,
    tree_b: BvhView,
    # out
    relative_out: wp.array[RelativeFrame],
):
    """How b's frame sits in a's, for each pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        reach_a = reach_of(load_node(tree_a.nodes, root_of(tree_a)))
        reach_b = reach_of(load_node(tree_b.nodes, root_of(tree_b)))
        if a.pose_count == 0 and b.pose_count == 0:
            relative_out[i] = shifted_frame(tree_a.origin, tree_b.origin, reach_b)
        else:
            relative_out[i] = turned_frame(
                pose_of(a, i), pose_of(b, i), tree_a.origin, tree_b.origin, reach_a, reach_b
            )


@wp.kernel
def boundless_kernel(
    # in
    span: wp.vec3i,
    # out
    relative_out: wp.array[RelativeFrame],
):
    """Frames in which boxes decide nothing."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        relative_out[i] = boundless_frame()


@wp.kernel
def forget_kernel(
    # in
    span: wp.vec3i,
    # out
    counts_out: wp.array[wp.int64],
    bests_out: wp.array[wp.int64],
):
    """Empty the queues of a search for first pairs, which then knows of none."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        bests_out[i] = NO_KEY
        if i == 0:
            for k in range(counts_out.shape[0]):
                counts_out[k] = wp.int64(0)


@cache
def descend_walk(finer: bool) -> wp.Kernel:
    """The walk for boxes alone, which has nothing else in registers, or for finer volumes."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def descend_kernel(
        # in
        span: wp.vec3i,
        search: Search,
        tree_a: BvhView,
        tree_b: BvhView,
        frames: wp.array[RelativeFrame],
        dops: DopFrames,
        depth: wp.int32,
    ):
        """Walk both trees for each (pose, subtree of a) and test all faces whose boxes overlap."""
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
        for work in range(span[0] + wp.tid(), span[1], span[2]):
            pose = work >> depth
            frame = frames[pose]
            start = start_of(frame, tree_a, tree_b, work & ((1 << depth) - 1), depth)
            stack[0] = wp.vec2i(start, root_of(tree_b))
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                a = load_node(tree_a.nodes, i)
                b = load_node(tree_b.nodes, j)
                if wp.static(finer):
                    if not finer_overlap(frame, dops, pose, tree_a, i, tree_b, j):
                        continue
                if is_leaf(a) and is_leaf(b):
                    test_faces(search, pose, face_of(a), face_of(b))
                else:
                    pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
                    held = push_overlapping(stack, held, pairs)

    return descend_kernel


@cache
def first_walk(finer: bool) -> wp.Kernel:
    """Likewise, where one pair of each pose will do."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def first_kernel(
        # in
        span: wp.vec3i,
        search: Search,
        tree_a: BvhView,
        tree_b: BvhView,
        frames: wp.array[RelativeFrame],
        dops: DopFrames,
    ):
        """Walk both trees for each pose until two faces meet; what overlaps most goes first."""
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
        for pose in range(span[0] + wp.tid(), span[1], span[2]):
            frame = frames[pose]
            start = start_of(frame, tree_a, tree_b, 0, 0)
            stack[0] = wp.vec2i(start, root_of(tree_b))
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                a = load_node(tree_a.nodes, i)
                b = load_node(tree_b.nodes, j)
                if wp.static(finer):
                    if not finer_overlap(frame, dops, pose, tree_a, i, tree_b, j):
                        continue
                if is_leaf(a) and is_leaf(b):
                    if test_faces(search, pose, face_of(a), face_of(b)):
                        held = 0
                else:
                    pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
                    held = push_by_overlap(stack, held, pairs)

    return first_kernel


@cache
def list_walk(finer: bool) -> wp.Kernel:
    """Likewise, to list pairs for a later launch."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def list_kernel(
        # in
        span: wp.vec3i,
        tree_a: BvhView,
        tree_b: BvhView,
        frames: wp.array[RelativeFrame],
        dops: DopFrames,
        leaf_count: wp.int32,
        bits: wp.vec2i,
        swapped: wp.bool,
        # out
        candidates_out: PairQueue,
    ):
        """Walk b's tree, without a stack, for each (pose, leaf of a); ``swapped``: keys (b, a)."""
        for work in range(span[0] + wp.tid(), span[1], span[2]):
            pose = work / leaf_count
            leaf_slot = tree_a.leaf_slots[work - pose * leaf_count]
            leaf = load_node(tree_a.nodes, leaf_slot)
            face = face_of(leaf)
            frame = frames[pose]
            found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
            count = wp.int32(0)
            slot = root_of(tree_b)
            while slot >= 0:
                node = load_node(tree_b.nodes, slot)
                hit = overlap(frame, leaf, node)
                if wp.static(finer):
                    if hit == 1:
                        near = finer_overlap(frame, dops, pose, tree_a, leaf_slot, tree_b, slot)
                        hit = wp.int32(near)
                slot = next_slot(node, hit == 1)
                if hit == 1 and is_leaf(node):
                    count = note_found(
                        face_of(node), pose, face, found, count, bits, swapped, candidates_out
                    )
            list_found(pose, face, found, count, bits, swapped, candidates_out)

    return list_kernel
