"""Leaves of one tree and what their DOPs of few bits may meet in another, for one query on CUDA.

As ``list_kernel`` of two_trees; but what a leaf's own DOP adds along each axis is the same at every
node, and is summed once.
"""

import warp as wp

from abut.atomics import load_wide_words
from abut.bounds.fixed import NARROW_ROWS, constants_narrow, sums_narrow
from abut.bounds.kdop import SIDES
from abut.hierarchy.tree import TreeView, escape_of, face_of, link_of, load_node, root_of
from abut.pairs import PairQueue
from abut.traversal.dop_frames import DopFrames, overlap_dops
from abut.traversal.two_trees import LISTED, list_found

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_AXES = wp.constant(max(SIDES))


@wp.func
def sum_leaf(dops: DopFrames, pose: wp.int32, slot: wp.int32, own: wp.array[wp.vec2l]):
    """What a leaf of a and the constants add to the sums along every axis."""
    first = pose * dops.axis_count
    for axis in range(dops.axis_count):
        row = NARROW_ROWS * (first + axis)
        on_a = sums_narrow(
            load_wide_words(dops.narrow_axes, row), dops.words_a, dops.stride * slot, dops.half
        )
        rest = load_wide_words(dops.narrow_axes, row + 2)
        own[axis] = constants_narrow(rest, dops.width) + on_a


@wp.func
def overlap_leaf(dops: DopFrames, pose: wp.int32, own: wp.array[wp.vec2l], slot: wp.int32):
    """``overlap_narrow`` for the leaf summed before and a slot of b."""
    first = pose * dops.axis_count
    for axis in range(dops.axis_count):
        row = NARROW_ROWS * (first + axis) + 1
        on_b = sums_narrow(
            load_wide_words(dops.narrow_axes, row), dops.words_b, dops.stride * slot, dops.half
        )
        apart = own[axis]
        if apart[0] + on_b[1] >= wp.int64(0) or apart[1] + on_b[0] >= wp.int64(0):
            return False
    return True


@wp.kernel
def list_dops_kernel(
    # in
    span: wp.vec3i,
    tree_a: TreeView,
    tree_b: TreeView,
    dops: DopFrames,
    leaf_count: wp.int32,
    bits: wp.vec2i,
    swapped: wp.bool,
    # out
    candidates_out: PairQueue,
):
    """Walk b's tree, without a stack, for each (pose, leaf of a); ``swapped``: keys (b, a)."""
    own = wp.zeros(shape=(MOST_AXES,), dtype=wp.vec2l)
    found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / leaf_count
        leaf_slot = tree_a.leaf_slots[work - pose * leaf_count]
        leaf = load_node(tree_a.nodes, leaf_slot)
        count = wp.int32(0)
        slot = root_of(tree_b)
        if overlap_dops(dops, pose, leaf_slot, slot):  # most leaves are done here
            sum_leaf(dops, pose, leaf_slot, own)
        else:
            slot = -1
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = overlap_leaf(dops, pose, own, slot)
            link = link_of(node)
            slot = wp.where(hit and link >= 0, 2 * link, escape_of(node))
            if hit and link < 0:
                found[count] = -1 - link
                count += 1
                if count == LISTED:
                    list_found(pose, face_of(leaf), found, count, bits, swapped, candidates_out)
                    count = 0
        list_found(pose, face_of(leaf), found, count, bits, swapped, candidates_out)
