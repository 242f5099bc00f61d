"""Sorts of keys on CUDA: by counting, by comparison, by Warp's radix sort.

The counting sort is for the pairs of a queue. A row is a pose and a face of a. Rows are many and
short, so finding the rank of a pair in its row by comparison costs less than the passes of a radix
sort.
"""

from typing import Any

import warp as wp

from abut.core.atomics import atomic_increment
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import PairQueue, queue_stop

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_ROWS = 1 << 22
FEW_PAIRS = wp.constant(1024)  # fewer are compared with each other
MOST_PAIRS = wp.constant(1 << 17)  # of more in one row, a radix sort is faster


@wp.func
def few_stop(queue: PairQueue, stop: wp.int32):
    """Return the end of the queue, 0 if it holds too many pairs."""
    end = queue_stop(queue, stop)
    if end > MOST_PAIRS:
        end = 0
    return end


@wp.kernel
def count_rows_kernel(
    # in
    span: wp.vec3i,
    queue: PairQueue,
    column_bits: wp.int32,
    # out
    counts_out: wp.array[wp.int32],
    ranks_out: wp.array[wp.int32],
):
    """Count the pairs of each row; each pair gets a number within its row."""
    for i in range(span[0] + wp.tid(), few_stop(queue, span[1]), span[2]):
        row = wp.int32(queue.keys[i] >> wp.int64(column_bits))
        ranks_out[i] = atomic_increment(counts_out, row)


@wp.kernel
def gather_rows_kernel(
    # in
    span: wp.vec3i,
    queue: PairQueue,
    column_bits: wp.int32,
    starts: wp.array[wp.int32],
    ranks: wp.array[wp.int32],
    # out
    keys_out: wp.array[wp.int64],
):
    """Gather the pairs of each row, in the order of their numbers."""
    for i in range(span[0] + wp.tid(), few_stop(queue, span[1]), span[2]):
        row = wp.int32(queue.keys[i] >> wp.int64(column_bits))
        keys_out[starts[row] + ranks[i]] = queue.keys[i]


@wp.kernel
def rank_in_rows_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    column_bits: wp.int32,
    counts: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    # out
    queue_out: PairQueue,
):
    """Write each pair after the lower ones of its row."""
    for i in range(span[0] + wp.tid(), few_stop(queue_out, span[1]), span[2]):
        key = keys[i]
        row = wp.int32(key >> wp.int64(column_bits))
        start = starts[row]
        place = wp.int32(start)
        for j in range(start, start + counts[row]):
            place += wp.int32(keys[j] < key)
        queue_out.keys[place] = key


@wp.kernel
def copy_few_kernel(
    # in
    span: wp.vec3i,
    queue: PairQueue,
    # out
    keys_out: wp.array[wp.int64],
):
    """Copy the keys of a queue that holds few."""
    if queue.count[0] <= wp.int64(FEW_PAIRS):
        for i in range(span[0] + wp.tid(), queue_stop(queue, span[1]), span[2]):
            keys_out[i] = queue.keys[i]


@wp.kernel
def rank_few_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    # out
    queue_out: PairQueue,
):
    """Write each of few keys after all lower ones."""
    if queue_out.count[0] <= wp.int64(FEW_PAIRS):
        stop = queue_stop(queue_out, span[1])
        for i in range(span[0] + wp.tid(), stop, span[2]):
            place = wp.int32(0)
            for j in range(stop):
                place += wp.int32(keys[j] < keys[i])
            queue_out.keys[place] = keys[i]


class SmallQueueSort:
    """Sorts a queue of at most FEW_PAIRS pairs in place, in two launches; skips larger queues."""

    most = int(FEW_PAIRS)

    def __init__(self, queue: Any, device: wp.Device) -> None:
        copied = wp.empty(self.most, dtype=wp.int64, device=device)
        self.tasks = [
            Task(copy_few_kernel, self.most, [queue, copied], device),
            Task(rank_few_kernel, self.most, [copied, queue], device),
        ]

    def run(self) -> None:
        """Sort."""
        for task in self.tasks:
            task.run()


class RowSort:
    """Sorts a queue of at most MOST_PAIRS pairs in place, without waiting; skips larger queues."""

    most = int(MOST_PAIRS)

    def __init__(self, queue: Any, column_bits: int, row_count: int, device: wp.Device) -> None:
        capacity = min(queue.keys.shape[0], MOST_PAIRS)
        self.counts = wp.zeros(row_count, dtype=wp.int32, device=device)
        self.starts = wp.empty(row_count, dtype=wp.int32, device=device)
        ranks = wp.empty(capacity, dtype=wp.int32, device=device)
        gathered = wp.empty(capacity, dtype=wp.int64, device=device)
        args = [queue, column_bits, self.counts, ranks]
        self.count = Task(count_rows_kernel, UNKNOWN_COUNT, args, device)
        args = [queue, column_bits, self.starts, ranks, gathered]
        self.gather = Task(gather_rows_kernel, UNKNOWN_COUNT, args, device)
        args = [gathered, column_bits, self.counts, self.starts, queue]
        self.rank = Task(rank_in_rows_kernel, UNKNOWN_COUNT, args, device)

    def run(self) -> None:
        """Sort."""
        self.counts.zero_()
        self.count.run()
        wp.utils.array_scan(self.counts, self.starts, inclusive=False)
        self.gather.run()
        self.rank.run()


@wp.kernel
def copy_padded_kernel(
    # in
    span: wp.vec3i,
    queue: PairQueue,
    padding: wp.int64,
    # out
    keys_out: wp.array[wp.int64],
):
    """Copy the first keys of a queue, and write the padding where there are none."""
    stop = queue_stop(queue, span[1])
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        key = padding
        if i < stop:
            key = queue.keys[i]
        keys_out[i] = key


class PaddedSort:
    """Sorts a copy of the first keys of a queue on CUDA, without waiting for their number.

    The radix sort needs a second half, where the queue may hold more keys than were expected.

    Args:
        queue: The queue.
        size: Keys to copy.
        width: Bits of a key.

    Attributes:
        queue: The sorted copy, with the count of the queue.
    """

    def __init__(self, queue: Any, size: int, width: int) -> None:
        device = queue.keys.device
        self.queue, self._size, self._width = PairQueue(), size, width
        self.queue.keys = wp.empty(2 * size, dtype=wp.int64, device=device)
        self.queue.count = queue.count
        self._values = wp.empty(2 * size, dtype=wp.int32, device=device)
        args = [queue, wp.int64(1 << width), self.queue.keys]
        self._copy = Task(copy_padded_kernel, size, args, device)

    def run(self) -> None:
        """Copy and sort."""
        self._copy.run()
        wp.utils.radix_sort_pairs(self.queue.keys, self._values, self._size, 0, self._width + 1)


@wp.kernel
def index_kernel(
    # in
    span: wp.vec3i,
    # out
    order_out: wp.array[wp.int32],
):
    """Write the index of each row."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        order_out[i] = i


def sort_with_order(keys: wp.array, count: int, bits: int | None = None) -> wp.array:
    """Sort the first ``count`` keys by their lowest ``bits``; return the order, which is stable.

    The radix sort uses the second half of ``keys``, which must have room for twice as many.
    """
    order = wp.empty(2 * count, dtype=wp.int32, device=keys.device)
    launch(index_kernel, count, [order], keys.device)
    wp.utils.radix_sort_pairs(keys, order, count, 0, bits)
    return order[:count]
