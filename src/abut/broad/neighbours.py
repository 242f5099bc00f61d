"""Pairs of objects of which one may be the nearest of the other, by bounds of box distances."""

import warp as wp

from abut.bounds.float32 import row_xyz
from abut.broad.boxes import FARTHEST, Boxes, Filters, passes_filters
from abut.core.pair_queue import NO_KEY, PairQueue, pack_pair, push_pair
from abut.operands.posed_pairs import ScenePairs, objects_at, pair_stop

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ABOVE = wp.constant(wp.float32(1.0 + 2.0**-16))  # covers float32 rounding amply
BELOW = wp.constant(wp.float32(1.0 - 2.0**-16))


@wp.func
def has_box(boxes: Boxes, i: wp.int32):
    """Whether the box of an object is not empty."""
    return boxes.lower[i][0] <= boxes.upper[i][0]


@wp.func
def length_xyz(gap: wp.vec4f):
    """Length of the first three components, in float64: float32 squares may under- or overflow."""
    return wp.float32(wp.length(wp.vec3d(row_xyz(gap))))


@wp.kernel
def nearest_bound_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    filters: Filters,
    # out
    bound_out: wp.array[wp.float32],
):
    """Upper bound of the distance of each object to its nearest: between far corners of boxes."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        bound = wp.float32(wp.inf)
        if has_box(boxes, i):
            for j in range(boxes.object_count):
                if j != i and has_box(boxes, j):
                    reach = wp.max(boxes.upper[i] - boxes.lower[j], boxes.upper[j] - boxes.lower[i])
                    far = length_xyz(reach) * ABOVE
                    if far < wp.min(bound, FARTHEST) and passes_filters(filters, i, j):
                        bound = far
        bound_out[i] = bound


@wp.kernel
def neighbour_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    filters: Filters,
    bound: wp.array[wp.float32],
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """List the pairs of which one may be the nearest of the other."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if has_box(boxes, i):
            for j in range(i + 1, boxes.object_count):
                if has_box(boxes, j):
                    gap = wp.max(boxes.lower[i] - boxes.upper[j], boxes.lower[j] - boxes.upper[i])
                    near = length_xyz(wp.max(gap, wp.vec4f())) * BELOW
                    if near <= wp.max(bound[i], bound[j]) and passes_filters(filters, i, j):
                        push_pair(pairs_out, pack_pair(0, i, j, bits))


@wp.kernel
def row_bounds_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    object_bounds: wp.array[wp.float32],
    most: wp.float64,
    # out
    bound_out: wp.array[wp.int64],
    key_out: wp.array[wp.int64],
):
    """The bound of each row: ``most``, or the larger one of its two objects; and no key yet.

    A bound is not 0, which is for objects that meet.
    """
    for rank in range(span[0] + wp.tid(), pair_stop(pairs, span[1]), span[2]):
        bound = most
        if object_bounds.shape[0] > 0:
            row = objects_at(pairs, rank)
            bound = wp.float64(wp.max(object_bounds[row[1]], object_bounds[row[2]]))
        bound_out[rank] = wp.max(wp.cast(bound, wp.int64), wp.int64(1))
        key_out[rank] = NO_KEY
