"""Leaf walk with k-DOPs of few bits: candidate pairs of one query on CUDA.

Every leaf of one tree walks the other. The contribution of the leaf's own DOP along each axis is
the same at every node and is summed once. Where neither mesh has a pose, the axes are the normals
of both: then the reaches of a node are read in two pieces, without waiting for rows of axes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.fixed import NARROW_ROWS, constants_narrow, sums_narrow
from abut.bounds.kdop import PICK_BITS, SIDES
from abut.bvh.layout import BvhView, face_of, is_leaf, load_node, next_slot, root_of
from abut.bvh.node_kdops import NodeKdops
from abut.core.launch import Task
from abut.core.memory_access import load_readonly_vec4i
from abut.core.pair_queue import PairQueue, PairQueues
from abut.core.plan import Stage
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.kdop_frames import KdopFrames, kdop_frames, overlap_kdops

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_AXES = wp.constant(max(SIDES))
NORMALS = wp.constant(12)  # normals of 24 sides
FIRST_ROWS = wp.constant(2)  # of four words, two normals: they separate most nodes
ALL_ROWS = wp.constant(6)
NO_NORMAL = wp.constant(1)  # in place of a weight, which is never positive

Weights = wp.types.vector(length=12, dtype=wp.int32)
Sums = wp.types.vector(length=24, dtype=wp.int64)


@wp.func
def sum_leaf(dops: KdopFrames, pose: wp.int32, slot: wp.int32, own: wp.array[wp.vec2l]):
    """Sum the contributions of a leaf of a and of the constants along every axis."""
    first = pose * dops.axis_count
    for axis in range(dops.axis_count):
        row = NARROW_ROWS * (first + axis)
        on_a = sums_narrow(
            load_readonly_vec4i(dops.narrow_axes, row), dops.words_a, dops.stride * slot, dops.half
        )
        rest = load_readonly_vec4i(dops.narrow_axes, row + 2)
        own[axis] = constants_narrow(rest, dops.width) + on_a


@wp.func
def overlap_leaf(dops: KdopFrames, pose: wp.int32, own: wp.array[wp.vec2l], slot: wp.int32):
    """``overlap_narrow`` for the leaf summed before and a slot of b."""
    first = pose * dops.axis_count
    for axis in range(dops.axis_count):
        row = NARROW_ROWS * (first + axis) + 1
        on_b = sums_narrow(
            load_readonly_vec4i(dops.narrow_axes, row), dops.words_b, dops.stride * slot, dops.half
        )
        apart = own[axis]
        if apart[0] + on_b[1] >= wp.int64(0) or apart[1] + on_b[0] >= wp.int64(0):
            return False
    return True


@wp.kernel
def list_kdop_pairs_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    dops: KdopFrames,
    leaf_count: wp.int32,
    bits: wp.vec2i,
    swapped: wp.bool,
    # out
    candidates_out: PairQueue,
):
    """Walk b's tree, stackless, for each (pose, leaf of a); ``swapped``: keys (b, a)."""
    own = wp.zeros(shape=(MOST_AXES,), dtype=wp.vec2l)
    found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / leaf_count
        leaf_slot = tree_a.leaf_slots[work - pose * leaf_count]
        face = face_of(load_node(tree_a.nodes, leaf_slot))
        count = wp.int32(0)
        slot = root_of(tree_b)
        if overlap_kdops(dops, pose, leaf_slot, slot):  # most leaves end here
            sum_leaf(dops, pose, leaf_slot, own)
        else:
            slot = -1
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = overlap_leaf(dops, pose, own, slot)
            slot = next_slot(node, hit)
            if hit and is_leaf(node):
                count = note_found(
                    face_of(node), pose, face, found, count, bits, swapped, candidates_out
                )
        list_found(pose, face, found, count, bits, swapped, candidates_out)


@wp.func
def normal_weight(row: wp.vec4i, pick: wp.int32):
    """The weight of one normal along an axis; NO_NORMAL where others have a weight too."""
    weight = wp.int32(0)
    for i in range(3):
        if row[1 + i] != 0:
            if ((row[0] >> (PICK_BITS * i)) & 31) == pick:
                weight += row[1 + i]
            else:
                return NO_NORMAL
    return weight


@wp.func
def weights_along(dops: KdopFrames, side: wp.int32):
    """Weights of a side's reaches along each normal, where the axes are the normals."""
    out = Weights()
    for axis in range(NORMALS):
        row = load_readonly_vec4i(dops.narrow_axes, NARROW_ROWS * axis + side)
        out[axis] = normal_weight(row, axis + NORMALS)
    return out


@wp.func
def axes_are_normals(dops: KdopFrames, on_a: Weights, on_b: Weights):
    """Whether every axis has one normal of either side."""
    aligned = dops.half == NORMALS and dops.axis_count == NORMALS
    for axis in range(NORMALS):
        aligned = aligned and on_a[axis] <= 0 and on_b[axis] <= 0
    return aligned


