"""Boxes of objects in the world, and who may meet whom."""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.float32 import difference_lower_bounds, row_xyz_float64, to_sortable, to_vec4f
from abut.bvh.batched import BatchedBvh, bvh_at
from abut.bvh.layout import load_node, root_of
from abut.core.atomics import atomic_max_int32
from abut.core.pair_queue import PairQueue, find_key, pack_pair, push_pair

ROUNDING = wp.constant(wp.float64(2.0**-48))  # of posed coordinates, 32 times over
FAR = wp.constant(wp.float32(1.0e37))
NEVER = wp.constant(wp.float32(3.0e38))
NOTHING = wp.constant(-(2**31))  # below every ordered number


@wp.struct
class Boxes:
    """Boxes of ``object_count`` objects in each of several copies of a scene.

    Fourth components are of no meaning. The box of an object that is not there overlaps none.
    """

    lower: wp.array[wp.vec4f]
    upper: wp.array[wp.vec4f]
    object_count: wp.int32
    extent: wp.array[wp.int32]  # of all: ordered numbers, those of lower corners negated


@wp.struct
class Filters:
    """Who may meet whom. Empty arrays: everyone meets everyone."""

    about: wp.array[wp.vec4i]  # of each object: is it static, its groups, those it may meet
    ignored: wp.array[wp.int64]  # pairs (low, high) in two halves of a number, ascending


def make_filters(
    static: np.ndarray, group: np.ndarray, mask: np.ndarray, ignored: Any, device: wp.Device
) -> Filters:
    """The struct to pass to kernels; ``ignored`` are pairs (low, high)."""
    filters = Filters()
    about = np.stack([static, group, mask, np.zeros_like(mask)], axis=1).astype(np.int32)
    filters.about = wp.array(about, dtype=wp.vec4i, device=device)
    pairs = np.array(sorted(ignored), np.int64).reshape(-1, 2)
    filters.ignored = wp.array(pairs[:, 0] << 32 | pairs[:, 1], dtype=wp.int64, device=device)
    return filters


@wp.func
def is_ignored(ignored: wp.array[wp.int64], i: wp.int32, j: wp.int32):
    """Whether a pair is in the list."""
    key = (wp.int64(wp.min(i, j)) << wp.int64(32)) | wp.int64(wp.max(i, j))
    return find_key(ignored, ignored.shape[0], key) >= 0


@wp.func
def may_meet(filters: Filters, i: wp.int32, j: wp.int32):
    """Whether two objects are to be tested against each other."""
    if filters.about.shape[0] > 0:
        a = filters.about[i]
        b = filters.about[j]
        if a[0] * b[0] != 0 or (a[1] & b[2]) == 0 or (b[1] & a[2]) == 0:
            return False
    return not is_ignored(filters.ignored, i, j)


@wp.func
def push_objects(
    filters: Filters, copy: wp.int32, i: wp.int32, j: wp.int32, bits: wp.vec2i, queue: PairQueue
):
    """Append a pair whose boxes overlap, if the two may meet."""
    if may_meet(filters, i, j):
        push_pair(queue, pack_pair(copy, wp.min(i, j), wp.max(i, j), bits))


@wp.func
def note_extent(boxes: Boxes, lower: wp.vec3f, upper: wp.vec3f):
    """Widen the extent of all boxes by one."""
    for x in range(3):
        atomic_max_int32(boxes.extent, x, to_sortable(-wp.clamp(lower[x], -FAR, FAR)))
        atomic_max_int32(boxes.extent, 3 + x, to_sortable(wp.clamp(upper[x], -FAR, FAR)))


@wp.func
def box_of_posed(forest: BatchedBvh, body: wp.int32, pose: wp.mat44d, margin: wp.float64):
    """Lower and upper corner of the world's box around a body's box at a pose, and a margin.

    Guarantee:
        Conservative. The box holds all posed points, and all that is no farther than the margin.
    """
    held = forest.slices[body]
    tree = bvh_at(forest, held)
    root = load_node(tree.nodes, root_of(tree))
    half = (row_xyz_float64(root.high) - row_xyz_float64(root.low)) * wp.float64(0.5)
    centre = held.origin + half + row_xyz_float64(root.low)
    lower = wp.vec3d()
    upper = wp.vec3d()
    for i in range(3):
        at = pose[i, 3]
        reach = wp.float64(0.0)
        size = wp.abs(pose[i, 3])
        for j in range(3):
            at += pose[i, j] * centre[j]
            reach += wp.abs(pose[i, j]) * half[j]
            size += wp.abs(pose[i, j]) * (wp.abs(centre[j]) + half[j])
        reach += ROUNDING * (size + margin) + margin
        lower[i] = at - reach
        upper[i] = at + reach
    return difference_lower_bounds(lower), -difference_lower_bounds(-upper)


@wp.func
def store_box(boxes: Boxes, i: wp.int32, lower: wp.vec3f, upper: wp.vec3f):
    """Write a box and widen the extent."""
    boxes.lower[i] = to_vec4f(lower)
    boxes.upper[i] = to_vec4f(upper)
    note_extent(boxes, lower, upper)


@wp.func
def store_nothing(boxes: Boxes, i: wp.int32):
    """Write a box that overlaps none."""
    boxes.lower[i] = wp.vec4f(NEVER)
    boxes.upper[i] = wp.vec4f(-NEVER)


def empty_boxes(object_count: int, copies: int, device: wp.Device) -> Boxes:
    """Room for boxes."""
    boxes = Boxes()
    total = object_count * copies
    boxes.lower = wp.empty(total, dtype=wp.vec4f, device=device)
    boxes.upper = wp.empty(total, dtype=wp.vec4f, device=device)
    boxes.object_count = object_count
    boxes.extent = wp.full(6, NOTHING, dtype=wp.int32, device=device)
    return boxes
