"""Moving rows about in the arrays of a pool."""

from typing import Any

import numpy as np
import warp as wp

from abut.hierarchy.forest import part_of
from abut.pairs import PairQueue, PairQueues, push_pair
from abut.runtime import launch

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
    rows: wp.array, firsts: np.ndarray, counts: np.ndarray, points: wp.array
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


@wp.kernel
def number_kernel(
    # in
    span: wp.vec3i,
    # out
    order_out: wp.array[wp.int32],
):
    """Count."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        order_out[i] = i


@wp.kernel
def change_kernel(
    # in
    span: wp.vec3i,
    labels: wp.array[wp.int32],
    # out
    changes_out: PairQueue,
):
    """Where sorted labels change."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if i > 0:
            if labels[i] != labels[i - 1]:
                push_pair(changes_out, wp.int64(i))


def _sorted_on_device(labels: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """The same where only the places of changes come to the host."""
    count = labels.shape[0]
    keys, order = (wp.empty(2 * count, dtype=wp.int32, device=device) for _ in range(2))
    if isinstance(labels, wp.array) and labels.dtype == wp.int32 and labels.device == device:
        wp.copy(keys, labels, count=count)
    else:
        host = labels.numpy() if isinstance(labels, wp.array) else labels
        _, numbers = np.unique(host, return_inverse=True)  # any integers
        keys[:count].assign(numbers.reshape(-1).astype(np.int32))
    launch(number_kernel, count, [order], device)
    wp.utils.radix_sort_pairs(keys, order, count)
    queues = PairQueues(device, changes=count)
    launch(change_kernel, count, [keys, queues["changes"]], device)
    found = queues.read()["changes"]
    changes = np.sort(queues["changes"].keys[:found].numpy())
    return order[:count], np.diff(np.concatenate([[0], changes, [count]]))
