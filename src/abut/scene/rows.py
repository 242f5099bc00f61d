"""Keys of faces and of meetings as rows."""

from typing import Any

import numpy as np
import warp as wp

from abut.pairs import KeyLayout, PairQueue, queue_stop, unpack_pair
from abut.runtime import Task, launch
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
def pad_kernel(
    # in
    span: wp.vec3i,
    highest: wp.int64,
    # out
    queue_out: PairQueue,
):
    """Let what is not filled of the first keys of a queue be above all others."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if wp.int64(i) >= queue_out.count[0]:
            queue_out.keys[i] = highest


class RowsAhead:
    """Sorts and unpacks the hits of a search on CUDA before it is known how many there are.

    Args:
        queues: With room for twice ``size`` hits, as sorting needs.
        objects, layout: Bits of meetings, and of faces.
        size: Rows that there is room for; more have to be made anew.
    """

    def __init__(
        self, queues: SceneQueues, objects: KeyLayout, layout: KeyLayout, size: int
    ) -> None:
        self.size, self._queues = size, queues
        meetings = queues["objects"].keys
        self._width = layout.width + max(meetings.shape[0] - 1, 1).bit_length()
        device, hits = queues.device, queues["hits"]
        self._pad = Task(pad_kernel, size, [wp.int64(1 << self._width), hits], device)
        args = [meetings, hits, layouts_of(objects, layout), empty_rows(0, device)]
        self._unpack = Task(queue_row_kernel, size, args, device)

    def start(self) -> tuple[wp.array, wp.array, wp.array]:
        """Copies of the scene, objects and faces of each row, once the device has finished."""
        rows = empty_rows(self.size, self._queues.device)
        self._pad.run()
        self._queues.sort_hits(self.size, self._width + 1)
        self._unpack.give(3, rows)
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
