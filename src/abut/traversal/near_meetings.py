"""Faces of objects that come near each other, for many pairs of objects in one launch.

Walks of two trees as in near_pairs and nearest, without what makes single queries faster.
"""

import warp as wp

from abut.approach import (
    FACE_MARGIN,
    box_limit,
    from_bits,
    gap_of,
    no_key,
    test_near,
    to_bits,
)
from abut.bounds.relative import Relative
from abut.crowd import Crowd, Meeting, frame_of, meeting_at, search_of
from abut.faces import load_face
from abut.hierarchy.forest import part_of, tree_of
from abut.hierarchy.tree import (
    escape_of,
    face_of,
    is_leaf,
    link_of,
    load_node,
    reach_of,
    root_of,
    subtree,
)
from abut.pairs import PairQueue, pack_pair, queue_stop
from abut.traversal.nearest import apart, clear_of, meets
from abut.traversal.two_trees import opens_first

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(128)
ROUNDING = wp.constant(wp.float64(2.0**-43))  # of faces, relative to the reach of their meshes
MET = wp.constant(wp.int64(-1))
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
    tree_a = tree_of(crowd.forest, meeting.body_a)
    tree_b = tree_of(crowd.forest, meeting.body_b)
    reach = reach_of(load_node(tree_a.nodes, root_of(tree_a)))
    return ROUNDING * (reach + reach_of(load_node(tree_b.nodes, root_of(tree_b))))


@wp.kernel
def near_frame_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    distance: wp.float64,
    leaves: wp.int32,
    # out
    frames_out: wp.array[Relative],
    items_out: wp.array[wp.int32],
):
    """The frame of each meeting, and into how many items it is divided: none for boxes apart."""
    stop = queue_stop(crowd.meetings, span[1])
    for rank in range(span[0] + wp.tid(), span[1], span[2]):
        items = wp.int32(0)
        if rank < stop:
            meeting = meeting_at(crowd, rank)
            frame = frame_of(crowd, meeting)
            tree_a = tree_of(crowd.forest, meeting.body_a)
            tree_b = tree_of(crowd.forest, meeting.body_b)
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
    frames: wp.array[Relative],
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
        rank = part_of(starts, work)
        item = work - starts[rank]
        meeting = meeting_at(crowd, rank)
        search = search_of(crowd, meeting)
        tree_a = tree_of(crowd.forest, meeting.body_a)
        tree_b = tree_of(crowd.forest, meeting.body_b)
        frame = frames[rank]
        limit = box_limit(distance, slack_of(crowd, meeting), frame.stretch)
        if meeting.own:
            leaf = load_node(tree_a.nodes, tree_a.leaf_slots[item])
            slot = escape_of(leaf)
            while slot >= 0:
                node = load_node(tree_a.nodes, slot)
                link = link_of(node)
                near = not (apart(frame, leaf, node) > limit)
                slot = wp.where(near and link >= 0, 2 * link, escape_of(node))
                if near and link < 0:
                    test_near(search, rank, face_of(leaf), -1 - link, distance, near_out)
            continue
        depth = near_depth(meeting.body_a.face_count, leaves)
        start = subtree(tree_a, item, depth)
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
                in_a = opens_first(a, b)
                child = 2 * wp.where(in_a, link_of(a), link_of(b))
                for k in range(2):
                    m = wp.where(in_a, child + k, i)
                    n = wp.where(in_a, j, child + k)
                    stack[held] = wp.vec2i(m, n)
                    gap = apart(frame, load_node(tree_a.nodes, m), load_node(tree_b.nodes, n))
                    held += wp.int32(not (gap > limit))


@wp.kernel
def nearest_meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    frames: wp.array[Relative],
    # out
    bound_out: wp.array[wp.int64],
    key_out: wp.array[wp.int64],
):
    """The smallest distance of each meeting, at most its bound, and the lowest pair at it.

    Distances are written as bits. The key is MET where faces meet, NO_KEY beyond the bound.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec3i)
    for rank in range(span[0] + wp.tid(), queue_stop(crowd.meetings, span[1]), span[2]):
        meeting = meeting_at(crowd, rank)
        search = search_of(crowd, meeting)
        tree_a = tree_of(crowd.forest, meeting.body_a)
        tree_b = tree_of(crowd.forest, meeting.body_b)
        frame = frames[rank]
        slack = slack_of(crowd, meeting)
        best = from_bits(bound_out[rank])
        key = no_key()
        way = wp.vec3d()
        limit = box_limit(best, slack, frame.stretch)
        stack[0] = wp.vec3i(root_of(tree_a), root_of(tree_b), 0)
        held = wp.int32(1)
        while held > 0:
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
            gap = wp.cast(stack[held][2], wp.float32)
            if gap > limit:
                continue
            a = load_node(tree_a.nodes, i)
            b = load_node(tree_b.nodes, j)
            if is_leaf(a) and is_leaf(b):
                face_a = face_of(a)
                face_b = face_of(b)
                corners_a = load_face(search.a, face_a, 0)
                corners_b = load_face(search.b, face_b, 0)
                if clear_of(corners_a, corners_b, way, best * FACE_MARGIN + slack):
                    continue
                if not (gap > wp.float32(0.0)):
                    if meets(search, rank, face_a, face_b, corners_a, corners_b):
                        best = wp.float64(0.0)
                        key = MET
                        held = 0
                        continue
                near = gap_of(corners_a, corners_b)
                if near.distance <= best:
                    this = pack_pair(0, face_a, face_b, crowd.bits)
                    key = wp.where(near.distance < best, this, wp.min(key, this))
                    best = near.distance
                    way = near.q - near.p
                    limit = box_limit(best, slack, frame.stretch)
            else:
                in_a = opens_first(a, b)
                child = 2 * wp.where(in_a, link_of(a), link_of(b))
                first = wp.vec3i()
                second = wp.vec3i()
                for k in range(2):
                    m = wp.where(in_a, child + k, i)
                    n = wp.where(in_a, j, child + k)
                    squared = apart(frame, load_node(tree_a.nodes, m), load_node(tree_b.nodes, n))
                    first = second
                    second = wp.vec3i(m, n, wp.cast(squared, wp.int32))
                gap_first = wp.cast(first[2], wp.float32)
                gap_second = wp.cast(second[2], wp.float32)
                stack[held] = wp.where(gap_first <= gap_second, second, first)
                held += wp.int32(not (wp.max(gap_first, gap_second) > limit))
                stack[held] = wp.where(gap_first <= gap_second, first, second)
                held += wp.int32(not (wp.min(gap_first, gap_second) > limit))
        bound_out[rank] = to_bits(best)
        key_out[rank] = key
