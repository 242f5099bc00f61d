"""Faces of objects that meet, tested on the spot: for the CPU, and the slow truth for both.

Each item of work is a meeting and a subtree of its first object, a group of leaves of an object
that meets itself, or a face of the first object.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.batched import bvh_at, slice_of_item
from abut.bvh.layout import face_of, is_leaf, load_node, root_of
from abut.core.pair_queue import PairQueue, pack_pair, push_pair, queue_stop, unpack_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.geometry.poses import move_point
from abut.operands.contact_operands import first_other, test_faces
from abut.operands.scene_pairs import Crowd, faces_of, meeting_at, search_of
from abut.traversal.meetings import depth_of
from abut.traversal.overlap.leaf_packets import FOUND, test_own_group
from abut.traversal.overlap.leaf_packets import STACK as GROUP_STACK
from abut.traversal.overlap.node_pairs import STACK, open_pair, push_overlapping, start_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def corners_at(points: wp.array[wp.vec3d], face: wp.vec3i, pose: wp.mat44d):
    """The corners of a face, one a row, at a pose."""
    return wp.matrix_from_rows(
        move_point(pose, points[face[0]]),
        move_point(pose, points[face[1]]),
        move_point(pose, points[face[2]]),
    )


@wp.func
def note_verdict(
    verdict: wp.int32,
    key: wp.int64,
    hits: PairQueue,
    undecided: PairQueue,
):
    """Push a pair to where it belongs."""
    if verdict == HIT:
        push_pair(hits, key)
    elif verdict != MISS:
        push_pair(undecided, key)


@wp.kernel
def meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    frames: wp.array[RelativeFrame],
    starts: wp.array[wp.int32],
):
    """Test all faces whose boxes overlap, item by item: for the CPU."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    group_stack = wp.zeros(shape=(GROUP_STACK,), dtype=wp.int32)
    found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
    total = wp.min(starts[starts.shape[0] - 1], span[1])
    for work in range(span[0] + wp.tid(), total, span[2]):
        rank = slice_of_item(starts, work)
        item = work - starts[rank]
        meeting = meeting_at(crowd, rank)
        tree_a = bvh_at(crowd.forest, meeting.body_a)
        if meeting.own:
            search = search_of(crowd, meeting)
            test_own_group(search, rank, tree_a, item, group_stack, found)
            continue
        tree_b = bvh_at(crowd.forest, meeting.body_b)
        frame = frames[rank]
        faces_a = faces_of(crowd.forest, meeting.body_a)
        faces_b = faces_of(crowd.forest, meeting.body_b)
        pose_a = crowd.poses[meeting.at_a]
        pose_b = crowd.poses[meeting.at_b]
        last = wp.int32(-1)
        corners_a = wp.mat33d()
        start = start_of(frame, tree_a, tree_b, item, depth_of(meeting.body_a.face_count))
        stack[0] = wp.vec2i(start, root_of(tree_b))
        held = wp.int32(start >= 0)
        while held > 0:
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
            a = load_node(tree_a.nodes, i)
            b = load_node(tree_b.nodes, j)
            if is_leaf(a) and is_leaf(b):
                if last != i:
                    last = i
                    corners_a = corners_at(faces_a.points, faces_a.faces[face_of(a)], pose_a)
                corners_b = corners_at(faces_b.points, faces_b.faces[face_of(b)], pose_b)
                verdict = classify_tri_tri(
                    corners_a, corners_b, SHARED_NONE, wp.vec3i(), wp.vec3i()
                )
                if verdict != MISS:
                    key = pack_pair(rank, face_of(a), face_of(b), crowd.bits)
                    note_verdict(verdict, key, crowd.hits, crowd.undecided)
            else:
                pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
                held = push_overlapping(stack, held, pairs)


@wp.kernel
def test_listed_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    candidates: PairQueue,
):
    """Filter the pairs of faces of a queue; what a meeting has in common is looked up once."""
    stop = queue_stop(candidates, span[1])
    i = span[0] + wp.tid()
    while i < stop:
        row = unpack_pair(candidates.keys[i], crowd.bits)
        rank = row[0]
        search = search_of(crowd, meeting_at(crowd, rank))
        while row[0] == rank:
            test_faces(search, rank, row[1], row[2])
            i += span[2]
            row = wp.vec3i(-1)
            if i < stop:
                row = unpack_pair(candidates.keys[i], crowd.bits)


@wp.kernel
def brute_crowd_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    starts: wp.array[wp.int32],
):
    """Filter every pair of faces, for each (meeting, face of a)."""
    total = wp.min(starts[starts.shape[0] - 1], span[1])
    for work in range(span[0] + wp.tid(), total, span[2]):
        rank = slice_of_item(starts, work)
        search = search_of(crowd, meeting_at(crowd, rank))
        face_a = work - starts[rank]
        for face_b in range(first_other(search, face_a), search.b.faces.shape[0]):
            test_faces(search, rank, face_a, face_b)
