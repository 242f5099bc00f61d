"""Rounding to float32 downwards, and integers in the order of float32 numbers."""

from fractions import Fraction

import numpy as np
import warp as wp

from abut.bounds.float32 import (
    difference_lower_bound,
    from_sortable,
    next_float32_below,
    round_down,
    to_sortable,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def rounding_kernel(
    # in
    values: wp.array[wp.float64],
    singles: wp.array[wp.float32],
    # out
    bounds_out: wp.array2d[wp.float32],
    sortable_out: wp.array[wp.int32],
):
    i = wp.tid()
    bounds_out[i, 0] = next_float32_below(singles[i])
    bounds_out[i, 1] = round_down(values[i])
    bounds_out[i, 2] = difference_lower_bound(values[i])
    sortable_out[i] = to_sortable(singles[i])
    bounds_out[i, 3] = from_sortable(sortable_out[i])


def rounded(values, device):
    """Bounds (n, 4) of float64 values, and sortable integers of them as float32."""
    singles = values.astype(np.float32)
    bounds = wp.zeros((len(values), 4), dtype=wp.float32, device=device)
    sortable = wp.zeros(len(values), dtype=wp.int32, device=device)
    arrays = [
        wp.array(values, dtype=wp.float64, device=device),
        wp.array(singles, dtype=wp.float32, device=device),
    ]
    wp.launch(rounding_kernel, len(values), [*arrays, bounds, sortable], device=device)
    return singles, bounds.numpy(), sortable.numpy()


def some_values():
    rng = np.random.default_rng(0)
    size = 2.0 ** rng.uniform(-155, 127, size=4000)
    edges = [0.0, -0.0, 2.0**-149, -(2.0**-149), 2.0**-150, 2.0**-126, 1.0, -1.0, 3.4e38, -3.4e38]
    return np.concatenate([edges, rng.normal(size=4000) * size, rng.integers(-9, 10, size=50)])


def test_rounding_down(device):
    values = some_values()
    singles, bounds, _ = rounded(values, device)
    np.testing.assert_array_equal(bounds[:, 0], np.nextafter(singles, np.float32(-np.inf)))
    truth = np.where(singles > values, np.nextafter(singles, np.float32(-np.inf)), singles)
    np.testing.assert_array_equal(bounds[:, 1], truth)
    assert (bounds[:, 2] <= values).all()


def test_differences_are_bounded_exactly(device):
    """Differences that round up to a float32 number."""
    rng = np.random.default_rng(1)
    near = rng.integers(1, 100, size=300) * 2.0 ** rng.integers(-20, 20, size=300)
    small = near * 2.0 ** -rng.integers(54, 90, size=300).astype(np.float64)
    small *= np.where(np.arange(300) % 2, 1.0, -1.0)
    _, bounds, _ = rounded(near - small, device)
    for p, o, bound in zip(near.tolist(), small.tolist(), bounds[:, 2].tolist(), strict=True):
        assert Fraction(bound) <= Fraction(p) - Fraction(o)
    assert (bounds[:, 2] >= near * (1.0 - 2.0**-22)).all()


def test_sortable_integers_have_the_order_of_floats(device):
    singles, bounds, sortable = rounded(np.sort(some_values()), device)
    np.testing.assert_array_equal(bounds[:, 3], singles)
    rises = np.diff(singles) > 0
    assert (np.diff(sortable.astype(np.int64))[rises] > 0).all()
