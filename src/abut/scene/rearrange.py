"""Moving rows about in the arrays of a pool."""

from typing import Any

import numpy as np
import warp as wp

from abut.hierarchy.forest import part_of
from abut.runtime import Kept, launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FEW_LABELS = 1 << 16


@wp.kernel
def scatter_kernel(
    # in
    span: wp.vec3i,
    rows: wp.array[wp.vec3d],
    starts: wp.array[wp.int32],
    firsts: wp.array[wp.int32],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Write rows, part after part, to where each part begins."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        part = part_of(starts, i)
        points_out[firsts[part] + i - starts[part]] = rows[i]


@wp.kernel
def gather_kernel(
    # in
    span: wp.vec3i,
    faces: wp.array[wp.vec3i],
    order: wp.array[wp.int32],
    first: wp.int32,
    # out
    faces_out: wp.array[wp.vec3i],
):
    """Faces from ``first`` on, in another order."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        faces_out[i] = faces[first + order[i]]


def scatter_points(
    rows: wp.array, firsts: np.ndarray, counts: np.ndarray, points: wp.array, known: Kept
) -> None:
    """Write rows, ``counts`` at a time, into ``points`` from ``firsts`` on."""
    device = points.device
    if (firsts[:-1] + counts[:-1] == firsts[1:]).all():  # they lie side by side
        wp.copy(points, rows, dest_offset=int(firsts[0]), count=rows.shape[0])
        return
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    args = [rows, wp.array(starts, device=device), wp.array(firsts.astype(np.int32), device=device)]
    launch(scatter_kernel, rows.shape[0], [*args, points], device)


def gather_faces(faces: wp.array, order: wp.array, first: int, start: int) -> None:
    """Write the faces from ``first`` on, in another order, from ``start`` on."""
    count = order.shape[0]
    ordered = wp.empty(count, dtype=wp.vec3i, device=faces.device)
    launch(gather_kernel, count, [faces, order, first, ordered], faces.device)
    wp.copy(faces, ordered, dest_offset=start, count=count)


def sorted_labels(labels: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """The order that brings equal labels together, ascending, and how many of each there are."""
    if device.is_cuda:
        return _sorted_on_device(labels, device)
    host = np.asarray(labels)
    low, high = int(host.min()), int(host.max())
    if high - low < FEW_LABELS:
        host = (host - low).astype(np.uint16)  # which NumPy sorts by counting
    order = np.argsort(host, kind="stable").astype(np.int32)
    changes = np.flatnonzero(np.diff(host[order])) + 1
    counts = np.diff(np.concatenate([[0], changes, [len(host)]]))
    return wp.array(order, device=device), counts


def _sorted_on_device(labels: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    count = labels.shape[0]
    keys = wp.empty(2 * count, dtype=wp.int64, device=device)
    wide = labels if isinstance(labels, wp.array) else np.asarray(labels)
    host = wide.numpy() if isinstance(wide, wp.array) else wide
    keys[:count].assign(host.astype(np.int64))
    order = wp.empty(2 * count, dtype=wp.int32, device=device)
    order[:count].assign(np.arange(count, dtype=np.int32))
    wp.utils.radix_sort_pairs(keys, order, count)
    ordered = keys[:count].numpy()
    changes = np.flatnonzero(np.diff(ordered)) + 1
    return order[:count], np.diff(np.concatenate([[0], changes, [count]]))
