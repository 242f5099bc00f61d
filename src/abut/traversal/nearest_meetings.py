"""The nearest faces of two objects, for many pairs of objects in one launch.

A walk of two trees as in nearest, without what makes single queries faster.
"""

import warp as wp

from abut.approach import FACE_MARGIN, box_limit, from_bits, gap_of, no_key, to_bits
from abut.bounds.relative import Relative
from abut.crowd import Crowd, meeting_at, search_of
from abut.faces import load_face
from abut.hierarchy.forest import tree_of
from abut.hierarchy.tree import face_of, is_leaf, link_of, load_node, root_of
from abut.pairs import pack_pair, queue_stop
from abut.traversal.near_meetings import STACK, slack_of
from abut.traversal.nearest import apart, clear_of, meets
from abut.traversal.node_pairs import opens_first
from abut.traversal.remote_meetings import parting_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MET = wp.constant(wp.int64(-1))


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
    Objects far apart are left to ``remote_meet_kernel``.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec3i)
    for rank in range(span[0] + wp.tid(), queue_stop(crowd.meetings, span[1]), span[2]):
        meeting = meeting_at(crowd, rank)
        search = search_of(crowd, meeting)
        if parting_of(crowd, meeting, search).remote:
            continue
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
