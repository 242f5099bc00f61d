"""Stable sort of face labels, for the faces of an object that is split."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.core.pair_sort import sort_with_order

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

UINT16_RANGE = 1 << 16


@wp.kernel
def reorder_faces_kernel(
    # in
    span: wp.vec3i,
    faces: wp.array[wp.vec3i],
    order: wp.array[wp.int32],
    first: wp.int32,
    # out
    faces_out: wp.array[wp.vec3i],
):
    """Gather faces from ``first`` on by ``order``."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        faces_out[i] = faces[first + order[i]]


def reorder_faces(faces: wp.array, order: wp.array, first: int, start: int) -> None:
    """Write the faces from ``first`` on, by ``order``, from ``start`` on."""
    count = order.shape[0]
    ordered = wp.empty(count, dtype=wp.vec3i, device=faces.device)
    launch(reorder_faces_kernel, count, [faces, order, first, ordered], faces.device)
    wp.copy(faces, ordered, dest_offset=start, count=count)


def sort_labels(labels: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """The order that sorts (n,) integers, stable, and how many there are of each label."""
    if device.is_cpu:
        return _sort_by_counting(np.asarray(labels))
    return sort_on_device(labels, device)


def sort_on_device(labels: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """``sort_labels`` of labels on a device; only the number of each label reaches the host."""
    count = labels.shape[0]
    keys = wp.empty(2 * count, dtype=wp.int32, device=device)
    if isinstance(labels, wp.array) and labels.dtype == wp.int32:
        wp.copy(keys, labels, count=count)
    else:
        host = labels.numpy() if isinstance(labels, wp.array) else labels
        _, ranks = np.unique(host, return_inverse=True)  # any integers
        keys[:count].assign(ranks.reshape(-1).astype(np.int32))
    order = sort_with_order(keys, count)
    unique, counts = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
    kinds = wp.utils.runlength_encode(keys, unique, counts, value_count=count)
    return order, counts[:kinds].numpy()


def _sort_by_counting(labels: np.ndarray) -> tuple[wp.array, np.ndarray]:
    low, high = int(labels.min()), int(labels.max())
    if high - low < UINT16_RANGE:
        labels = (labels - low).astype(np.uint16)  # NumPy sorts these by counting
    order = np.argsort(labels, kind="stable").astype(np.int32)
    changes = np.flatnonzero(np.diff(labels[order])) + 1
    counts = np.diff(np.concatenate([[0], changes, [len(labels)]]))
    return wp.array(order, device="cpu"), counts
