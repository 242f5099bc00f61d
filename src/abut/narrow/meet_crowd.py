"""Where pairs of faces of many objects meet."""

import warp as wp

from abut.crowd import Crowd, meeting_at, search_of
from abut.faces import load_face
from abut.geometry.meet_tri_tri import meet_tri_tri
from abut.pairs import unpack_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


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
