"""Counting sort of pair queues, which CUDA queries use, on every device."""

import numpy as np
import pytest
import warp as wp

from abut.core.pair_queue import PairQueues
from abut.core.pair_sort import FEW_PAIRS, MOST_PAIRS, RowSort, SmallQueueSort

COLUMN_BITS = 20


def queue_of(keys, device):
    queues = PairQueues(wp.get_device(device), hits=len(keys) + 5)
    queues["hits"].keys[: len(keys)].assign(keys)
    queues["hits"].count.fill_(len(keys))
    return queues["hits"]


def ordered(keys, row_count, device):
    queue = queue_of(keys, device)
    RowSort(queue, COLUMN_BITS, row_count, wp.get_device(device)).run()
    return queue.keys.numpy()[: len(keys)]


@pytest.mark.parametrize("rows", [1, 7, 5000])
@pytest.mark.parametrize("count", [1, 2, 1000, 20000])
def test_rows_are_sorted(rows, count, device):
    rng = np.random.default_rng(rows + count)
    columns = rng.permutation(1 << COLUMN_BITS)[:count]
    keys = (rng.integers(rows, size=count) << COLUMN_BITS) | columns
    np.testing.assert_array_equal(ordered(keys, rows, device), np.sort(keys))


def test_larger_queues_are_skipped(device):
    keys = np.random.default_rng(0).permutation(MOST_PAIRS + 1).astype(np.int64)
    np.testing.assert_array_equal(ordered(keys, 1, device), keys)


@pytest.mark.parametrize("count", [0, 1, 2, 495, FEW_PAIRS, FEW_PAIRS + 1])
def test_small_queues_are_sorted(count, device):
    keys = np.random.default_rng(count).permutation(1 << 20)[:count].astype(np.int64) << 30
    queue = queue_of(keys, device)
    SmallQueueSort(queue, wp.get_device(device)).run()
    want = np.sort(keys) if count <= FEW_PAIRS else keys
    np.testing.assert_array_equal(queue.keys.numpy()[:count], want)
