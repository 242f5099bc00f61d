"""Faces of objects that meet, for many pairs of objects in one launch.

As for two meshes (two_trees, self_tree, groups): on the CPU both trees of a meeting are walked at
once and faces are tested on the spot; on CUDA every leaf of one object walks the tree of the
other and lists what it finds. Meetings differ in size: each is divided into items of work, and a
thread finds its meeting by where the items of each begin.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.batched import bvh_at, slice_of_item
from abut.bvh.layout import (
    escape_of,
    face_of,
    is_leaf,
    load_node,
    next_slot,
    root_of,
)
from abut.core.loads import load_uncached_int32
from abut.core.pair_queue import PairQueue, push_pair, queue_size, queue_stop, unpack_pair
from abut.operands.contact_operands import test_faces
from abut.operands.scene_pairs import Crowd, Meeting, frame_of, meeting_at, search_of
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.leaf_packets import PACKET
from abut.traversal.overlap.node_pairs import STACK, open_pair, overlap, push_by_overlap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SUBTREE = wp.constant(256)  # leaves of a subtree of a that is walked on its own, on the CPU
DEEPEST = wp.constant(8)
DESCEND = wp.constant(0)  # how a meeting is divided: into subtrees,
LIST = wp.constant(1)  # blocks of leaves,
BRUTE = wp.constant(2)  # faces
MOST_BLOCKS = wp.constant(1 << 26)  # beyond, trees are to be descended
MANY = wp.constant(64)  # meetings, which occupy a device by themselves
BLOCK = wp.constant(16)  # leaves that threads side by side walk for, on CUDA


@wp.func
def depth_of(face_count: wp.int32):
    """Into subtrees of which depth a tree is divided."""
    depth = wp.int32(0)
    while depth < DEEPEST and (face_count >> (depth + 1)) >= SUBTREE:
        depth += 1
    return depth


@wp.func
def lists_b(meeting: Meeting, meeting_count: wp.int32):
    """Whether the leaves of b walk a's tree: those of the smaller object do, which is less work.

    Unless meetings are so few that it takes the more numerous leaves to occupy the device.
    """
    smaller = meeting.body_b.face_count < meeting.body_a.face_count
    return smaller == (meeting_count >= MANY)


@wp.kernel
def frame_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    kind: wp.int32,
    # out
    frames_out: wp.array[RelativeFrame],
    items_out: wp.array[wp.int32],
):
    """The frame of each meeting, and into how many items it is divided: none for boxes apart."""
    stop = queue_stop(crowd.meetings, span[1])
    for rank in range(span[0] + wp.tid(), span[1], span[2]):
        items = wp.int32(0)
        if rank < stop:
            meeting = meeting_at(crowd, rank)
            frame = frame_of(crowd, meeting)
            count_a = meeting.body_a.face_count
            count_b = meeting.body_b.face_count
            tree_a = bvh_at(crowd.forest, meeting.body_a)
            tree_b = bvh_at(crowd.forest, meeting.body_b)
            root_a = load_node(tree_a.nodes, root_of(tree_a))
            root_b = load_node(tree_b.nodes, root_of(tree_b))
            if kind == BRUTE:
                items = count_a
            elif overlap(frame, root_a, root_b) == 1:
                frames_out[rank] = frame
                items = 1 << depth_of(count_a)
                if kind == LIST:
                    walkers = wp.where(lists_b(meeting, stop), count_b, count_a)
                    items = (walkers + BLOCK - 1) / BLOCK
                elif meeting.own:
                    items = (count_a + PACKET - 1) / PACKET
        items_out[rank] = items


@wp.kernel
def list_meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    frames: wp.array[RelativeFrame],
    starts: wp.array[wp.int32],
    # out
    candidates_out: PairQueue,
    skipped_out: PairQueue,
):
    """List the faces whose boxes overlap, for each leaf of one object: for CUDA.

    Leaves beyond the most that one launch can count are skipped, and so noted.
    """
    blocks = wp.min(starts[starts.shape[0] - 1], MOST_BLOCKS)
    if starts[starts.shape[0] - 1] > MOST_BLOCKS and wp.tid() == 0:
        push_pair(skipped_out, wp.int64(0))
    stop = wp.min(blocks * BLOCK, span[1])
    meeting_count = queue_size(crowd.meetings)
    for work in range(span[0] + wp.tid(), stop, span[2]):
        rank = slice_of_item(starts, work / BLOCK)
        meeting = meeting_at(crowd, rank)
        swapped = lists_b(meeting, meeting_count)
        tree_a = bvh_at(crowd.forest, meeting.body_a)
        tree_b = bvh_at(crowd.forest, meeting.body_b)
        if swapped:
            tree_a = bvh_at(crowd.forest, meeting.body_b)
            tree_b = bvh_at(crowd.forest, meeting.body_a)
        k = work - starts[rank] * BLOCK
        if k < tree_a.leaf_slots.shape[0]:
            frame = frames[rank]
            leaf = load_node(tree_a.nodes, tree_a.leaf_slots[k])
            face = face_of(leaf)
            found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
            count = wp.int32(0)
            slot = root_of(tree_b)
            if meeting.own:
                slot = escape_of(leaf)
            while slot >= 0:
                node = load_node(tree_b.nodes, slot)
                hit = wp.int32(0)
                if swapped:
                    hit = overlap(frame, node, leaf)
                else:
                    hit = overlap(frame, leaf, node)
                slot = next_slot(node, hit == 1)
                if hit == 1 and is_leaf(node):
                    count = note_found(
                        face_of(node), rank, face, found, count, crowd.bits, swapped, candidates_out
                    )
            list_found(rank, face, found, count, crowd.bits, swapped, candidates_out)


@wp.kernel
def first_meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    frames: wp.array[RelativeFrame],
    items: wp.array[wp.int32],
    hurry: wp.bool,
    # out
    colliding_out: wp.array[wp.int32],
):
    """Walk both trees of each meeting until two faces meet.

    With ``hurry`` also until any other meeting of the same copy of the scene has found some.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    for rank in range(span[0] + wp.tid(), queue_stop(crowd.meetings, span[1]), span[2]):
        held = wp.int32(items[rank] > 0)
        meeting = meeting_at(crowd, rank)
        search = search_of(crowd, meeting)
        tree_a = bvh_at(crowd.forest, meeting.body_a)
        tree_b = bvh_at(crowd.forest, meeting.body_b)
        frame = frames[rank]
        stack[0] = wp.vec2i(root_of(tree_a), root_of(tree_b))
        while held > 0:
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
            a = load_node(tree_a.nodes, i)
            b = load_node(tree_b.nodes, j)
            if hurry:
                if load_uncached_int32(colliding_out, meeting.copy) != 0:
                    held = 0
                    continue
            if is_leaf(a) and is_leaf(b):
                same = meeting.own and face_of(a) >= face_of(b)
                if not same:
                    if test_faces(search, rank, face_of(a), face_of(b)):
                        colliding_out[meeting.copy] = 1
                        held = 0
            else:
                pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
                held = push_by_overlap(stack, held, pairs)


@wp.kernel(cuda_max_registers=128)  # two blocks of 256 threads at a time
def test_meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    candidates: PairQueue,
):
    """Filter the pairs of faces of a queue."""
    for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
        row = unpack_pair(candidates.keys[i], crowd.bits)
        search = search_of(crowd, meeting_at(crowd, row[0]))
        test_faces(search, row[0], row[1], row[2])