@wp.func
def sum_leaf_normals(dops: KdopFrames, words: wp.array[wp.vec4i], slot: wp.int32, weights: Weights):
    """Sum the contributions of a leaf of a and of the constants along and against the normals."""
    out = Sums()
    for k in range(ALL_ROWS):
        w = load_readonly_vec4i(words, ALL_ROWS * slot + k)
        for i in range(2):
            axis = 2 * k + i
            rest = load_readonly_vec4i(dops.narrow_axes, NARROW_ROWS * axis + 2)
            constants = constants_narrow(rest, dops.width)
            weight = wp.int64(weights[axis])
            out[2 * axis] = constants[0] + weight * wp.int64(w[2 * i + 1])
            out[2 * axis + 1] = constants[1] + weight * wp.int64(w[2 * i])
    return out


@wp.func
def separated(
    words: wp.array[wp.vec4i], slot: wp.int32, own: Sums, weights: Weights, row: wp.int32
):  # fmt: skip
    """Whether one of two normals separates a slot of b from the leaf."""
    w = load_readonly_vec4i(words, ALL_ROWS * slot + row)
    apart = wp.bool(False)
    for i in range(2):
        axis = 2 * row + i
        weight = wp.int64(weights[axis])
        before = own[2 * axis] + weight * wp.int64(w[2 * i])
        behind = own[2 * axis + 1] + weight * wp.int64(w[2 * i + 1])
        apart = apart or before >= wp.int64(0) or behind >= wp.int64(0)
    return apart


@wp.func
def overlap_leaf_normals(words: wp.array[wp.vec4i], slot: wp.int32, own: Sums, weights: Weights):
    """``overlap_leaf`` for axes that are the normals."""
    apart = wp.bool(False)
    for row in range(FIRST_ROWS):
        apart = separated(words, slot, own, weights, row) or apart
    if not apart:
        for row in range(FIRST_ROWS, ALL_ROWS):
            apart = separated(words, slot, own, weights, row) or apart
    return not apart


@wp.kernel
def list_normal_axis_pairs_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    dops: KdopFrames,
    fours_a: wp.array[wp.vec4i],
    fours_b: wp.array[wp.vec4i],
    leaf_count: wp.int32,
    bits: wp.vec2i,
    swapped: wp.bool,
    # out
    candidates_out: PairQueue,
):
    """``list_kdop_pairs_kernel`` for meshes without poses; ``fours`` are the words of ``dops``."""
    found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
    on_a = weights_along(dops, 0)
    on_b = weights_along(dops, 1)
    aligned = axes_are_normals(dops, on_a, on_b)
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        leaf_slot = tree_a.leaf_slots[work]
        face = face_of(load_node(tree_a.nodes, leaf_slot))
        own = sum_leaf_normals(dops, fours_a, leaf_slot, on_a)
        count = wp.int32(0)
        slot = root_of(tree_b)
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = wp.bool(False)
            if aligned:
                hit = overlap_leaf_normals(fours_b, slot, own, on_b)
            else:
                hit = overlap_kdops(dops, 0, leaf_slot, slot)
            slot = next_slot(node, hit)
            if hit and is_leaf(node):
                count = note_found(
                    face_of(node), 0, face, found, count, bits, swapped, candidates_out
                )
        list_found(0, face, found, count, bits, swapped, candidates_out)


def kdop_leaf_walk(
    view: Any, dops: tuple[NodeKdops, ...], axes: np.ndarray, bits: wp.vec2i, queues: PairQueues
) -> Iterator[Stage]:
    """Stages that list the leaf pairs of two posed meshes whose k-DOPs of few bits overlap.

    Leaves of the larger mesh walk the tree of the other.
    """
    sides, trees = [view.a, view.b], [view.tree_a, view.tree_b]
    swapped = view.b.faces.shape[0] > view.a.faces.shape[0]
    if swapped:
        sides, trees, dops = sides[::-1], trees[::-1], dops[::-1]
    frames, task = kdop_frames(*sides, *dops, axes, view.count)
    yield "frames", task.run
    kernel, given = list_kdop_pairs_kernel, [frames]
    if not (view.a.pose_count or view.b.pose_count) and frames.half == NORMALS:
        kernel = list_normal_axis_pairs_kernel
        given = [frames, _in_fours(frames.words_a), _in_fours(frames.words_b)]
    leaves = sides[0].faces.shape[0]
    args = [*trees, *given, leaves, bits, swapped, queues["candidates"]]
    yield "search", Task(kernel, view.count * leaves, args, queues.device).run


def _in_fours(words: wp.array) -> wp.array:
    """View the words, four to a row."""
    return wp.array(
        ptr=words.ptr, shape=words.shape[0] // 2, dtype=wp.vec4i, device=words.device
    )  # shares the memory of the DOPs, which outlive their plan
