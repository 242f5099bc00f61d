"""Decide by exact arithmetic the pairs of faces of many objects that the filter left open."""

import warp as wp

from abut.core.pair_queue import queue_stop, unpack_pair
from abut.narrow.settle_search import settle_pair
from abut.operands.scene_pairs import Crowd, meeting_at, search_of

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
