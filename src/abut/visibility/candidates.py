"""Pairs of what is left: boxes that overlap, by sweeping along an axis."""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.pairs import KeyLayout, PairQueue, PairQueues, pack_pair, push_pair
from abut.runtime import launch
from abut.soup import Soup
from abut.visibility.lists import share_corner
from abut.visibility.state import NEITHER

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

GROWN = wp.constant(wp.float32(2.0**-22))  # more than float32 loses when something is added


@wp.struct
class Boxes:
    """Boxes sorted by their lower ends along an axis; ``faces`` are the soup's."""

    faces: wp.array[wp.int32]
    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]
    axis: wp.int32


@wp.struct
class Apart:
    """What tells which pairs are none: objects, neighbours, and sets free of collisions."""

    object_of: wp.array[wp.int32]
    corner_ids: wp.array[wp.vec3i]  # none: faces of one object are no pair
    state: wp.array[wp.int32]


@wp.kernel
def box_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    wanted: wp.array[wp.int32],
    origin: wp.vec3d,
    around: wp.float32,
    # out
    boxes_out: Boxes,
):
    """Boxes of faces, with something around them."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        f = faces[wanted[i]]
        low, high = fit_aabb(points[f[0]], points[f[1]], points[f[2]], origin)
        if around > wp.float32(0.0):
            margin = wp.vec3f(around, around, around)
            grown = (wp.max(wp.abs(low), wp.abs(high)) + margin) * GROWN
            low = low - margin - grown
            high = high + margin + grown
        boxes_out.lower[i] = low
        boxes_out.upper[i] = high


@wp.func
def may_meet(apart: Apart, a: wp.int32, b: wp.int32):
    """Is a pair of faces worth a test?"""
    if apart.corner_ids.shape[0] == 0:
        if apart.object_of[a] == apart.object_of[b]:
            return False
    elif share_corner(apart.corner_ids[a], apart.corner_ids[b]):
        return False
    return apart.state[a] == NEITHER or apart.state[a] != apart.state[b]


@wp.kernel
def sweep_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    apart: Apart,
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """Each box with those that start before it ends."""
    axis = boxes.axis
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        low = boxes.lower[i]
        high = boxes.upper[i]
        j = i + 1
        while j < boxes.faces.shape[0] and boxes.lower[j][axis] <= high[axis]:
            other = boxes.lower[j]
            end = boxes.upper[j]
            if other[0] <= high[0] and other[1] <= high[1] and other[2] <= high[2]:
                if low[0] <= end[0] and low[1] <= end[1] and low[2] <= end[2]:
                    a = wp.min(boxes.faces[i], boxes.faces[j])
                    b = wp.max(boxes.faces[i], boxes.faces[j])
                    if may_meet(apart, a, b):
                        push_pair(pairs_out, pack_pair(0, a, b, bits))
            j += 1


def layout_of(soup: Soup) -> KeyLayout:
    """How pairs of the soup's faces are packed."""
    return KeyLayout.of(soup.face_count, soup.face_count)


def sweep_faces(
    soup: Soup, faces: wp.array, state: wp.array, *, distance: float = 0.0, within: bool = False
) -> tuple[PairQueues, int]:
    """(queues, count): their queue ``pairs`` holds the pairs of faces whose boxes overlap.

    Unsorted. Faces of one object are pairs only ``within``, and then not where they share a
    corner. Pairs inside FFV and inside SFV are left out.
    """
    device, count = soup.device, faces.shape[0]
    queues = PairQueues(device, pairs=max(4 * count, 1024))
    if count < 2:
        return queues, 0
    boxes = _sorted_boxes(soup, faces, distance)
    apart = Apart()
    apart.object_of, apart.state = soup.object_of, state
    if within:
        apart.corner_ids = soup.corner_ids
    while True:
        queues.clear()
        args = [boxes, apart, layout_of(soup).bits, queues["pairs"]]
        launch(sweep_kernel, count, args, device, grain=256)
        found = queues.read()
        if not queues.make_room(found):
            return queues, found["pairs"]


def _sorted_boxes(soup: Soup, faces: wp.array, distance: float) -> Any:
    device, count = soup.device, faces.shape[0]
    extent = soup.bounds[1] / 2 - soup.bounds[0] / 2
    axis = int(np.argmax(extent))
    found = _boxes(soup, faces, distance, axis)
    keys = wp.empty(2 * count, dtype=wp.float32, device=device)
    order = wp.empty(2 * count, dtype=wp.int32, device=device)
    starts = found.lower.view(wp.float32)[:, axis]
    if device.is_cpu:
        ranks = wp.array(np.argsort(starts.numpy(), kind="stable").astype(np.int32), device=device)
    else:
        wp.copy(keys[:count], starts.contiguous())
        wp.copy(order, wp.array(np.arange(count, dtype=np.int32), device=device), count=count)
        wp.utils.radix_sort_pairs(keys, order, count)
        ranks = order[:count]
    out = Boxes()
    out.axis = axis
    out.faces = wp.clone(wp.indexedarray(faces, [ranks]))
    out.lower = wp.clone(wp.indexedarray(found.lower, [ranks]))
    out.upper = wp.clone(wp.indexedarray(found.upper, [ranks]))
    return out


def _boxes(soup: Soup, faces: wp.array, distance: float, axis: int) -> Any:
    device, count = soup.device, faces.shape[0]
    out = Boxes()
    out.faces, out.axis = faces, axis
    out.lower = wp.empty(count, dtype=wp.vec3f, device=device)
    out.upper = wp.empty(count, dtype=wp.vec3f, device=device)
    middle = wp.vec3d(*(soup.bounds[0] / 2 + soup.bounds[1] / 2))
    around = float(np.nextafter(np.float32(distance / 2), np.float32(np.inf)))
    args = [soup.points, soup.faces, faces, middle, around if distance else 0.0, out]
    launch(box_kernel, count, args, device)
    return out
