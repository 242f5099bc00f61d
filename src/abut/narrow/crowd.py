"""Exact arithmetic and brute force for faces of many objects, and where they meet."""

import warp as wp

from abut.crowd import Crowd, meeting_at, search_of
from abut.faces import load_face
from abut.geometry.common_corners import STRANGERS
from abut.geometry.meet_tri_tri import meet_tri_tri
from abut.hierarchy.forest import part_of
from abut.narrow.settle import settle_pair
from abut.pairs import queue_stop, unpack_pair
from abut.search import test_faces

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.kernel
def settle_crowd_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
):
    """Move the undecided pairs that meet to the hits."""
    for i in range(span[0] + wp.tid(), queue_stop(crowd.undecided, span[1]), span[2]):
        key = crowd.undecided.keys[i]
        rank = unpack_pair(key, crowd.bits)[0]
        settle_pair(search_of(crowd, meeting_at(crowd, rank)), key)


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
        rank = part_of(starts, work)
        search = search_of(crowd, meeting_at(crowd, rank))
        face_a = work - starts[rank]
        begin = wp.where(search.relation == STRANGERS, 0, face_a + 1)
        for face_b in range(begin, search.b.faces.shape[0]):
            test_faces(search, rank, face_a, face_b)


@wp.kernel
def meet_crowd_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    keys: wp.array[wp.int64],
    # out
    segments_out: wp.array2d[wp.vec3d],
    coplanar_out: wp.array[wp.bool],
):
    """The segment in which each pair of faces meets."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], crowd.bits)
        search = search_of(crowd, meeting_at(crowd, row[0]))
        where = meet_tri_tri(load_face(search.a, row[1], 0), load_face(search.b, row[2], 0))
        segments_out[i, 0] = where.p
        segments_out[i, 1] = where.q
        coplanar_out[i] = where.coplanar
