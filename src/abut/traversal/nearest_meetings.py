"""The nearest faces of two objects, for many pairs of objects in one launch.

A walk of two trees as in nearest, without what makes single queries faster.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.batched import bvh_at
from abut.bvh.layout import BvhView, Node, face_of, is_leaf, load_node, root_of
from abut.core.pair_queue import NO_KEY, queue_stop
from abut.operands.distance_operands import FACE_MARGIN, box_limit, from_bits
from abut.operands.posed_mesh import load_face
from abut.operands.scene_pairs import Crowd, meeting_at, search_of
from abut.traversal.near_meetings import slack_of
from abut.traversal.near_pairs import STACK
from abut.traversal.nearest import Found, clear_of, compare_faces
from abut.traversal.node_gaps import apart
from abut.traversal.overlap.node_pairs import pair_below
from abut.traversal.remote_meetings import parting_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def with_gap(frame: RelativeFrame, tree_a: BvhView, tree_b: BvhView, pair: wp.vec2i):
    """A pair of slots, and the bits of how far apart they are, squared; ordered as that is."""
    squared = apart(frame, load_node(tree_a.nodes, pair[0]), load_node(tree_b.nodes, pair[1]))
    return wp.vec3i(pair[0], pair[1], wp.cast(squared, wp.int32))


@wp.func
def push_nearest(
    stack: wp.array[wp.vec3i],
    held: wp.int32,
    frame: RelativeFrame,
    limit: wp.float32,
    tree_a: BvhView,
    i: wp.int32,
    a: Node,
    tree_b: BvhView,
    j: wp.int32,
    b: Node,
):
    """Open the larger of two nodes; what is within a limit goes on the stack, the nearest on top.

    Returns how many the stack holds then.
    """
    one = with_gap(frame, tree_a, tree_b, pair_below(i, a, j, b, 0))
    two = with_gap(frame, tree_a, tree_b, pair_below(i, a, j, b, 1))
    far = wp.where(one[2] <= two[2], two, one)
    near = wp.where(one[2] <= two[2], one, two)
    stack[held] = far
    top = held + wp.int32(not (wp.cast(far[2], wp.float32) > limit))
    stack[top] = near
    return top + wp.int32(not (wp.cast(near[2], wp.float32) > limit))


@wp.kernel
def nearest_meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    frames: wp.array[RelativeFrame],
    # out
    bound_out: wp.array[wp.int64],
    key_out: wp.array[wp.int64],
):
    """The smallest distance of each meeting, at most its bound, and the lowest pair at it.

    Distances are written as bits, 0 where faces meet; the key is NO_KEY beyond the bound.
    Objects far apart are left to ``remote_meet_kernel``.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec3i)
    for rank in range(span[0] + wp.tid(), queue_stop(crowd.meetings, span[1]), span[2]):
        meeting = meeting_at(crowd, rank)
        search = search_of(crowd, meeting)
        if parting_of(crowd, meeting, search).remote:
            continue
        tree_a = bvh_at(crowd.forest, meeting.body_a)
        tree_b = bvh_at(crowd.forest, meeting.body_b)
        frame = frames[rank]
        slack = slack_of(crowd, meeting)
        found = Found()
        found.bits = bound_out[rank]
        found.key = NO_KEY
        limit = box_limit(from_bits(found.bits), slack, frame.stretch)
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
                p = load_face(search.a, face_of(a), 0)
                q = load_face(search.b, face_of(b), 0)
                if clear_of(p, q, found.way, from_bits(found.bits) * FACE_MARGIN + slack):
                    continue
                found = compare_faces(search, rank, face_of(a), face_of(b), p, q, gap, found)
                limit = box_limit(from_bits(found.bits), slack, frame.stretch)
                if found.bits == wp.int64(0):  # they meet
                    held = 0
            else:
                held = push_nearest(stack, held, frame, limit, tree_a, i, a, tree_b, j, b)
        bound_out[rank] = found.bits
        key_out[rank] = found.key
