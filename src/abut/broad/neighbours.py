"""Which objects may be nearest to each other, where no bound of the distance is known."""

import warp as wp

from abut.bounds.float32 import row_xyz
from abut.broad.boxes import Boxes, Filters, may_meet
from abut.core.pair_queue import NO_KEY, PairQueue, pack_pair, push_pair
from abut.operands.posed_pairs import ScenePairs, objects_at, pair_stop

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MORE = wp.constant(wp.float32(1.0 + 2.0**-16))  # float32 roundings and a good margin
LESS = wp.constant(wp.float32(1.0 - 2.0**-16))


@wp.func
def there(boxes: Boxes, i: wp.int32):
    """Whether an object has a box."""
    return boxes.lower[i][0] <= boxes.upper[i][0]


@wp.func
def size_of(way: wp.vec4f):
    """Length of the first three parts, by float64: their squares may be nothing, or too much."""
    return wp.float32(wp.length(wp.vec3d(row_xyz(way))))


@wp.func
def at_most(boxes: Boxes, i: wp.int32, j: wp.int32):
    """How far apart two objects are at most: from corner to farthest corner of their boxes."""
    reach = wp.max(boxes.upper[i] - boxes.lower[j], boxes.upper[j] - boxes.lower[i])
    return size_of(reach) * MORE


@wp.func
def at_least(boxes: Boxes, i: wp.int32, j: wp.int32):
    """How far apart two objects are at least."""
    gap = wp.max(boxes.lower[i] - boxes.upper[j], boxes.lower[j] - boxes.upper[i])
    return size_of(wp.max(gap, wp.vec4f())) * LESS


@wp.kernel
def bound_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    filters: Filters,
    # out
    bound_out: wp.array[wp.float32],
):
    """How far each object is at most from the nearest other."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        bound = wp.float32(wp.inf)
        if there(boxes, i):
            for j in range(boxes.object_count):
                if j != i and there(boxes, j):
                    far = at_most(boxes, i, j)
                    if far < bound and may_meet(filters, i, j):
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
    """List the pairs of which one may be the other's nearest."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if there(boxes, i):
            for j in range(i + 1, boxes.object_count):
                if there(boxes, j):
                    near = at_least(boxes, i, j)
                    if near <= wp.max(bound[i], bound[j]) and may_meet(filters, i, j):
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
