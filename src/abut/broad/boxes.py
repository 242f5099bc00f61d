"""World boxes of objects, and the filters that say which pairs are tested."""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.float32 import difference_lower_bounds, row_xyz_float64, to_sortable, to_vec4f
from abut.bvh.batched import BatchedBvh, bvh_at
from abut.bvh.layout import load_node, root_of
from abut.core.atomics import atomic_max_int32
from abut.core.pair_queue import PairQueue, find_key, pack_pair, push_pair
from abut.geometry.poses import is_rigid
from abut.operands.posed_pairs import ScenePairs

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROUNDING = wp.constant(wp.float64(2.0**-48))  # of posed coordinates, 32 times over
LIMIT = wp.constant(wp.float32(1.0e37))
FARTHEST = wp.constant(wp.float32(2.5e38))  # corner of boxes without bounds
BEYOND_ALL = wp.constant(wp.float32(3.0e38))
EMPTY_EXTENT = wp.constant(-(2**31))  # below every sortable float
EVERYWHERE = float("inf")  # a padding with which all boxes overlap

# Roles of an object in a question: pairs of one object of each are asked about.
WHICH = wp.constant(1)
AGAINST = wp.constant(2)
BOTH_ROLES = 3


@wp.struct
class Boxes:
    """Boxes of ``object_count`` objects in each of several environments.

    Fourth components have no meaning. The box of a removed object overlaps none. An axis along
    which float32 cannot hold a box has no bounds there: it extends to FARTHEST at both ends.
    """

    lower: wp.array[wp.vec4f]
    upper: wp.array[wp.vec4f]
    object_count: wp.int32
    extent: wp.array[wp.int32]  # of all boxes: sortable floats, lower corners negated


@wp.struct
class Filters:
    """Filters of object pairs; empty arrays leave all pairs."""

    about: wp.array[wp.vec4i]  # of each object: is static, group, mask, roles
    ignored: wp.array[wp.int64]  # pairs, low << 32 | high, ascending


def make_filters(
    static: np.ndarray,
    group: np.ndarray,
    mask: np.ndarray,
    ignored: np.ndarray,
    device: wp.Device,
    roles: Any = BOTH_ROLES,
) -> Filters:
    """Make the struct for kernels; ``ignored`` are keys low << 32 | high, ascending."""
    filters = Filters()
    columns = np.broadcast_arrays(static, group, mask, roles)
    about = np.stack(columns, axis=1).astype(np.int32)
    filters.about = wp.array(about, dtype=wp.vec4i, device=device)
    filters.ignored = wp.array(ignored, dtype=wp.int64, device=device)
    return filters


@wp.func
def are_asked(roles_a: wp.int32, roles_b: wp.int32):
    """Whether a question is about two objects in this order: a of WHICH, b of AGAINST."""
    return (roles_a & WHICH) != 0 and (roles_b & AGAINST) != 0


@wp.func
def passes_filters(filters: Filters, i: wp.int32, j: wp.int32):
    """Whether the filters leave a pair of objects, in either order."""
    if filters.about.shape[0] > 0:
        a = filters.about[i]
        b = filters.about[j]
        if a[0] * b[0] != 0 or (a[1] & b[2]) == 0 or (b[1] & a[2]) == 0:
            return False
        if not (are_asked(a[3], b[3]) or are_asked(b[3], a[3])):
            return False
    key = (wp.int64(wp.min(i, j)) << wp.int64(32)) | wp.int64(wp.max(i, j))
    return find_key(filters.ignored, filters.ignored.shape[0], key) < 0


@wp.func
def in_order(filters: Filters, i: wp.int32, j: wp.int32):
    """The objects of a pair that passes: the one of WHICH first; where both may be, the lower."""
    low = wp.min(i, j)
    high = wp.max(i, j)
    if filters.about.shape[0] > 0:
        if not are_asked(filters.about[low][3], filters.about[high][3]):
            return wp.vec2i(high, low)
    return wp.vec2i(low, high)


@wp.func
def push_objects(
    filters: Filters,
    environment: wp.int32,
    i: wp.int32,
    j: wp.int32,
    bits: wp.vec2i,
    queue: PairQueue,
):
    """Append a pair of objects, if the filters leave it."""
    if passes_filters(filters, i, j):
        pair = in_order(filters, i, j)
        push_pair(queue, pack_pair(environment, pair[0], pair[1], bits))


@wp.func
def box_of_posed(bvhs: BatchedBvh, shape: wp.int32, pose: wp.mat44d, margin: wp.float64):
    """Lower and upper corner of the world box of a posed shape, padded by a margin.

    Guarantee:
        Conservative. The box contains all points within the margin of a posed point.
    """
    part = bvhs.slices[shape]
    tree = bvh_at(bvhs, part)
    root = load_node(tree.nodes, root_of(tree))
    half = (row_xyz_float64(root.high) - row_xyz_float64(root.low)) * wp.float64(0.5)
    centre = part.origin + half + row_xyz_float64(root.low)
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
        if not (lower[i] > -wp.float64(FARTHEST) and upper[i] < wp.float64(FARTHEST)):
            lower[i] = -wp.float64(FARTHEST)
            upper[i] = wp.float64(FARTHEST)
    return difference_lower_bounds(lower), -difference_lower_bounds(-upper)


@wp.func
def store_box(boxes: Boxes, i: wp.int32, lower: wp.vec3f, upper: wp.vec3f):
    """Write a box and extend the extent of all boxes."""
    boxes.lower[i] = to_vec4f(lower)
    boxes.upper[i] = to_vec4f(upper)
    for x in range(3):
        atomic_max_int32(boxes.extent, x, to_sortable(-wp.clamp(lower[x], -LIMIT, LIMIT)))
        atomic_max_int32(boxes.extent, 3 + x, to_sortable(wp.clamp(upper[x], -LIMIT, LIMIT)))


@wp.func
def store_empty(boxes: Boxes, i: wp.int32):
    """Write a box that overlaps none."""
    boxes.lower[i] = wp.vec4f(BEYOND_ALL)
    boxes.upper[i] = wp.vec4f(-BEYOND_ALL)


@wp.kernel
def object_box_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    margin: wp.float64,
    own: wp.bool,
    filters: Filters,
    # out
    boxes_out: Boxes,
    bad_out: PairQueue,
    objects_out: PairQueue,
):
    """Write the box of each object; list poses that are not rigid and, if ``own``, self pairs."""
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        environment = at / pairs.object_count
        i = at - environment * pairs.object_count
        shape = pairs.mesh[i]
        count = wp.int32(0)
        if shape >= 0:
            count = pairs.bvhs.slices[shape].face_count
            if not is_rigid(pairs.poses[at]):
                push_pair(bad_out, wp.int64(at))
        if count == 0:
            store_empty(boxes_out, at)
        else:
            lower, upper = box_of_posed(pairs.bvhs, shape, pairs.poses[at], margin)
            store_box(boxes_out, at, lower, upper)
        if own and count > 1 and are_asked(filters.about[i][3], filters.about[i][3]):
            push_pair(objects_out, pack_pair(environment, i, i, pairs.object_bits))


def empty_boxes(object_count: int, environments: int, device: wp.Device) -> Boxes:
    """Allocate boxes."""
    boxes = Boxes()
    total = object_count * environments
    boxes.lower = wp.empty(total, dtype=wp.vec4f, device=device)
    boxes.upper = wp.empty(total, dtype=wp.vec4f, device=device)
    boxes.object_count = object_count
    boxes.extent = wp.full(6, EMPTY_EXTENT, dtype=wp.int32, device=device)
    return boxes
