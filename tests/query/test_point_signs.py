"""abut.signed_distance and abut.contains are the signs of abut.closest_point."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import random_poses


@pytest.fixture(scope="module")
def cube(device):
    return abut.Mesh(*cases.box(), device)


def test_contains_the_inside_and_the_surface(cube):
    low, high = cube.bounds
    middle = (low + high) / 2
    side = np.array([high[0], middle[1], middle[2]])
    points = np.array([middle, side, low, high, high + 1e-9, low - [1e-9, 0, 0]])
    assert abut.contains(cube, points).numpy().tolist() == [True] * 4 + [False] * 2


def test_signed_distance_is_that_of_closest_point(device):
    gem = abut.Mesh(*cases.gem(80), device)
    points = np.random.default_rng(3).normal(size=(200, 3))
    want = abut.closest_point(gem, points, signed=True).distance.numpy()
    got = abut.signed_distance(gem, points).numpy()
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(abut.contains(gem, points).numpy(), want <= 0)
    assert 0 < (want < 0).sum() < 200


def test_batches_of_poses_have_a_leading_axis(cube):
    points, poses = np.random.default_rng(4).normal(size=(30, 3)), random_poses(4, 0.5)
    inside = abut.contains(cube, points, pose=poses).numpy()
    assert inside.shape == (4, 30)
    for row, pose in zip(inside, poses, strict=True):
        np.testing.assert_array_equal(row, abut.contains(cube, points, pose=pose).numpy())


def test_an_open_mesh_has_no_inside(device):
    vertices, faces = cases.box()
    open_box = abut.Mesh(vertices, faces[1:], device)
    with pytest.raises(abut.MeshError, match="open mesh"):
        abut.contains(open_box, [[0.0, 0.0, 0.0]])
    assert abut.signed_distance(open_box, [[0.0, 0.0, 9.0]]).numpy()[0] > 0
