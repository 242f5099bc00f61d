"""Build a linear bounding volume hierarchy in one bottom-up pass (Apetrei 2014).

One thread per leaf moves upwards; of two siblings the second to arrive continues with the parent,
so that one launch makes topology and boxes. The BVH depends on the sorted codes alone, not on the
order of arrival: it is the same on every device and with any number of threads.
"""

import numpy as np
import warp as wp

from abut.bounds.float32 import row_xyz
from abut.bvh.layout import Bvh, BvhView, vec4_with_int
from abut.bvh.morton import morton_order
from abut.core.atomics import atomic_exchange
from abut.core.launch import launch
from abut.core.memory_access import load_l2_vec4f

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NO_SIBLING = -1
FAR_FROM_ZERO = 16.0  # extents; nearer meshes keep the origin 0 and share a frame


@wp.func
def split_height(codes: wp.array[wp.int32], s: wp.int32):
    """Return the height of the split between leaves s and s + 1; greater is nearer to the root."""
    by_code = wp.uint64(wp.uint32(codes[s] ^ codes[s + 1]))
    return (by_code << wp.uint64(32)) | wp.uint64(wp.uint32(s ^ (s + 1)))


@wp.func
def is_left_child(
    codes: wp.array[wp.int32], first: wp.int32, last: wp.int32, begin: wp.int32, end: wp.int32
):
    """Return whether the node over leaves first..last is its parent's left child.

    All its ancestors that matter lie over some of the leaves begin..end - 1.
    """
    if first == begin:
        return True
    if last == end - 1:
        return False
    return split_height(codes, last) < split_height(codes, first - 1)


@wp.func
def merge_upwards(
    k: wp.int32,
    face: wp.int32,
    box_lower: wp.vec3f,
    box_upper: wp.vec3f,
    codes: wp.array[wp.int32],
    far_ends: wp.array[wp.int32],
    tree: BvhView,
):
    """Merge siblings from leaf k upwards, for as long as the sibling arrived before."""
    count = tree.leaf_slots.shape[0]
    lower = box_lower
    upper = box_upper
    link = -1 - face
    first = wp.int32(k)
    last = wp.int32(k)
    merging = wp.bool(True)
    while merging:
        slot = 2 * count - 2
        split = wp.int32(-1)
        left = wp.bool(True)
        if first > 0 or last < count - 1:
            left = is_left_child(codes, first, last, 0, count)
            split = wp.where(left, last, first - 1)
            slot = 2 * split + wp.where(left, 0, 1)
        escape = wp.where(last < count - 1, 2 * last + 1, -1)  # right of the split at the end
        tree.nodes[2 * slot] = vec4_with_int(lower, link)
        tree.nodes[2 * slot + 1] = vec4_with_int(upper, escape)
        if link < 0:
            tree.leaf_slots[k] = slot
        else:
            tree.split_slots[link] = slot
        merging = False
        if split >= 0:
            far_end = atomic_exchange(far_ends, split, wp.where(left, first, last))
            if far_end >= 0:  # the sibling arrived before
                merging = True
                low = load_l2_vec4f(tree.nodes, 2 * (slot ^ 1))
                high = load_l2_vec4f(tree.nodes, 2 * (slot ^ 1) + 1)
                lower = wp.min(lower, row_xyz(low))
                upper = wp.max(upper, row_xyz(high))
                first = wp.where(left, first, far_end)
                last = wp.where(left, far_end, last)
                link = split


@wp.kernel
def build_lbvh_kernel(
    # in
    span: wp.vec3i,
    boxes: wp.array[wp.vec4f],
    codes: wp.array[wp.int32],
    order: wp.array[wp.int32],
    far_ends: wp.array[wp.int32],
    # out
    tree_out: BvhView,
):
    """Merge the boxes of faces upwards from every leaf."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        face = order[k]
        lower = row_xyz(boxes[2 * face])
        upper = row_xyz(boxes[2 * face + 1])
        merge_upwards(k, face, lower, upper, codes, far_ends, tree_out)


def frame_origin(bounds: np.ndarray) -> np.ndarray:
    """Return the origin of float32 boxes: zero, or the centre of a mesh that is far from zero."""
    with np.errstate(over="ignore"):
        centre = bounds.mean(axis=0)
    if not np.isfinite(centre).all() or in_frame(np.zeros(3), bounds):
        return np.zeros(3)
    return centre


def in_frame(origin: np.ndarray, bounds: np.ndarray) -> bool:
    """Return whether float32 relative to ``origin`` is fine enough for the size of the mesh."""
    with np.errstate(over="ignore"):
        return bool(np.abs(bounds - origin).max() <= FAR_FROM_ZERO * (bounds[1] - bounds[0]).max())


def allocate_bvh(count: int, origin: np.ndarray, device: wp.Device) -> Bvh:
    """Allocate a BVH of ``count`` leaves."""
    inner = max(count - 1, 1)
    return Bvh(
        nodes=wp.empty(2 * (2 * count - 1), dtype=wp.vec4f, device=device),
        leaf_slots=wp.empty(count, dtype=wp.int32, device=device),
        split_slots=wp.empty(inner, dtype=wp.int32, device=device),
        origin=origin,
        face_count=count,
    )


def build_lbvh(points: wp.array, faces: wp.array, bounds: np.ndarray) -> Bvh:
    """Build the LBVH of faces whose vertices lie within ``bounds`` (2, 3)."""
    device, count = faces.device, faces.shape[0]
    tree = allocate_bvh(count, frame_origin(bounds), device)
    codes, order, boxes = morton_order(points, faces, bounds, tree.origin)
    far_ends = wp.full(max(count - 1, 1), NO_SIBLING, dtype=wp.int32, device=device)
    launch(build_lbvh_kernel, count, [boxes, codes, order, far_ends, tree.view()], device)
    return tree
