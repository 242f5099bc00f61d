"""Which leaves lie below each slot of a tree: its topology, for those who climb it."""

import warp as wp

from abut.hierarchy.tree import Tree
from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def link_at(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """Split of an inner slot, negative for a leaf."""
    return wp.cast(nodes[2 * slot][3], wp.int32)


@wp.kernel
def range_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    # out
    ranges_out: wp.array[wp.vec2i],
):
    """First and last leaf below each slot: the ends of its leftmost and rightmost way down."""
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
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
        ranges_out[slot] = wp.vec2i(first, last)


def leaf_ranges(tree: Tree) -> wp.array:
    """(first, last) leaf of each slot."""
    count = 2 * tree.face_count - 1
    ranges = wp.empty(count, dtype=wp.vec2i, device=tree.nodes.device)
    launch(range_kernel, count, [tree.nodes, ranges], tree.nodes.device)
    return ranges
