"""Moving rows about in the arrays of a pool."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.batched import slice_of_item
from abut.core.launch import Task, launch
from abut.core.pair_queue import PairQueue, PairQueues, push_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FEW_LABELS = 1 << 16
FEW_CHANGES = 1 << 12  # come to the host together with their number
MOST_KEPT = 1 << 20  # labels whose buffers are kept


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
        part = slice_of_item(starts, i)
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


class LabelOrder:
    """Brings equal labels together; on CUDA with buffers that serve again."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._room: LabelRoom | None = None

    def sort(self, labels: Any) -> tuple[wp.array, np.ndarray]:
        """The order that brings equal labels together, ascending, and how many of each."""
        if self.device.is_cpu:
            return _sorted_here(np.asarray(labels))
        count = labels.shape[0]
        room = self._room
        if room is None or room.count != count:
            room = LabelRoom(count, self.device)
            self._room = room if count <= MOST_KEPT else None
        return room.sort(labels)


def _sorted_here(labels: np.ndarray) -> tuple[wp.array, np.ndarray]:
    low, high = int(labels.min()), int(labels.max())
    if high - low < FEW_LABELS:
        labels = (labels - low).astype(np.uint16)  # which NumPy sorts by counting
    order = np.argsort(labels, kind="stable").astype(np.int32)
    changes = np.flatnonzero(np.diff(labels[order])) + 1
    counts = np.diff(np.concatenate([[0], changes, [len(labels)]]))
    return wp.array(order, device="cpu"), counts


class LabelRoom:
    """Buffers and launches that sort so many labels on CUDA; only changes come to the host."""

    def __init__(self, count: int, device: wp.Device) -> None:
        self.count, self.device = count, device
        keys, order = (wp.empty(2 * count, dtype=wp.int32, device=device) for _ in range(2))
        self._keys, self._order = keys, order
        self._queues = PairQueues(device, changes=count)
        self._changes = self._queues["changes"].keys
        few = min(count, FEW_CHANGES)
        self._few = wp.empty(few, dtype=wp.int64, device="cpu", pinned=device.is_cuda)
        self._number = Task(number_kernel, count, [order], device)
        self._compare = Task(change_kernel, count, [keys, self._queues["changes"]], device)

    def sort(self, labels: Any) -> tuple[wp.array, np.ndarray]:
        """As LabelOrder.sort; the order is valid until the next one."""
        if isinstance(labels, wp.array) and labels.dtype == wp.int32:
            wp.copy(self._keys, labels, count=self.count)
        else:
            host = labels.numpy() if isinstance(labels, wp.array) else labels
            _, numbers = np.unique(host, return_inverse=True)  # any integers
            self._keys[: self.count].assign(numbers.reshape(-1).astype(np.int32))
        self._number.run()
        wp.utils.radix_sort_pairs(self._keys, self._order, self.count)
        self._queues.clear()
        self._compare.run()
        wp.copy(self._few, self._changes, count=self._few.shape[0])
        found = self._queues.read()["changes"]
        few = found <= self._few.shape[0]
        changes = np.sort((self._few if few else self._changes).numpy()[:found])
        return self._order[: self.count], np.diff(np.concatenate([[0], changes, [self.count]]))
