"""Which leaves lie below each slot of a tree: its topology, for those who climb it."""

import warp as wp

from abut.bvh.batched import BatchedBvh, Parts, bvh_at, slice_of_item
from abut.bvh.layout import Bvh, link_at, root_of
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def leaves_below(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """First and last leaf below a slot: the ends of its leftmost and rightmost way down."""
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
def range_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    # out
    ranges_out: wp.array[wp.vec2i],
):
    """First and last leaf below each slot."""
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
        ranges_out[slot] = leaves_below(nodes, slot)


@wp.kernel
def forest_range_kernel(
    # in
    span: wp.vec3i,
    which: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    forest: BatchedBvh,
    # out
    ranges_out: wp.array[wp.vec2i],
):
    """First and last leaf below each slot of some bodies."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        part = slice_of_item(starts, i >> 1)
        body = forest.slices[which[part]]
        tree = bvh_at(forest, body)
        slot = i - 2 * starts[part]
        if slot <= root_of(tree):
            ranges_out[2 * body.first_face + slot] = leaves_below(tree.nodes, slot)


def leaf_ranges(tree: Bvh) -> wp.array:
    """(first, last) leaf of each slot."""
    count = 2 * tree.face_count - 1
    ranges = wp.empty(count, dtype=wp.vec2i, device=tree.nodes.device)
    launch(range_kernel, count, [tree.nodes, ranges], tree.nodes.device)
    return ranges


def write_forest_ranges(forest: BatchedBvh, parts: Parts, ranges: wp.array) -> None:
    """Write (first, last) leaf of each slot of some bodies to where their slots are."""
    args = [parts.which, parts.starts, forest, ranges]
    launch(forest_range_kernel, 2 * parts.leaf_count, args, ranges.device)
