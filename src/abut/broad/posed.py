"""Boxes of posed bodies, for every object of every copy of a scene."""

import warp as wp

from abut.broad.boxes import NOTHING, Boxes, box_of_posed, store_box, store_nothing
from abut.core.pair_queue import NO_KEY, PairQueue, pack_pair, push_pair
from abut.geometry.poses import is_rigid
from abut.operands.posed_pairs import ScenePairs

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def forget_kernel(
    # in
    span: wp.vec3i,
    unused: wp.int64,
    # out
    boxes_out: Boxes,
    counts_out: wp.array[wp.int64],
    keys_out: wp.array[wp.int64],
    best_out: wp.array[wp.int64],
    flags_out: wp.array[wp.int32],
):
    """Begin anew: an extent of nothing, empty queues, keys above all others, nothing found."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if i < 6:
            boxes_out.extent[i] = NOTHING
        if i < counts_out.shape[0]:
            counts_out[i] = wp.int64(0)
        if i < keys_out.shape[0]:
            keys_out[i] = unused
        if i < best_out.shape[0]:
            best_out[i] = NO_KEY
        if i < flags_out.shape[0]:
            flags_out[i] = 0


@wp.kernel
def box_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    margin: wp.float64,
    own: wp.bool,
    # out
    boxes_out: Boxes,
    bad_out: PairQueue,
    objects_out: PairQueue,
):
    """The box of each object; those whose pose is not rigid; with ``own``, it and itself."""
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        copy = at / pairs.object_count
        i = at - copy * pairs.object_count
        mesh = pairs.mesh[i]
        count = wp.int32(0)
        if mesh >= 0:
            count = pairs.bvhs.slices[mesh].face_count
            if not is_rigid(pairs.poses[at]):
                push_pair(bad_out, wp.int64(at))
        if count == 0:
            store_nothing(boxes_out, at)
        else:
            lower, upper = box_of_posed(pairs.bvhs, mesh, pairs.poses[at], margin)
            store_box(boxes_out, at, lower, upper)
        if own and count > 1:
            push_pair(objects_out, pack_pair(copy, i, i, pairs.object_bits))
