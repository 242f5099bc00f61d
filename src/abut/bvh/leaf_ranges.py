"""The range of leaves below each node slot of a BVH."""

import warp as wp

from abut.bvh.batched import BatchedBvh, SliceBatch, bvh_at, slice_of_item
from abut.bvh.layout import Bvh, link_at, root_of
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def leaf_range_below(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """Return the first and last leaf below a slot, by its leftmost and rightmost descent."""
    split = link_at(nodes, slot)
    first = wp.int32((slot + 1) >> 1)  # a leaf: s in slot 2 s, s + 1 in slot 2 s + 1
    last = wp.int32(first)
    if split >= 0:
        first = split
        while link_at(nodes, 2 * first) >= 0:
            first = link_at(nodes, 2 * first)
        last = split
        while link_at(nodes, 2 * last + 1) >= 0:
            last = link_at(nodes, 2 * last + 1)
        last = last + 1
    return wp.vec2i(first, last)


@wp.kernel
def leaf_range_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    # out
    ranges_out: wp.array[wp.vec2i],
):
    """Write the first and last leaf below each slot."""
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
        ranges_out[slot] = leaf_range_below(nodes, slot)


@wp.kernel
def batched_leaf_range_kernel(
    # in
    span: wp.vec3i,
    indices: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    bvhs: BatchedBvh,
    # out
    ranges_out: wp.array[wp.vec2i],
):
    """Write the first and last leaf below each slot of some mesh slices."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        item = slice_of_item(starts, i >> 1)
        mesh_slice = bvhs.slices[indices[item]]
        tree = bvh_at(bvhs, mesh_slice)
        slot = i - 2 * starts[item]
        if slot <= root_of(tree):
            ranges_out[2 * mesh_slice.first_face + slot] = leaf_range_below(tree.nodes, slot)


def leaf_ranges(tree: Bvh) -> wp.array:
    """Return the (first, last) leaf of each slot."""
    count = 2 * tree.face_count - 1
    ranges = wp.empty(count, dtype=wp.vec2i, device=tree.nodes.device)
    launch(leaf_range_kernel, count, [tree.nodes, ranges], tree.nodes.device)
    return ranges


def write_batched_leaf_ranges(bvhs: BatchedBvh, batch: SliceBatch, ranges: wp.array) -> None:
    """Write (first, last) leaf of each slot of some slices at the position of the slot."""
    args = [batch.indices, batch.starts, bvhs, ranges]
    launch(batched_leaf_range_kernel, 2 * batch.leaf_count, args, ranges.device)
