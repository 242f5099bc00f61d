"""Sorting by counted rows, which CUDA queries use, on every device."""

import numpy as np
import pytest
import warp as wp

from abut.ordering import MOST_PAIRS, RowOrder
from abut.pairs import PairQueues

COLUMN_BITS = 20


def ordered(keys, row_count, device):
    queues = PairQueues(wp.get_device(device), hits=len(keys) + 5)
    queues["hits"].keys[: len(keys)].assign(keys)
    queues["hits"].count.fill_(len(keys))
    RowOrder(queues["hits"], COLUMN_BITS, row_count, wp.get_device(device)).run()
    return queues["hits"].keys.numpy()[: len(keys)]


@pytest.mark.parametrize("rows", [1, 7, 5000])
@pytest.mark.parametrize("count", [1, 2, 1000, 20000])
def test_rows_come_out_sorted(rows, count, device):
    rng = np.random.default_rng(rows + count)
    columns = rng.permutation(1 << COLUMN_BITS)[:count]
    keys = (rng.integers(rows, size=count) << COLUMN_BITS) | columns
    np.testing.assert_array_equal(ordered(keys, rows, device), np.sort(keys))


def test_too_many_stay_as_they_are(device):
    keys = np.random.default_rng(0).permutation(MOST_PAIRS + 1).astype(np.int64)
    np.testing.assert_array_equal(ordered(keys, 1, device), keys)
