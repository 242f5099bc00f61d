"""Rows of the one pair of faces that was found for each pair of objects, made on the device."""

from typing import Any

import warp as wp

from abut.core.atomics import atomic_min_int64
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import (
    NO_KEY,
    NO_KEY_INT,
    KeyLayout,
    PairQueue,
    PairQueues,
    queue_stop,
    unpack_pair,
)
from abut.scene.rows import Rows, empty_rows, layouts_of, write_row

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def lowest_hits_kernel(
    # in
    span: wp.vec3i,
    hits: PairQueue,
    width: wp.int64,
    # out
    lowest_out: wp.array[wp.int64],
):
    """Write the lowest hit of each object pair."""
    for i in range(span[0] + wp.tid(), queue_stop(hits, span[1]), span[2]):
        atomic_min_int64(lowest_out, wp.int32(hits.keys[i] >> width), hits.keys[i])


@wp.kernel
def choose_hit_kernel(
    # in
    span: wp.vec3i,
    object_pairs: PairQueue,
    lowest: wp.array[wp.int64],
    # out
    best_out: wp.array[wp.int64],
    found_out: wp.array[wp.int32],
):
    """Take the lowest hit where the search had none, and write 1 for each pair that has one."""
    stop = queue_stop(object_pairs, span[1])
    for rank in range(span[0] + wp.tid(), span[1], span[2]):
        found_out[rank] = 0
        if rank < stop:
            if best_out[rank] == NO_KEY:
                best_out[rank] = lowest[rank]
            found_out[rank] = wp.int32(best_out[rank] != NO_KEY)


@wp.kernel
def first_row_kernel(
    # in
    span: wp.vec3i,
    object_pairs: PairQueue,
    best: wp.array[wp.int64],
    ends: wp.array[wp.int32],
    layouts: wp.vec4i,
    first_external: wp.int32,
    # out
    rows_out: Rows,
):
    """Unpack the hit of each object pair, in the order of pairs, as far as there is room."""
    for rank in range(span[0] + wp.tid(), queue_stop(object_pairs, span[1]), span[2]):
        at = ends[rank] - 1
        if best[rank] != NO_KEY and at < rows_out.environments.shape[0]:
            row = unpack_pair(best[rank], wp.vec2i(layouts[2], layouts[3]))
            write_row(rows_out, at, object_pairs.keys[rank], row, layouts, first_external)


class FirstRowsOfPairs:
    """One row for each pair of objects that meets, without waiting for their number.

    Args:
        queues: Queues of a search; object pairs are sorted, hits are of the exact stage.
        best: The hit that the search has found for each object pair, or NO_KEY.
        objects, layout: Bits of keys that objects take, and faces.
        first_external: As in Part.
    """

    def __init__(
        self,
        queues: PairQueues,
        best: wp.array,
        objects: KeyLayout,
        layout: KeyLayout,
        first_external: int,
    ) -> None:
        self._device, count, pairs = queues.device, best.shape[0], queues["objects"]
        self._lowest = wp.empty(count, dtype=wp.int64, device=self._device)
        self._found = wp.empty(count, dtype=wp.int32, device=self._device)
        self._ends = wp.empty_like(self._found)
        pinned = self._device.is_cuda
        self._total = wp.empty(1, dtype=wp.int32, device="cpu", pinned=pinned)
        args = [queues["hits"], wp.int64(layout.width), self._lowest]
        alone = {"grain": UNKNOWN_COUNT}  # on the CPU, atomics are for one thread
        self._lower = Task(lowest_hits_kernel, UNKNOWN_COUNT, args, self._device, **alone)
        args = [pairs, self._lowest, best, self._found]
        self._choose = Task(choose_hit_kernel, count, args, self._device, grain=1 << 15)
        args = [pairs, best, self._ends, layouts_of(objects, layout), first_external]
        args += [empty_rows(0, self._device)]
        self._unpack = Task(first_row_kernel, count, args, self._device, grain=1 << 15)

    def start(self, size: int) -> Any:
        """Begin to make at most ``size`` rows."""
        self._lowest.fill_(NO_KEY_INT)
        self._lower.run()
        self._choose.run()
        wp.utils.array_scan(self._found, self._ends, inclusive=True)
        wp.copy(self._total, self._ends, src_offset=self._ends.shape[0] - 1, count=1)
        return self._rows(size)

    def rows(self, made: Any) -> tuple[wp.array, wp.array, wp.array]:
        """(environments, objects, faces) of all rows, after the host has waited for the device.

        Where ``made`` has too few, they are unpacked again.
        """
        count = int(self._total.numpy()[0])
        if count > made.environments.shape[0]:
            made = self._rows(count)
        rows = (made.environments, made.objects, made.pairs)
        return tuple(array[:count] if array.shape[0] > count else array for array in rows)

    def _rows(self, size: int) -> Any:
        rows = empty_rows(size, self._device)
        if size:
            self._unpack.set_arg(5, rows)
            self._unpack.run()
        return rows
