"""Every method of the broad phase lists the same pairs, those of all boxes against all."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

from abut.broad import phase
from abut.broad.boxes import make_filters
from abut.broad.overlaps import overlapping_boxes
from abut.options import BroadMethod

METHODS = list(BroadMethod)


def truth(lower, upper):
    meets = (lower[:, None] <= upper) & (lower <= upper[:, None])
    there = (lower <= upper).all(axis=1)
    return np.argwhere(np.triu(meets.all(axis=2) & there & there[:, None], 1))


def scattered(rng, count, extent, size):
    lower = rng.uniform(-extent, extent, (count, 3)).astype(np.float32)
    return lower, lower + rng.uniform(0, size, (count, 3)).astype(np.float32)


def agree(lower, upper, device, method):
    pairs = overlapping_boxes(lower, upper, wp.get_device(device), method=method)
    assert np.array_equal(pairs, truth(lower, upper))
    return len(pairs)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("count", "extent", "size"), [(2, 1, 2), (300, 9, 2.5), (3000, 10, 1)])
def test_scattered(device, method, count, extent, size):
    rng = np.random.default_rng(count)
    agree(*scattered(rng, count, extent, size), device, method)


@pytest.mark.parametrize("method", METHODS)
def test_sizes_of_all_kinds(device, method):
    """A floor under many, and sizes over six orders of magnitude."""
    rng = np.random.default_rng(1)
    lower, upper = scattered(rng, 800, 20, 1)
    upper = lower + (upper - lower) * 10 ** rng.uniform(-4, 2, (800, 1)).astype(np.float32)
    lower[7], upper[7] = [-30, -30, -1], [30, 30, 0]
    assert agree(lower, upper, device, method) > 800


@pytest.mark.parametrize("method", METHODS)
def test_boxes_that_only_touch(device, method):
    """A lattice of cubes: each touches its 26 neighbours, at integer coordinates and at others."""
    at = np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    for scale, shift in ((1.0, 0.0), (0.125, 1000.0), (1.0 / 3.0, -7.1)):
        lower = (at * scale + shift).astype(np.float32)
        upper = ((at + 1) * scale + shift).astype(np.float32)
        count = agree(lower, upper, device, method)
        assert scale == 1.0 / 3.0 or count == (16**3 - 6**3) // 2


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_a_long_row_of_boxes_that_only_touch(device, method, axis):
    """Boxes share a face each; rounding must not separate any."""
    count = 1000  # of at most 1024 cells
    lower, upper = np.zeros((count, 3), np.float32), np.ones((count, 3), np.float32)
    lower[:, axis], upper[:, axis] = np.arange(count), np.arange(count) + 1
    assert agree(lower, upper, device, method) == count - 1


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_and_empty_boxes(device, method):
    lower = np.zeros((60, 3), np.float32)
    upper = np.zeros((60, 3), np.float32)
    lower[:5], upper[:5] = 1, -1  # not there
    assert agree(lower, upper, device, method) == 55 * 54 // 2
    lower[:], upper[:] = 1, -1
    assert agree(lower, upper, device, method) == 0


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(METHODS), st.integers(2, 90))
def test_any_boxes(device, seed, method, count):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-9, 9)
    shift = rng.choice([0.0, 1e6, -3e7]) * rng.random()
    lower = (rng.integers(-4, 5, (count, 3)) * scale + shift).astype(np.float32)
    upper = lower + (rng.integers(0, 4, (count, 3)) * scale).astype(np.float32)
    agree(lower, upper, device, method)


@pytest.mark.parametrize("method", METHODS)
def test_filters(device, method):
    rng = np.random.default_rng(4)
    lower, upper = scattered(rng, 120, 3, 2)
    static = rng.integers(0, 2, 120)
    group, mask = 1 << rng.integers(0, 4, 120), rng.integers(0, 16, 120)
    every = truth(lower, upper)
    ignored = every[::5, 0].astype(np.int64) << 32 | every[::5, 1]
    filters = make_filters(static, group, mask, ignored, wp.get_device(device))
    i, j = every.T
    wanted = (static[i] * static[j] == 0) & (group[i] & mask[j] != 0) & (group[j] & mask[i] != 0)
    wanted[::5] = False
    pairs = overlapping_boxes(lower, upper, wp.get_device(device), filters, method)
    assert np.array_equal(pairs, every[wanted])
    assert 0 < len(pairs) < len(every)


def test_wide_numbers_are_rounded_outwards(device):
    one = 1.0 + 2.0**-40  # float32 would make it 1
    lower = np.array([[0.0, 0, 0], [one, 0, 0], [2.0, 0, 0]])
    upper = np.array([[1.0, 1, 1], [2.0, 1, 1], [3.0, 1, 1]])
    pairs = overlapping_boxes(lower, upper, wp.get_device(device))
    assert pairs.tolist() == [[0, 1], [1, 2]]


def test_best_method():
    assert phase.best_method(10, 1) is BroadMethod.ALL_PAIRS
    assert phase.best_method(5000, 1) is BroadMethod.TREE
    assert phase.best_method(5000, 3) is BroadMethod.SWEEP
