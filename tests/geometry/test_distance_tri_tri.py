"""Distances of triangles against rational arithmetic."""

from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

import abut
import awkward
import oracle
from geometry.test_intersect_tri_tri import coordinates, triangle_pairs

distance_tri_tri = abut.primitives.distance_tri_tri

ROUNDINGS = 8 * 2.0**-53
HUGE = Fraction(1.7e308)


def answers(a, b, device):
    a, b = (wp.array(t, dtype=wp.float64, device=device) for t in (a, b))
    distance, points = distance_tri_tri(a, b)
    return distance.numpy(), points.numpy()


def root(x):
    """The square root of a fraction, to 60 digits."""
    getcontext().prec = 60
    return (Decimal(x.numerator) / Decimal(x.denominator)).sqrt()


def size_of(a, b):
    """Largest extent of both triangles together, exactly."""
    corners = [[Fraction(float(x)) for x in p] for t in (a, b) for p in t]
    return max(max(x) - min(x) for x in zip(*corners, strict=True))


def check_pair(a, b, distance, points):
    """Right to some roundings of the size; 0 exactly where the triangles meet."""
    meets = oracle.intersect_tri_tri(a, b)
    assert (distance == 0) == meets
    size = size_of(a, b)
    allowed = Decimal(ROUNDINGS) * root(Fraction(size) ** 2) + Decimal("5e-324")
    true = Decimal(0) if meets else root(oracle.squared_distance_tri_tri(a, b))
    if true < Decimal(float(HUGE)):
        assert abs(Decimal(float(distance)) - true) <= allowed
    for p, t in zip(points, (a, b), strict=True):  # witnesses are rounded in their own place
        where = 2.0**-48 * float(min(size, HUGE)) + 2.0**-51 * np.abs(t).max() + 1e-322
        assert oracle.squared_distance_point_tri(p, t) <= Fraction(where) ** 2


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_pairs(family, device):
    a, b = triangle_pairs(family, 50)
    for row in zip(a, b, *answers(a, b, device), strict=True):
        check_pair(*row)


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_order_hardly_matters(family, device):
    """The order of triangles and of corners changes rounding only."""
    a, b = triangle_pairs(family, 40, seed=1)
    want, _ = answers(a, b, device)
    with np.errstate(over="ignore"):
        size = np.abs(np.concatenate([a, b], axis=1)).max(axis=(1, 2))
    allowed = 4 * ROUNDINGS * np.minimum(size, 1e308) + 1e-322
    for order_a, order_b in product(permutations(range(3)), permutations(range(3))):
        for got, _ in (answers(a[:, order_a], b[:, order_b], device), answers(b, a, device)):
            assert ((got == 0) == (want == 0)).all()
            assert (np.abs(got - want) <= allowed).all()


@settings(max_examples=40)
@given(
    pairs=st.lists(
        st.tuples(*[st.tuples(*[st.tuples(*[coordinates] * 3)] * 3)] * 2), min_size=1, max_size=5
    )
)
def test_pairs_of_anything(pairs, device):
    a, b = np.array([p for p, _ in pairs]), np.array([q for _, q in pairs])
    for row in zip(a, b, *answers(a, b, device), strict=True):
        check_pair(*row)


def test_features(device):
    """A corner above a face, two edges across each other, parallel edges, two points."""
    flat = [[0.0, 0, 0], [4, 0, 0], [0, 4, 0]]
    others = {
        "corner": ([[1.0, 1, 2], [1, 1, 5], [2, 2, 5]], 2.0),
        "face": ([[-9.0, -9, 3], [30, -9, 3], [-9, 30, 3]], 3.0),
        "edges": ([[1.0, -1, -3], [1, -1, 3], [1, -9, 0]], 1.0),
        "parallel": ([[1.0, -1, 0], [3, -1, 0], [2, -2, 0]], 1.0),
        "points": ([[0.0, 0, -7]] * 3, 7.0),
        "touching": ([[1.0, 1, 0], [1, 1, 1], [2, 1, 1]], 0.0),
        "crossing": ([[1.0, 1, -5], [1.1, 1, 5], [1, 1.1, 5]], 0.0),
    }
    b = np.array([corners for corners, _ in others.values()])
    distance, points = answers(np.broadcast_to(flat, b.shape), b, device)
    for row, name in enumerate(others):
        check_pair(np.array(flat), b[row], distance[row], points[row])
        assert distance[row] == others[name][1], name
    apart = np.linalg.norm(points[:, 0] - points[:, 1], axis=1)
    np.testing.assert_allclose(apart, distance, rtol=1e-15)


def test_a_gap_of_one_unit_in_the_last_place(device):
    """A touch is 0, the last bit beyond it is a distance."""
    flat = [[3.0, 0, 0], [0, 3, 0], [0, 0, 3]]
    tips = [[[1, 1, np.nextafter(1.0, end)], [5, 5, 5], [5, 6, 5]] for end in (1.0, 2.0)]
    distance, _ = answers([flat] * 2, tips, device)
    assert distance[0] == 0
    assert 0 < distance[1] < 3e-16


def test_nothing_in_nothing_out():
    none = np.zeros((0, 3, 3))
    distance, points = distance_tri_tri(none, none)
    assert distance.shape == (0,) and points.shape == (0, 2, 3)


def test_bad_input_is_refused():
    good = np.zeros((4, 3, 3))
    with pytest.raises(abut.MeshError, match="4 and 3"):
        distance_tri_tri(good, good[:3])
