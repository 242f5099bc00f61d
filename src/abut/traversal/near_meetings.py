"""Faces of objects that come near each other, for many pairs of objects in one launch.

Walks of two trees as in near_pairs, without what makes single queries faster.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.batched import bvh_at, slice_of_item
from abut.bvh.layout import (
    escape_of,
    face_of,
    is_leaf,
    load_node,
    max_abs_coordinate,
    next_slot,
    root_of,
    subtree_slot,
)
from abut.core.pair_queue import PairQueue, queue_stop
from abut.operands.distance_operands import box_limit, test_near
from abut.operands.scene_pairs import Crowd, Meeting, frame_of, meeting_at, search_of
from abut.traversal.near_pairs import STACK, push_near
from abut.traversal.node_gaps import apart

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROUNDING = wp.constant(wp.float64(2.0**-43))  # of faces, relative to the reach of their meshes
DEEPEST = wp.constant(12)


@wp.func
def near_depth(face_count: wp.int32, leaves: wp.int32):
    """Into subtrees of which depth a tree is divided, of about so many leaves each."""
    depth = wp.int32(0)
    while depth < DEEPEST and (face_count >> (depth + 1)) >= leaves:
        depth += 1
    return depth


@wp.func
def slack_of(crowd: Crowd, meeting: Meeting):
    """What roundings can do to the distance of faces of two objects."""
    tree_a = bvh_at(crowd.forest, meeting.body_a)
    tree_b = bvh_at(crowd.forest, meeting.body_b)
    reach = max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
    return ROUNDING * (reach + max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b))))


@wp.kernel
def near_frame_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    distance: wp.float64,
    leaves: wp.int32,
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
            tree_a = bvh_at(crowd.forest, meeting.body_a)
            tree_b = bvh_at(crowd.forest, meeting.body_b)
            root_a = load_node(tree_a.nodes, root_of(tree_a))
            root_b = load_node(tree_b.nodes, root_of(tree_b))
            limit = box_limit(distance, slack_of(crowd, meeting), frame.stretch)
            frames_out[rank] = frame
            if not (apart(frame, root_a, root_b) > limit):
                items = 1 << near_depth(meeting.body_a.face_count, leaves)
                if meeting.own:
                    items = meeting.body_a.face_count
        items_out[rank] = items


@wp.kernel
def near_meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    frames: wp.array[RelativeFrame],
    starts: wp.array[wp.int32],
    distance: wp.float64,
    leaves: wp.int32,
    # out
    near_out: PairQueue,
):
    """Test all faces whose boxes are near, for each subtree of a, or each leaf of one object."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    total = wp.min(starts[starts.shape[0] - 1], span[1])
    for work in range(span[0] + wp.tid(), total, span[2]):
        rank = slice_of_item(starts, work)
        item = work - starts[rank]
        meeting = meeting_at(crowd, rank)
        search = search_of(crowd, meeting)
        tree_a = bvh_at(crowd.forest, meeting.body_a)
        tree_b = bvh_at(crowd.forest, meeting.body_b)
        frame = frames[rank]
        limit = box_limit(distance, slack_of(crowd, meeting), frame.stretch)
        if meeting.own:
            leaf = load_node(tree_a.nodes, tree_a.leaf_slots[item])
            slot = escape_of(leaf)
            while slot >= 0:
                node = load_node(tree_a.nodes, slot)
                near = not (apart(frame, leaf, node) > limit)
                slot = next_slot(node, near)
                if near and is_leaf(node):
                    test_near(search, rank, face_of(leaf), face_of(node), distance, near_out)
            continue
        depth = near_depth(meeting.body_a.face_count, leaves)
        start = subtree_slot(tree_a, item, depth)
        stack[0] = wp.vec2i(start, root_of(tree_b))
        held = wp.int32(start >= 0)
        while held > 0:
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
            a = load_node(tree_a.nodes, i)
            b = load_node(tree_b.nodes, j)
            if is_leaf(a) and is_leaf(b):
                test_near(search, rank, face_of(a), face_of(b), distance, near_out)
            else:
                held = push_near(stack, held, frame, limit, tree_a, i, a, tree_b, j, b)
