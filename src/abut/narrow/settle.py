"""Decide by exact arithmetic the pairs that the filter left open."""

import warp as wp

from abut.faces import load_face
from abut.geometry.common_corners import common_corners
from abut.geometry.intersect_tri_tri_exact import intersect_tri_tri_exact
from abut.pairs import push_pair, queue_stop, unpack_pair
from abut.search import Search

# Loops stay loops: this code is rarely run but always compiled.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.func
def settle_pair(search: Search, key: wp.int64):
    """Move an undecided pair to the hits if it meets."""
    row = unpack_pair(key, search.bits)
    a = load_face(search.a, row[1], row[0])
    b = load_face(search.b, row[2], row[0])
    index_a = search.a.faces[row[1]]
    index_b = search.b.faces[row[2]]
    common = common_corners(search.relation, a, b, index_a, index_b)
    if intersect_tri_tri_exact(a, b, common):
        push_pair(search.hits, key)


@wp.kernel
def settle_kernel(
    # in
    span: wp.vec3i,
    search: Search,
):
    """Move the undecided pairs that meet to the hits."""
    for i in range(span[0] + wp.tid(), queue_stop(search.undecided, span[1]), span[2]):
        settle_pair(search, search.undecided.keys[i])
