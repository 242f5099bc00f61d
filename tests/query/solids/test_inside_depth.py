"""Depths of common parts: analytic solids, certified bounds, rigid motion, subdivision."""

import numpy as np
import pytest

import abut
from abut.cases.shape import Shape, joined
from abut.cases.shapes import box
from abut.query.solids.inside_depth import inside_depths


def moved(shape, shift=(0.0, 0.0, 0.0), rotation=None):
    vertices = np.asarray(shape.vertices, np.float64)
    if rotation is not None:
        vertices = vertices @ np.transpose(rotation)
    return Shape(vertices + shift, shape.faces)


def flipped(shape):
    return Shape(shape.vertices, np.asarray(shape.faces)[:, ::-1].copy())


def subdivided(shape, times=1):
    """Every face cut into four at the middles of its edges."""
    vertices, faces = np.asarray(shape.vertices, np.float64), np.asarray(shape.faces)
    for _ in range(times):
        edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        unique, at = np.unique(edges, axis=0, return_inverse=True)
        ab, bc, ca = (len(vertices) + at.reshape(-1, 3)).T
        vertices = np.concatenate([vertices, vertices[unique].mean(axis=1)])
        a, b, c = faces.T
        parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        faces = np.concatenate([np.stack(part, axis=1) for part in parts])
    return Shape(vertices, faces.astype(np.int32))


def mesh_of(shape, device):
    return abut.Mesh(np.asarray(shape.vertices, np.float64), np.asarray(shape.faces), device)


def pose_of(rotation, shift):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, shift
    return pose[None]


def depth(a, b, device, tolerance=1e-9):
    """The depth of two shapes without poses, with its bounds checked for consistency."""
    found = inside_depths(mesh_of(a, device), mesh_of(b, device), None, None, tolerance)
    (low, high), value = found.bounds[0], found.depth[0]
    assert low <= value <= high <= low + tolerance
    return value


UNIT = box((1.0, 1.0, 1.0))
TETRAHEDRON = Shape(
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32),
)
INRADIUS = 1.0 / (3.0 + np.sqrt(3.0))  # of the tetrahedron, at (r, r, r)

CASES = {
    "shifted boxes": (UNIT, moved(UNIT, (0.6, 0.1, 0.05)), 0.4),
    "the same box": (UNIT, UNIT, 0.5),
    "a small box inside": (UNIT, moved(box((0.2, 0.2, 0.2)), (0.3, 0.0, 0.0)), 0.3),
    "a large box around": (UNIT, box((3.0, 3.0, 3.0)), 0.5),
    "a box pressed into a slab": (box((4.0, 4.0, 1.0)), moved(UNIT, (0.3, 0.2, 0.8)), 0.2),
    "a slab around the middle of a box": (box((4.0, 4.0, 1.0)), box((1.0, 1.0, 9.0)), 0.5),
    "a duct through a wall": (box((4.0, 0.2, 3.0)), box((0.3, 1.1, 0.3)), 0.1),
    "a wall around a duct": (box((0.3, 1.1, 0.3)), box((4.0, 0.2, 3.0)), 0.15),
    "a tetrahedron in a box": (TETRAHEDRON, box((4.0, 4.0, 4.0)), INRADIUS),
    "apart": (UNIT, moved(UNIT, (3.0, 0.0, 0.0)), 0.0),
    "boxes overlap, solids do not": (
        TETRAHEDRON,
        moved(box((0.1, 0.1, 0.1)), (0.6, 0.6, 0.6)),
        0.0,
    ),
    "face to face": (UNIT, moved(UNIT, (1.0, 0.3, 0.0)), 0.0),
    "edge to edge": (UNIT, moved(UNIT, (1.0, 1.0, 0.0)), 0.0),
    "barely overlapping": (UNIT, moved(UNIT, (1.0 - 1e-7, 0.3, 0.0)), 1e-7),
    "a shell and its core": (
        joined(box((3.0, 3.0, 3.0)), flipped(box((2.0, 2.0, 2.0)))),
        moved(box((0.4, 0.4, 0.4)), (1.3, 0.0, 0.0)),
        0.25,
    ),
    "a core in the cavity": (
        joined(box((3.0, 3.0, 3.0)), flipped(box((2.0, 2.0, 2.0)))),
        UNIT,
        0.0,
    ),
    "two boxes in a slab": (
        box((9.0, 9.0, 1.0)),
        joined(moved(UNIT, (3.0, 0.0, 0.9)), moved(UNIT, (-3.0, 0.0, 0.7))),
        0.3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_depths_of_analytic_solids(device, name):
    a, b, expected = CASES[name]
    assert depth(a, b, device) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "name", ["a box pressed into a slab", "a duct through a wall", "the same box"]
)
def test_depths_do_not_change_when_faces_are_subdivided(device, name):
    a, b, expected = CASES[name]
    fine_a, fine_b = subdivided(a, 3), subdivided(b, 3)
    for x, y in [(fine_a, b), (a, fine_b), (fine_a, fine_b)]:
        assert depth(x, y, device) == pytest.approx(expected, rel=1e-12)
