"""Kernels that compare a few objects with many, whose boxes are kept from question to question."""

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bounds.float32 import to_vec4f
from abut.broad.boxes import Boxes, Filters, box_of_posed, passes_filters, store_empty
from abut.core.pair_queue import NO_KEY, PairQueue, pack_pair, push_pair, queue_stop
from abut.operands.posed_pairs import ScenePairs

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_FEW = 32  # objects that are asked about, and that have moved
# Entries of a question: numbers of few objects, of others and of those that have moved; the first
# of the others, -1 where they are listed; whether the few are those of ``against``; then the rows
# of the few, whether each of them is among the others, and the rows that have moved.
FEW_COUNT = wp.constant(0)
OTHER_COUNT = wp.constant(1)
MOVED_COUNT = wp.constant(2)
FIRST_OTHER = wp.constant(3)
FEW_LAST = wp.constant(4)
FEW = wp.constant(5)
AMONG_OTHERS = wp.constant(FEW + MOST_FEW)
MOVED = wp.constant(AMONG_OTHERS + MOST_FEW)
QUESTION_SIZE = MOVED + MOST_FEW
# Entries of an answer: counts of object pairs, of hits and of undecided pairs of faces, then the
# key of two objects that meet.
ANSWER_SIZE = 4


@wp.func
def write_box(pairs: ScenePairs, i: wp.int32, margin: wp.float64, boxes: Boxes, at: wp.int32):
    """Write the box of an object, padded by a margin."""
    count = wp.int32(0)
    if pairs.mesh[i] >= 0:
        count = pairs.bvhs.slices[pairs.mesh[i]].face_count
    if count == 0:
        store_empty(boxes, at)
    else:
        lower, upper = box_of_posed(pairs.bvhs, pairs.mesh[i], pairs.poses[i], margin)
        boxes.lower[at] = to_vec4f(lower)
        boxes.upper[at] = to_vec4f(upper)


@wp.kernel
def few_boxes_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    margin: wp.float64,
    question: wp.array[wp.int32],
    # out
    boxes_out: Boxes,
    few_out: Boxes,
    answer_out: wp.array[wp.int64],
    best_out: wp.array[wp.int64],
    flags_out: wp.array[wp.int32],
):
    """Write the boxes of objects that have moved, and those of the few, padded by the margin.

    Clears what a search writes.
    """
    for k in range(span[0] + wp.tid(), wp.min(best_out.shape[0], span[1]), span[2]):
        best_out[k] = NO_KEY
    for k in range(span[0] + wp.tid(), wp.min(MOST_FEW, span[1]), span[2]):
        if k < answer_out.shape[0]:
            answer_out[k] = wp.where(k == 3, NO_KEY, wp.int64(0))
        if k < flags_out.shape[0]:
            flags_out[k] = 0
        if k < question[MOVED_COUNT]:
            write_box(pairs, question[MOVED + k], wp.float64(0.0), boxes_out, question[MOVED + k])
        if k < question[FEW_COUNT]:
            write_box(pairs, question[FEW + k], margin, few_out, k)


@wp.func
def is_few(question: wp.array[wp.int32], i: wp.int32):
    """Whether an object is one of the few."""
    for k in range(question[FEW_COUNT]):
        if question[FEW + k] == i:
            return True
    return False


@wp.func
def push_few(
    question: wp.array[wp.int32], at: wp.int32, j: wp.int32, bits: wp.vec2i, queue: PairQueue
):
    """Append the pair of a few object and another: the one of ``which`` first.

    Two objects that are both on both sides come here twice, and are listed once, the lower first.
    """
    i = question[FEW + at]
    if question[AMONG_OTHERS + at] != 0 and is_few(question, j):
        if i < j:
            push_pair(queue, pack_pair(0, i, j, bits))
    elif question[FEW_LAST] != 0:
        push_pair(queue, pack_pair(0, j, i, bits))
    else:
        push_pair(queue, pack_pair(0, i, j, bits))


@wp.kernel
def few_pairs_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    boxes: Boxes,
    few: Boxes,
    filters: Filters,
    own: wp.bool,
    question: wp.array[wp.int32],
    others: wp.array[wp.int32],
    # out
    pairs_out: PairQueue,
):
    """List the pairs of one of the few objects and one of the others whose boxes overlap.

    If ``own``, also the few that are among the others with themselves.
    """
    for k in range(span[0] + wp.tid(), wp.min(question[OTHER_COUNT], span[1]), span[2]):
        j = question[FIRST_OTHER] + k
        if question[FIRST_OTHER] < 0:
            j = others[k]
        lower = boxes.lower[j]
        upper = boxes.upper[j]
        for at in range(question[FEW_COUNT]):
            if overlap_aabb(lower, upper, few.lower[at], few.upper[at]):
                i = question[FEW + at]
                if i == j:
                    if own and pairs.bvhs.slices[pairs.mesh[i]].face_count > 1:
                        push_pair(pairs_out, pack_pair(0, i, i, pairs.object_bits))
                elif passes_filters(filters, i, j):
                    push_few(question, at, j, pairs.object_bits, pairs_out)


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
