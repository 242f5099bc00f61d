"""Triangle pairs against rational arithmetic."""

from itertools import permutations, product

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

import abut
import awkward
import oracle

intersect_tri_tri = abut.primitives.intersect_tri_tri

ORDERS = list(permutations(range(3)))
# the 48 ways to permute and flip axes: all exact
MOTIONS = [
    np.eye(3)[list(order)] * flips for order in ORDERS for flips in product([1, -1], repeat=3)
]


def triangle_pairs(family, count, seed=0):
    """Two triangles (count, 3, 3) each, some of them segments or points."""
    rng = np.random.default_rng(seed)
    points = family(rng, count, 6)
    collapsed = rng.random(count)
    points[collapsed < 0.15, 4] = points[collapsed < 0.15, 3]  # b is a segment
    points[collapsed < 0.05, 5] = points[collapsed < 0.05, 3]  # b is a point
    points[collapsed > 0.90, 1] = points[collapsed > 0.90, 2]  # a is a segment
    return points[:, :3].copy(), points[:, 3:].copy()


def answers(a, b, device):
    a, b = (wp.array(t, dtype=wp.float64, device=device) for t in (a, b))
    return intersect_tri_tri(a, b).numpy()


def check_all(got, want, a, b):
    """All answers are right; else show the first wrong pair to the last bit."""
    wrong = np.flatnonzero(np.asarray(got) != np.asarray(want))
    if len(wrong):
        i = wrong[0]
        tell = [[[float(x).hex() for x in p] for p in t] for t in (a[i], b[i])]
        pytest.fail(f"{len(wrong)} of {len(want)} wrong; pair {i} gave {got[i]}: {tell}")


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_pairs(family, device):
    a, b = triangle_pairs(family, 600)
    want = [oracle.intersect_tri_tri(*pair) for pair in zip(a, b, strict=True)]
    assert 10 < sum(want) < 590, "a family should have pairs of both kinds"
    check_all(answers(a, b, device), want, a, b)


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_order_does_not_matter(family, device):
    """Neither which triangle comes first nor how their corners are listed."""
    a, b = triangle_pairs(family, 100, seed=1)
    want = answers(a, b, device)
    check_all(answers(b, a, device), want, a, b)
    for order_a, order_b in product(ORDERS, ORDERS):
        p, q = a[:, order_a], b[:, order_b]
        check_all(answers(p, q, device), want, p, q)


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_turning_and_mirroring_do_not_matter(family, device):
    a, b = triangle_pairs(family, 200, seed=2)
    want = answers(a, b, device)
    for motion in MOTIONS:
        p, q = a @ motion, b @ motion
        check_all(answers(p, q, device), want, p, q)


@pytest.mark.parametrize("shift", [2.0**10, -(2.0**30), 2.0**48])
@pytest.mark.parametrize("family", [awkward.grid, awkward.flat], ids=awkward.name)
def test_moving_does_not_matter(family, shift, device):
    """Whole numbers stay exact when moved by powers of two."""
    a, b = triangle_pairs(family, 300, seed=3)
    by = np.array([shift, -shift, 2 * shift])
    check_all(answers(a + by, b + by, device), answers(a, b, device), a, b)


@pytest.mark.parametrize("exponent", [-1070, -600, -30, 30, 340, 1020])
def test_scaling_does_not_matter(exponent, device):
    a, b = triangle_pairs(awkward.grid, 300, seed=4)
    got = answers(np.ldexp(a, exponent), np.ldexp(b, exponent), device)
    check_all(got, answers(a, b, device), a, b)


coordinates = st.one_of(
    st.integers(-2, 2).map(float),
    st.sampled_from([1 - 2.0**-53, 1 + 2.0**-52, 5e-324, -5e-324, 1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
)
triangles = st.tuples(*[st.tuples(*[coordinates] * 3)] * 3)


@given(pairs=st.lists(st.tuples(triangles, triangles), min_size=1, max_size=10))
def test_pairs_of_anything(pairs, device):
    a, b = np.array([p for p, _ in pairs]), np.array([q for _, q in pairs])
    want = [oracle.intersect_tri_tri(*pair) for pair in pairs]
    check_all(answers(a, b, device), want, a, b)


def test_a_gap_of_one_unit_in_the_last_place(device):
    """A corner that touches a slanted triangle, and its neighbours on both sides."""
    flat = [[3.0, 0, 0], [0, 3, 0], [0, 0, 3]]
    tips = [[[1, 1, np.nextafter(1.0, end)], [5, 5, 5], [5, 6, 5]] for end in (0.0, 1.0, 2.0)]
    assert answers([flat] * 3, tips, device).tolist() == [True, True, False]


def test_float32_is_taken_as_it_is():
    a, b = (t.astype(np.float32) for t in triangle_pairs(awkward.on_plane, 300))
    got = intersect_tri_tri(a, b).numpy()
    check_all(got, intersect_tri_tri(a.astype(float), b.astype(float)).numpy(), a, b)


def test_nothing_in_nothing_out():
    none = np.zeros((0, 3, 3))
    assert intersect_tri_tri(none, none).shape == (0,)


def test_lists_are_taken():
    flat = [[[0, 0, 0], [1, 0, 0], [0, 1, 0]]]
    assert intersect_tri_tri(flat, flat).numpy().tolist() == [True]


def test_bad_input_is_refused():
    good = np.zeros((4, 3, 3))
    bad = good.copy()
    bad[2, 1, 0] = np.nan
    with pytest.raises(abut.MeshError, match=r"b\[2\].*finite"):
        intersect_tri_tri(good, bad)
    with pytest.raises(abut.MeshError, match=r"a must have shape \(n, 3, 3\), not \(4, 9\)"):
        intersect_tri_tri(good.reshape(4, 9), good)
    with pytest.raises(abut.MeshError, match="4 and 3"):
        intersect_tri_tri(good, good[:3])
