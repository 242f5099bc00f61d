"""Plane filter: discard pairs of leaves whose faces a plane separates, before the exact stage."""

import warp as wp

from abut.bvh.layout import BvhView, face_of, load_node
from abut.bvh.leaf_corners import leaves_apart
from abut.core.pair_queue import PairQueue, pack_pair, push_all_pairs, queue_stop, unpack_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

PAIRS_PER_THREAD = wp.constant(4)  # pairs of a thread before room is asked for


@wp.func
def face_at(tree: BvhView, leaf: wp.int32):
    """Face of a leaf."""
    return face_of(load_node(tree.nodes, tree.leaf_slots[leaf]))


@wp.kernel
def plane_filter_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    corners: wp.array[wp.vec4f],
    bits: wp.vec2i,
    leaves: PairQueue,
    # out
    candidates_out: PairQueue,
):
    """Pass on the pairs of faces of one tree that no plane keeps apart."""
    left = wp.zeros(shape=(PAIRS_PER_THREAD,), dtype=wp.int64)
    stop = queue_stop(leaves, span[1])
    for start in range(span[0] + wp.tid(), stop, PAIRS_PER_THREAD * span[2]):
        count = wp.int32(0)
        for step in range(PAIRS_PER_THREAD):
            i = start + step * span[2]
            if i < stop:
                pair = unpack_pair(leaves.keys[i], bits)
                if not leaves_apart(corners, pair[1], pair[2]):
                    faces = wp.vec2i(face_at(tree, pair[1]), face_at(tree, pair[2]))
                    left[count] = pack_pair(0, wp.min(faces), wp.max(faces), bits)
                    count += 1
        push_all_pairs(candidates_out, left, 0, count)
