"""Triangles of polygons."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abut.io.models.polygons import triangles_of_polygons


def areas(points, faces):
    a, b, c = np.moveaxis(points[faces], 1, 0)
    return np.cross(b - a, c - a)[:, 2] / 2


def area(loop):
    x, y, _ = loop.T
    return (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2


STAR = [(0, 3), (-1, 1), (-3, 1), (-1.5, -1), (-2, -3), (0, -2), (2, -3), (1.5, -1), (3, 1), (1, 1)]
SHAPES = {
    "square": [(0, 0), (1, 0), (1, 1), (0, 1)],
    "dart": [(0, 0), (2, 1), (0, 2), (0.5, 1)],
    "dart from its notch": [(0.5, 1), (0, 0), (2, 1), (0, 2)],
    "L": [(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)],
    "U": [(0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3)],
    "collinear corners": [(0, 0), (1, 0), (2, 0), (2, 2), (1, 2), (0, 2), (0, 1)],
    "star": STAR,
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_concave_polygons(name, turned):
    """Triangles are wound alike and add up to the area, so that none overlap."""
    loop = np.array([(x, y, 0.1 * x) for x, y in SHAPES[name]])[:: -1 if turned else 1]
    faces = triangles_of_polygons(loop, np.array([len(loop)]), np.arange(len(loop)))
    parts = areas(loop, faces) * np.sign(area(loop))
    assert len(faces) == len(loop) - 2 and (parts >= 0).all()
    assert parts.sum() == pytest.approx(abs(area(loop)), rel=1e-12)


def test_mixed_polygons_keep_their_order():
    points = np.array([(x, y, 0.0) for x in range(4) for y in range(4)])
    counts = np.array([4, 3, 2, 5, 0, 4])
    corners = np.array([0, 4, 5, 1, 8, 12, 13, 0, 1, 2, 6, 10, 14, 3, 4, 8, 9, 5])
    faces = triangles_of_polygons(points, counts, corners)
    assert [set(face) <= {0, 1, 4, 5} for face in faces.tolist()][:2] == [True, True]
    assert faces[2].tolist() == [8, 12, 13] and len(faces) == 2 + 1 + 3 + 2
    assert set(faces[-2:].ravel().tolist()) == {4, 8, 9, 5}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 1.0), min_size=3, max_size=12), st.floats(0, 6))
def test_stars_about_a_point(radii, start):
    """Random polygons that are seen whole from one point."""
    angles = start + 2 * np.pi * np.arange(len(radii)) / len(radii)
    loop = np.stack([np.cos(angles) * radii, np.sin(angles) * radii, 0 * angles], axis=1)
    faces = triangles_of_polygons(loop, np.array([len(loop)]), np.arange(len(loop)))
    parts = areas(loop, faces)
    assert (parts >= -1e-12).all() and parts.sum() == pytest.approx(area(loop), rel=1e-9)
