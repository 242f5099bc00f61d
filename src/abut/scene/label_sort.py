"""Stable sort of face labels, for the faces of an object that is split."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import Task, launch
from abut.core.pair_queue import PairQueue, PairQueues, push_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

UINT16_RANGE = 1 << 16
FEW_CHANGES = 1 << 12  # changes that are copied to the host together with their number
MOST_KEPT = 1 << 20  # labels whose buffers are kept


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


@wp.kernel
def index_kernel(
    # in
    span: wp.vec3i,
    # out
    order_out: wp.array[wp.int32],
):
    """Number the rows."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        order_out[i] = i


@wp.kernel
def label_change_kernel(
    # in
    span: wp.vec3i,
    labels: wp.array[wp.int32],
    # out
    changes_out: PairQueue,
):
    """List where sorted labels change."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if i > 0:
            if labels[i] != labels[i - 1]:
                push_pair(changes_out, wp.int64(i))


class LabelSort:
    """Sorts labels; on CUDA the buffers of the last call are used again."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._buffers: CudaLabelSort | None = None

    def sort(self, labels: Any) -> tuple[wp.array, np.ndarray]:
        """The order that sorts labels, stable, and how many there are of each label."""
        if self.device.is_cpu:
            return _sort_on_cpu(np.asarray(labels))
        count = labels.shape[0]
        buffers = self._buffers
        if buffers is None or buffers.count != count:
            buffers = CudaLabelSort(count, self.device)
            self._buffers = buffers if count <= MOST_KEPT else None
        return buffers.sort(labels)


def _sort_on_cpu(labels: np.ndarray) -> tuple[wp.array, np.ndarray]:
    low, high = int(labels.min()), int(labels.max())
    if high - low < UINT16_RANGE:
        labels = (labels - low).astype(np.uint16)  # NumPy sorts these by counting
    order = np.argsort(labels, kind="stable").astype(np.int32)
    changes = np.flatnonzero(np.diff(labels[order])) + 1
    counts = np.diff(np.concatenate([[0], changes, [len(labels)]]))
    return wp.array(order, device="cpu"), counts


class CudaLabelSort:
    """Sorts ``count`` labels on the device; the host reads only where they change."""

    def __init__(self, count: int, device: wp.Device) -> None:
        self.count, self.device = count, device
        keys, order = (wp.empty(2 * count, dtype=wp.int32, device=device) for _ in range(2))
        self._keys, self._order = keys, order
        self._queues = PairQueues(device, changes=count)
        self._changes = self._queues["changes"].keys
        few = min(count, FEW_CHANGES)
        self._few = wp.empty(few, dtype=wp.int64, device="cpu", pinned=device.is_cuda)
        self._index = Task(index_kernel, count, [order], device)
        self._compare = Task(label_change_kernel, count, [keys, self._queues["changes"]], device)

    def sort(self, labels: Any) -> tuple[wp.array, np.ndarray]:
        """``LabelSort.sort``; the order is valid until the next call."""
        if isinstance(labels, wp.array) and labels.dtype == wp.int32:
            wp.copy(self._keys, labels, count=self.count)
        else:
            host = labels.numpy() if isinstance(labels, wp.array) else labels
            _, ranks = np.unique(host, return_inverse=True)  # any integers
            self._keys[: self.count].assign(ranks.reshape(-1).astype(np.int32))
        self._index.run()
        wp.utils.radix_sort_pairs(self._keys, self._order, self.count)
        self._queues.clear()
        self._compare.run()
        wp.copy(self._few, self._changes, count=self._few.shape[0])
        found = self._queues.read()["changes"]
        few = found <= self._few.shape[0]
        changes = np.sort((self._few if few else self._changes).numpy()[:found])
        return self._order[: self.count], np.diff(np.concatenate([[0], changes, [self.count]]))
