"""Boxes of posed bodies, for every object of every copy of a scene."""

import warp as wp

from abut.atomics import lower_to
from abut.broad.boxes import Boxes, box_of_posed, is_rigid, store_box, store_nothing
from abut.crowd import Crowd
from abut.pairs import PairQueue, pack_pair, push_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def box_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    margin: wp.float64,
    own: wp.bool,
    # out
    boxes_out: Boxes,
    bad_out: wp.array[wp.int64],
    objects_out: PairQueue,
):
    """The box of each object; the first whose pose is not rigid; with ``own``, it and itself."""
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        copy = at / crowd.object_count
        i = at - copy * crowd.object_count
        body = crowd.body[i]
        count = wp.int32(0)
        if body >= 0:
            count = crowd.forest.bodies[body].face_count
            if not is_rigid(crowd.poses[at]):
                lower_to(bad_out, 0, wp.int64(at))
        if count == 0:
            store_nothing(boxes_out, at)
        else:
            lower, upper = box_of_posed(crowd.forest, body, crowd.poses[at], margin)
            store_box(boxes_out, at, lower, upper)
        if own and count > 1:
            push_pair(objects_out, pack_pair(copy, i, i, crowd.object_bits))
