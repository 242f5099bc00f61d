"""Kernels that compare a few objects with many, whose boxes are kept from question to question."""

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bounds.float32 import to_vec4f
from abut.broad.boxes import Boxes, Filters, box_of_posed, passes_filters
from abut.core.pair_queue import NO_KEY, PairQueue, pack_pair, push_pair, queue_stop
from abut.operands.posed_pairs import ScenePairs

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_FEW = wp.constant(32)  # objects that are asked about, and that have moved
# Entries of a question: numbers of few, of others and of moved objects, the first of the others
# (-1: they are listed), then the few and the moved ones.
FEW_COUNT = wp.constant(0)
OTHER_COUNT = wp.constant(1)
MOVED_COUNT = wp.constant(2)
FIRST_OTHER = wp.constant(3)
FEW = wp.constant(4)
MOVED = wp.constant(36)
QUESTION_SIZE = 68
# Entries of an answer: counts of object pairs, of hits and of undecided pairs of faces, then the
# key of two objects that meet.
ANSWER_SIZE = 4


@wp.kernel
def moved_boxes_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    question: wp.array[wp.int32],
    # out
    boxes_out: Boxes,
    answer_out: wp.array[wp.int64],
    best_out: wp.array[wp.int64],
    flags_out: wp.array[wp.int32],
):
    """Write the boxes of objects that have moved, and clear what the search writes."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        best_out[k] = NO_KEY
        if k < answer_out.shape[0]:
            answer_out[k] = wp.where(k == 3, NO_KEY, wp.int64(0))
        if k < flags_out.shape[0]:
            flags_out[k] = 0
        if k < question[MOVED_COUNT]:
            i = question[MOVED + k]
            if boxes_out.lower[i][0] <= boxes_out.upper[i][0]:  # removed objects stay empty
                zero = wp.float64(0.0)
                lower, upper = box_of_posed(pairs.bvhs, pairs.mesh[i], pairs.poses[i], zero)
                boxes_out.lower[i] = to_vec4f(lower)
                boxes_out.upper[i] = to_vec4f(upper)


@wp.kernel
def few_pairs_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    filters: Filters,
    bits: wp.vec2i,
    question: wp.array[wp.int32],
    others: wp.array[wp.int32],
    # out
    pairs_out: PairQueue,
):
    """List the pairs of one of the few objects and one of the others whose boxes overlap."""
    for k in range(span[0] + wp.tid(), wp.min(question[OTHER_COUNT], span[1]), span[2]):
        j = question[FIRST_OTHER] + k
        if question[FIRST_OTHER] < 0:
            j = others[k]
        lower = boxes.lower[j]
        upper = boxes.upper[j]
        for at in range(question[FEW_COUNT]):
            i = question[FEW + at]
            if i != j:
                if overlap_aabb(lower, upper, boxes.lower[i], boxes.upper[i]):
                    if passes_filters(filters, i, j):
                        push_pair(pairs_out, pack_pair(0, i, j, bits))


@wp.kernel
def found_pair_kernel(
    # in
    span: wp.vec3i,
    pairs: PairQueue,
    best: wp.array[wp.int64],
    # out
    answer_out: wp.array[wp.int64],
):
    """Write the key of an object pair that has a contact into the answer."""
    for rank in range(span[0] + wp.tid(), queue_stop(pairs, span[1]), span[2]):
        if best[rank] != NO_KEY:
            answer_out[3] = pairs.keys[rank]
