"""Orientation signs against rational arithmetic."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

import awkward
import oracle
from abut.geometry.predicates import (
    UNDECIDED,
    orient2d,
    orient2d_accumulated,
    orient2d_filtered,
    orient3d,
    orient3d_accumulated,
    orient3d_filtered,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

FILTERED, ACCUMULATED, EXACT = 0, 1, 2


@wp.kernel
def orient3d_kernel(
    # in
    points: wp.array2d[wp.vec3d],
    # out
    signs_out: wp.array2d[wp.int32],
):
    """Compute the side of a plane in all three ways."""
    i = wp.tid()
    a = points[i, 0]
    b = points[i, 1]
    c = points[i, 2]
    d = points[i, 3]
    signs_out[i, 0] = orient3d_filtered(a, b, c, d)
    signs_out[i, 1] = orient3d_accumulated(a, b, c, d)
    signs_out[i, 2] = orient3d(a, b, c, d)


@wp.kernel
def orient2d_kernel(
    # in
    points: wp.array2d[wp.vec3d],
    axis: wp.int32,
    # out
    signs_out: wp.array2d[wp.int32],
):
    """Compute the orientation seen along an axis in all three ways."""
    i = wp.tid()
    a = points[i, 0]
    b = points[i, 1]
    c = points[i, 2]
    x = (axis + 1) % 3
    y = (axis + 2) % 3
    signs_out[i, 0] = orient2d_filtered(a[x], a[y], b[x], b[y], c[x], c[y])
    signs_out[i, 1] = orient2d_accumulated(a[x], a[y], b[x], b[y], c[x], c[y])
    signs_out[i, 2] = orient2d(a, b, c, axis)


def signs_of(kernel, points, device, *args):
    """Return (n, 3) filtered, accumulated and exact signs."""
    signs = wp.zeros((len(points), 3), dtype=wp.int32, device=device)
    given_points = wp.array(np.ascontiguousarray(points), dtype=wp.vec3d, device=device)
    wp.launch(kernel, len(points), [given_points, *args, signs], device=device)
    return signs.numpy()


def check_signs(signs, truth):
    """Exact ways are right; the filter is right or undecided."""
    truth = np.array(truth)
    np.testing.assert_array_equal(signs[:, EXACT], truth)
    np.testing.assert_array_equal(signs[:, ACCUMULATED], truth)
    decided = signs[:, FILTERED] != UNDECIDED
    np.testing.assert_array_equal(signs[decided, FILTERED], truth[decided])


def check_orient3d(points, device):
    signs = signs_of(orient3d_kernel, points, device)
    check_signs(signs, [oracle.orient3d(*group) for group in points])
    return signs


def check_orient2d(points, device):
    for axis in range(3):
        signs = signs_of(orient2d_kernel, points, device, axis)
        seen = points[:, :, [(axis + 1) % 3, (axis + 2) % 3]]
        check_signs(signs, [oracle.orient2d(*group) for group in seen])


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_orient3d(family, device):
    check_orient3d(family(np.random.default_rng(1), 1500, 4), device)


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_orient2d(family, device):
    check_orient2d(family(np.random.default_rng(2), 500, 3), device)


def test_the_filter_settles_points_in_general_position(device):
    signs = check_orient3d(awkward.random(np.random.default_rng(3), 1000, 4), device)
    assert (signs[:, FILTERED] != UNDECIDED).all()


def test_points_on_a_plane_have_no_side(device):
    signs = check_orient3d(awkward.flat(np.random.default_rng(4), 500, 4), device)
    assert (signs[:, EXACT] == 0).all()


def test_one_unit_in_the_last_place_is_seen(device):
    """A point of the plane x + y + z = 3 and its neighbours above and below."""
    plane = np.array([[3.0, 0, 0], [0, 3, 0], [0, 0, 3]])
    points = [[*plane, [1, 1, np.nextafter(1.0, end)]] for end in (0.0, 1.0, 2.0)]
    signs = check_orient3d(np.array(points), device)
    assert signs[:, EXACT].tolist() == [-1, 0, 1]


def test_products_that_vanish_beside_a_large_offset(device):
    """Parts of the normal underflow to nothing, yet decide the side of a point far away."""
    rng = np.random.default_rng(5)
    exponents = np.zeros((2000, 4, 3), int)
    exponents[:, 1:3] = [-60, -538, -538]
    exponents[:, 3] = [500, 0, 0]
    points = np.ldexp(rng.normal(size=(2000, 4, 3)), exponents + rng.integers(-9, 9, (2000, 4, 3)))
    points[:, 0] = 0
    check_orient3d(points, device)


def test_products_as_long_as_float64(device):
    """Whole numbers u t - v s = 1, 0 and -1, whose products have 40 to 62 bits."""
    rng, points = np.random.default_rng(6), []
    for bits in range(20, 32):
        for u in rng.integers(2 ** (bits - 1), 2**bits, size=20).tolist():
            v = int(rng.integers(2 ** (bits - 1), 2**bits)) | 1
            if np.gcd(u, v) == 1:
                s = pow(v, -1, u)  # v s = 1 mod u
                t = (v * s - 1) // u
                points += [[[0, 0], [u, v], [s, t]], [[0, 0], [s, t], [u, v]]]
                points.append([[0, 0], [u, v], [2 * u, 2 * v]])
    points = np.array(points, dtype=float)
    check_orient2d(np.concatenate([points, points[:, :, :1]], axis=2), device)


coordinates = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1e300, -1e300, 1.7e308, 1 + 2**-52]),
)


def groups(size):
    """Lists of groups of points, tried in one launch each."""
    point = st.tuples(coordinates, coordinates, coordinates)
    return st.lists(st.tuples(*[point] * size), min_size=1, max_size=20).map(np.array)


@given(points=groups(4))
def test_orient3d_of_anything(points, device):
    check_orient3d(points, device)


@given(points=groups(3))
def test_orient2d_of_anything(points, device):
    check_orient2d(points, device)


@given(points=groups(4), order=st.permutations(range(4)))
def test_swapping_two_points_turns_the_side(points, order, device):
    swaps = sum(order[i] > order[j] for i in range(4) for j in range(i + 1, 4))
    before = signs_of(orient3d_kernel, points, device)[:, EXACT]
    after = signs_of(orient3d_kernel, points[:, list(order)], device)[:, EXACT]
    np.testing.assert_array_equal(after, before * (-1) ** swaps)


@pytest.mark.parametrize("exponent", [-1060, -700, -390, 490, 510, 900, 1015])
def test_points_of_grids_of_any_size(exponent, device):
    """Short numbers whose products may leave the range of float64."""
    rng = np.random.default_rng(7)
    points = np.ldexp(rng.integers(-3, 4, (300, 4, 3)).astype(float), exponent)
    check_orient3d(points, device)
    check_orient2d(points[:, :3], device)
