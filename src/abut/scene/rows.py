"""Keys of faces and of meetings as rows."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import Task, launch
from abut.core.pair_queue import KeyLayout, PairQueue, queue_stop, unpack_pair
from abut.scene.queues import SceneQueues

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


LEAST_EXPECTED = 1024  # rows


@wp.struct
class Rows:
    """Copy of the scene, objects and faces of pairs."""

    copies: wp.array[wp.int32]
    objects: wp.array2d[wp.int32]
    pairs: wp.array2d[wp.int32]


@wp.func
def write_row(
    rows: Rows, i: wp.int32, meetings: wp.array[wp.int64], key: wp.int64, layouts: wp.vec4i
):
    """Unpack a key (rank of a meeting, faces); ``layouts`` are the bits of meetings and faces."""
    row = unpack_pair(key, wp.vec2i(layouts[2], layouts[3]))
    met = unpack_pair(meetings[row[0]], wp.vec2i(layouts[0], layouts[1]))
    rows.copies[i] = met[0]
    rows.objects[i, 0] = met[1]
    rows.objects[i, 1] = met[2]
    rows.pairs[i, 0] = row[1]
    rows.pairs[i, 1] = row[2]


@wp.kernel
def row_kernel(
    # in
    span: wp.vec3i,
    meetings: wp.array[wp.int64],
    keys: wp.array[wp.int64],
    layouts: wp.vec4i,
    # out
    rows_out: Rows,
):
    """Unpack keys."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        write_row(rows_out, i, meetings, keys[i], layouts)


@wp.kernel
def queue_row_kernel(
    # in
    span: wp.vec3i,
    meetings: wp.array[wp.int64],
    queue: PairQueue,
    layouts: wp.vec4i,
    # out
    rows_out: Rows,
):
    """Unpack the keys of a queue, as far as it is filled and there is room."""
    for i in range(span[0] + wp.tid(), queue_stop(queue, span[1]), span[2]):
        write_row(rows_out, i, meetings, queue.keys[i], layouts)


@wp.kernel
def copy_kernel(
    # in
    span: wp.vec3i,
    queue: PairQueue,
    highest: wp.int64,
    # out
    keys_out: wp.array[wp.int64],
):
    """The first keys of a queue; what is not filled of them is above all others."""
    stop = queue_stop(queue, span[1])
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        key = highest
        if i < stop:
            key = queue.keys[i]
        keys_out[i] = key


class RowsAhead:
    """Sorts and unpacks the hits of a search on CUDA before it is known how many there are.

    A copy of them: sorting needs the room behind, where there may be more hits than were expected.

    Args:
        queues: Of the search.
        objects, layout: Bits of meetings, and of faces.
        size: Rows that there is room for; more have to be made anew.
    """

    def __init__(
        self, queues: SceneQueues, objects: KeyLayout, layout: KeyLayout, size: int
    ) -> None:
        self.size, self._device = size, queues.device
        meetings, hits = queues["objects"].keys, queues["hits"]
        self._width = layout.width + max(meetings.shape[0] - 1, 1).bit_length()
        self._sorted = PairQueue()
        self._sorted.keys = wp.empty(2 * size, dtype=wp.int64, device=self._device)
        self._sorted.count = hits.count
        self._along = wp.empty(2 * size, dtype=wp.int32, device=self._device)
        args = [hits, wp.int64(1 << self._width), self._sorted.keys]
        self._copy = Task(copy_kernel, size, args, self._device)
        args = [meetings, self._sorted, layouts_of(objects, layout), empty_rows(0, self._device)]
        self._unpack = Task(queue_row_kernel, size, args, self._device)

    def start(self) -> tuple[wp.array, wp.array, wp.array]:
        """Copies of the scene, objects and faces of each row, once the device has finished."""
        rows = empty_rows(self.size, self._device)
        self._copy.run()
        wp.utils.radix_sort_pairs(self._sorted.keys, self._along, self.size, 0, self._width + 1)
        self._unpack.set_arg(3, rows)
        self._unpack.run()
        return rows.copies, rows.objects, rows.pairs


def layouts_of(objects: KeyLayout, layout: KeyLayout) -> wp.vec4i:
    """Bits of keys of meetings, and of faces."""
    return wp.vec4i(objects.bits_a, objects.bits_b, layout.bits_a, layout.bits_b)


def empty_rows(count: int, device: wp.Device) -> Any:
    """Room for so many rows."""
    rows = Rows()
    rows.copies = wp.empty(count, dtype=wp.int32, device=device)
    rows.objects, rows.pairs = (
        wp.empty((count, 2), dtype=wp.int32, device=device) for _ in range(2)
    )
    return rows


def object_rows(
    meetings: wp.array, keys: Any, objects: KeyLayout, layout: KeyLayout, device: wp.Device
) -> tuple[wp.array, wp.array, wp.array]:
    """((n,) copies, (n, 2) objects, (n, 2) faces) of keys, of NumPy or of the device."""
    count = len(keys)
    if isinstance(keys, np.ndarray):
        keys = wp.array(keys, dtype=wp.int64, device=device)
    rows = empty_rows(count, device)
    args = [meetings, keys, layouts_of(objects, layout), rows]
    launch(row_kernel, count, args, device, grain=1 << 15)
    return rows.copies, rows.objects, rows.pairs
