"""Decide by exact arithmetic the pairs that the filter left open."""

from typing import Any

import warp as wp

from abut.faces import Faces, load_face
from abut.geometry.common_corners import common_corners
from abut.geometry.intersect_tri_tri_exact import intersect_neighbours_exact
from abut.pairs import PairQueue, push_pair, queue_stop, unpack_pair
from abut.runtime import launch

# Loops stay loops and functions stay few: this code is rarely run but always compiled.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.kernel
def settle_kernel(
    # in
    span: wp.vec3i,
    a: Faces,
    b: Faces,
    relation: wp.int32,
    bits: wp.vec2i,
    undecided: PairQueue,
    # out
    hits_out: PairQueue,
):
    """Test the pairs of a queue exactly."""
    for i in range(span[0] + wp.tid(), queue_stop(undecided, span[1]), span[2]):
        key = undecided.keys[i]
        row = unpack_pair(key, bits)
        tri_a = load_face(a, row[1], row[0])
        tri_b = load_face(b, row[2], row[0])
        common = common_corners(relation, tri_a, tri_b, a.faces[row[1]], b.faces[row[2]])
        if intersect_neighbours_exact(tri_a, tri_b, common):
            push_pair(hits_out, key)


def settle_queue(
    a: Faces, b: Faces, relation: int, bits: Any, undecided: Any, count: int, hits: Any
) -> None:
    """Move the undecided pairs that meet, the first ``count``, to the hits."""
    args = [a, b, relation, bits, undecided, hits]
    launch(settle_kernel, count, args, a.points.device, grain=64)
