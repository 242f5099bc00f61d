"""Sections by planes across an axis."""

from collections import Counter
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from abut import cases
from abut.view.page.section import Plane, cut_mesh


def area(corners):
    a, b, c = np.moveaxis(corners, 1, 0)
    return np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("offset", [-0.3, 0.0, 0.1])
def test_both_sides_make_the_whole(axis, offset):
    vertices, faces = cases.torus_knot()
    low = cut_mesh(vertices, faces, Plane(axis, offset))
    high = cut_mesh(vertices, faces, Plane(axis, offset, high=True))
    assert_allclose(area(low.corners) + area(high.corners), area(vertices[faces]), rtol=1e-12)
    assert low.corners[..., axis].max() <= offset
    assert high.corners[..., axis].min() >= offset
    assert (low.outline[..., axis] == offset).all()


def test_outline_of_a_closed_mesh_is_closed():
    """Every point of the outline ends two segments, to the bit."""
    vertices, faces = cases.torus_knot()
    outline = cut_mesh(vertices, faces, Plane(0, 0.1)).outline
    assert len(outline) > 100
    assert set(Counter(map(tuple, outline.reshape(-1, 3).tolist())).values()) == {2}


def test_plane_beside_the_mesh():
    vertices, faces = cases.box()
    whole = cut_mesh(vertices, faces, Plane(2, vertices[:, 2].max()))
    assert len(whole.corners) == len(faces)
    nothing = cut_mesh(vertices, faces, Plane(2, np.nextafter(vertices[:, 2].min(), -np.inf)))
    assert len(nothing.corners) == len(nothing.outline) == 0


grid = st.integers(-3, 3).map(float)


@given(st.lists(st.tuples(grid, grid, grid), min_size=3, max_size=3), st.integers(0, 2), grid)
def test_sides_are_decided_exactly(corners, axis, offset):
    """The kept share of an edge is the share below the plane, in rational numbers."""
    points = np.array(corners)
    kept = cut_mesh(points, np.array([[0, 1, 2]]), Plane(axis, offset))
    below = [Fraction(p[axis]) <= Fraction(offset) for p in points]
    assert (len(kept.corners) > 0) == any(below)
    assert len(kept.corners) == {0: 0, 1: 1, 2: 2, 3: 1}[sum(below)]
    found = set(map(tuple, kept.corners.reshape(-1, 3).tolist()))
    assert {tuple(p) for p, b in zip(points.tolist(), below, strict=True) if b} <= found
