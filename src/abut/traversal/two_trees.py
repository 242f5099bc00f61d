"""Pairs of faces of two meshes whose boxes overlap.

Two ways, chosen by measurement (design/traversal.md): descend walks both trees at once and tests
faces on the spot, the least work, for the CPU and for batches of poses; list walks b's tree for
every leaf of a and leaves the tests to a later launch, the most parallel, for one query on CUDA.
"""

from functools import cache
from typing import NamedTuple

import warp as wp

from abut.atomics import reserve
from abut.bounds.relative import Relative, boundless_frame, shifted_frame, turned_frame
from abut.faces import Faces, pose_of
from abut.hierarchy.tree import (
    TreeView,
    escape_of,
    face_of,
    is_leaf,
    link_of,
    load_node,
    reach_of,
    root_of,
)
from abut.pairs import PairQueue, pack_pair, store_pair
from abut.search import Search, test_faces
from abut.traversal.dop_frames import DopFrames
from abut.traversal.node_pairs import farthest_first, finer_overlap, open_pair, overlap, start_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(192)  # a tree is at most 61 levels deep, and each leaves three pairs behind
SMALLEST = wp.constant(wp.float32(1.0e-38))  # a gap, whatever its lowest bits
NO_KEY = wp.constant(wp.int64(2**63 - 1))
LISTED = wp.constant(16)  # leaves gathered before room is asked for


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
    relative_out: wp.array[Relative],
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


@wp.func
def list_found(
    pose: wp.int32,
    face: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    bits: wp.vec2i,
    swapped: wp.bool,
    queue: PairQueue,
):
    """Put the pairs of a face of one mesh and those found of the other into a queue."""
    place = reserve(queue.count, count)
    for i in range(count):
        key = pack_pair(pose, face, found[i], bits)
        if swapped:
            key = pack_pair(pose, found[i], face, bits)
        store_pair(queue, place + wp.int64(i), key)


class Walks(NamedTuple):
    """Kernels that walk two trees."""

    descend: wp.Kernel
    first: wp.Kernel
    list: wp.Kernel


@cache
def walks(finer: bool) -> Walks:
    """The kernels for boxes alone, which have nothing else in registers, or for finer volumes."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def descend_kernel(
        # in
        span: wp.vec3i,
        search: Search,
        tree_a: TreeView,
        tree_b: TreeView,
        frames: wp.array[Relative],
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
                else:  # pairs go on the stack, and stay if they overlap
                    pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
                    for k in range(4):
                        stack[held] = wp.vec2i(pairs.i + (k >> 1), pairs.j + (k & 1))
                        held += wp.int32(not (pairs.gaps[k] > wp.float32(0.0)))

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def first_kernel(
        # in
        span: wp.vec3i,
        search: Search,
        tree_a: TreeView,
        tree_b: TreeView,
        frames: wp.array[Relative],
        dops: DopFrames,
    ):
        """Walk both trees for each pose until two faces meet.

        Of the pairs of children the one that overlaps most goes first.
        """
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
                    gaps = farthest_first(pairs.gaps)
                    for k in range(4):
                        place = wp.cast(gaps[k], wp.int32) & 3
                        stack[held] = wp.vec2i(pairs.i + (place >> 1), pairs.j + (place & 1))
                        held += wp.int32(not (gaps[k] > SMALLEST))

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def list_kernel(
        # in
        span: wp.vec3i,
        tree_a: TreeView,
        tree_b: TreeView,
        frames: wp.array[Relative],
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
                link = link_of(node)
                slot = wp.where(hit == 1 and link >= 0, 2 * link, escape_of(node))
                if hit == 1 and link < 0:
                    found[count] = -1 - link
                    count += 1
                    if count == LISTED:
                        list_found(pose, face_of(leaf), found, count, bits, swapped, candidates_out)
                        count = 0
            list_found(pose, face_of(leaf), found, count, bits, swapped, candidates_out)

    return Walks(descend_kernel, first_kernel, list_kernel)
