"""Kernels that list the pairs of objects whose boxes overlap, by three methods.

All list the same pairs, each once and in no order: all pairs; a sweep along an axis; a hierarchy.
"""

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bounds.float32 import from_sortable, row_xyz, to_sortable
from abut.broad.boxes import Boxes, Filters, push_objects
from abut.bvh.layout import BvhView, escape_of, face_of, is_leaf, load_node, next_slot
from abut.bvh.lbvh import merge_upwards
from abut.bvh.morton import morton_code
from abut.core.pair_queue import PairQueue, queue_stop, unpack_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CELLS = wp.constant(wp.float64(1024.0))
HALF = wp.constant(wp.float64(0.5))
LEAST = wp.constant(wp.float64(1.0e-30))


@wp.kernel
def all_pairs_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    filters: Filters,
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """Compare each object with all later ones of its environment."""
    count = boxes.object_count
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        environment = work / count
        i = work - environment * count
        lower = boxes.lower[work]
        upper = boxes.upper[work]
        for j in range(i + 1, count):
            other = environment * count + j
            if overlap_aabb(lower, upper, boxes.lower[other], boxes.upper[other]):
                push_objects(filters, environment, i, j, bits, pairs_out)


@wp.kernel
def sweep_key_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    axis: wp.int32,
    # out
    keys_out: wp.array[wp.int64],
    order_out: wp.array[wp.int32],
):
    """Sort keys: the environment, then the lower end of each box along the axis."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        begin = wp.int64(to_sortable(boxes.lower[i][axis])) + wp.int64(2147483648)
        keys_out[i] = (wp.int64(i / boxes.object_count) << wp.int64(32)) | begin
        order_out[i] = i


@wp.kernel
def sweep_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    filters: Filters,
    bits: wp.vec2i,
    axis: wp.int32,
    order: wp.array[wp.int32],
    # out
    pairs_out: PairQueue,
):
    """Compare each box with those that begin before it ends."""
    total = boxes.lower.shape[0]
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        i = order[k]
        environment = i / boxes.object_count
        lower = boxes.lower[i]
        upper = boxes.upper[i]
        at = k + 1
        while at < total:
            j = order[at]
            if j / boxes.object_count != environment or boxes.lower[j][axis] > upper[axis]:
                at = total
            else:
                if overlap_aabb(lower, upper, boxes.lower[j], boxes.upper[j]):
                    base = environment * boxes.object_count
                    push_objects(filters, environment, i - base, j - base, bits, pairs_out)
                at += 1


@wp.kernel
def tree_code_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    # out
    codes_out: wp.array[wp.int32],
    order_out: wp.array[wp.int32],
    far_ends_out: wp.array[wp.int32],
):
    """Morton code of the centre of each box."""
    zero = wp.float64(0.0)
    most = zero
    for x in range(3):
        size = wp.float64(from_sortable(boxes.extent[x])) + wp.float64(
            from_sortable(boxes.extent[3 + x])
        )
        most = wp.max(most, size)
    scale = zero
    if most > LEAST:
        scale = CELLS / most
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        at = wp.vec3d()
        if boxes.lower[i][0] <= boxes.upper[i][0]:
            for x in range(3):
                centre = wp.float64(boxes.lower[i][x]) * HALF + wp.float64(boxes.upper[i][x]) * HALF
                at[x] = (centre + wp.float64(from_sortable(boxes.extent[x]))) * scale
        codes_out[i] = morton_code(at)
        order_out[i] = i
        far_ends_out[i] = -1


@wp.kernel
def tree_build_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    codes: wp.array[wp.int32],
    order: wp.array[wp.int32],
    far_ends: wp.array[wp.int32],
    # out
    tree_out: BvhView,
):
    """Write every leaf and merge boxes upwards."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        low = boxes.lower[order[k]]
        high = boxes.upper[order[k]]
        merge_upwards(k, order[k], row_xyz(low), row_xyz(high), codes, far_ends, tree_out)


@wp.kernel
def tree_walk_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    filters: Filters,
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """List the leaves after each leaf that overlap it, without a stack."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf = load_node(tree.nodes, tree.leaf_slots[k])
        slot = escape_of(leaf)
        while slot >= 0:
            node = load_node(tree.nodes, slot)
            hit = overlap_aabb(leaf.low, leaf.high, node.low, node.high)
            slot = next_slot(node, hit)
            if hit and is_leaf(node):
                push_objects(filters, 0, face_of(leaf), face_of(node), bits, pairs_out)


@wp.kernel
def filter_pairs_kernel(
    # in
    span: wp.vec3i,
    found: PairQueue,
    filters: Filters,
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """Copy the pairs that the filters leave."""
    for i in range(span[0] + wp.tid(), queue_stop(found, span[1]), span[2]):
        row = unpack_pair(found.keys[i], bits)
        push_objects(filters, row[0], row[1], row[2], bits, pairs_out)
