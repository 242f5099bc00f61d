"""Meshes grown outwards: their faces move out, at sharp edges and tips too."""

import numpy as np
import pytest

from abut import cases
from abut.coordination.checks.grown_mesh import LONGEST, vertex_shifts


def rises(points, faces, shifts):
    """(m, 3) how far the plane of each face moves out at its corners."""
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return (shifts[faces] * normals[:, None]).sum(axis=2)


SHAPES = [cases.box(), cases.icosphere(80), cases.torus(12, 8), cases.icosphere(20)]


@pytest.mark.parametrize("seed", range(20))
def test_faces_of_sheared_shapes_move_out(seed):
    """Regression: faces at sharp tips moved inwards, so that flush parts seemed to come out."""
    rng = np.random.default_rng(seed)
    turn = np.eye(3) + np.triu(rng.normal(size=(3, 3)), 1) * 10.0 ** rng.uniform(-1, 1)
    for vertices, faces in SHAPES:
        points = vertices @ turn.T
        shifts = vertex_shifts(points, faces)
        length = np.linalg.norm(shifts, axis=1)
        assert length.max() <= LONGEST * (1 + 1e-12)
        moved = rises(points, faces, shifts)
        assert (moved > 0.0).all()
        assert (moved[length[faces] < LONGEST * (1 - 1e-12)] >= 0.998).all()


def test_shifts_are_the_shortest():
    """No shorter random shift leaves all planes at a vertex."""
    rng = np.random.default_rng(3)
    vertices, faces = cases.icosphere(20)
    points = vertices * [1.0, 0.5, 0.2]
    shifts = vertex_shifts(points, faces)
    for vertex in range(len(points)):
        other = np.zeros_like(shifts)
        for shift in rng.normal(size=(200, 3)):
            other[vertex] = 0.99 * np.linalg.norm(shifts[vertex]) * shift / np.linalg.norm(shift)
            around = (faces == vertex).any(axis=1)
            moved = rises(points, faces[around], other)[faces[around] == vertex]
            assert moved.min() < 1.0


def test_vertices_that_no_direction_moves_off_all_planes():
    """Opposite planes stay, the others move out."""
    fold = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    shifts = vertex_shifts(fold, np.array([[0, 1, 2], [0, 2, 1]]))
    assert np.allclose(shifts, 0.0)
    tip = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]])
    faces = np.array([[0, 1, 2], [0, 2, 1], [0, 1, 4], [0, 4, 3]])  # +z, -z, and twice -y
    assert np.allclose(vertex_shifts(tip, faces)[0], [0.0, -1.0, 0.0], atol=1e-6)
