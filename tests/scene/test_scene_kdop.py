"""Scene.collide(method="kdop"): the rows of other methods, by polytopes in fixed point."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import random_poses


def random_scene(device, count=14, reach=1.6):
    scene = abut.Scene(device)
    for k, shape in enumerate((cases.torus(16, 8), cases.box(), cases.gem(200))):
        scene.add(abut.Mesh(*shape, device), random_poses(count, reach, seed=k))
    scene.add(abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), device))
    return scene


def check_same(scene, **options):
    want, found = scene.collide(), scene.collide(method="kdop", **options)
    for name in ("objects", "pairs"):
        np.testing.assert_array_equal(getattr(found, name).numpy(), getattr(want, name).numpy())
    return want


@pytest.mark.parametrize("width", [10, 18, 35])
def test_rows_equal_those_of_aabbs(width, device):
    scene = random_scene(device)
    assert len(check_same(scene, width=width)) > 100
    first = scene.collide(method="kdop", width=width, first=True)
    np.testing.assert_array_equal(first.object_pairs.numpy(), scene.collide().object_pairs.numpy())
    assert len(first) == len(first.object_pairs)


def test_filters_splits_and_deforms(device):
    scene = random_scene(device, 8, 1.0)
    scene.ignore(0, [9, 12, 17])
    scene.remove([3, 10])
    pieces = scene.split(1, np.arange(scene.mesh(1).face_count) % 3)
    scene.deform(int(pieces[0]), 1.1 * scene.mesh(int(pieces[0])).vertices.numpy())
    assert len(check_same(scene)) > 20
    assert len(scene.collide(method="kdop").segments.numpy()) > 20


def test_far_away_and_touching(device):
    scene = abut.Scene(device)
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[:, :3, 3] = [(1e6, 0, 0), (1e6 + 1, 0, 0), (1e6 + 1, 1, 1), (0, 0, 0)]
    scene.add(abut.Mesh(*cases.box(), device), poses)
    assert {tuple(p) for p in check_same(scene).object_pairs.numpy()} == {(0, 1), (0, 2), (1, 2)}
    assert not abut.Scene(device).collide(method="kdop")


def test_refusals(device):
    scene = random_scene(device, 2)
    with pytest.raises(abut.OptionError, match="no batches"):
        scene.collide(method="kdop", poses=np.tile(np.eye(4), (2, 7, 1, 1)))
    with pytest.raises(abut.OptionError, match="no self_collisions"):
        scene.collide(method="kdop", self_collisions=True)
    with pytest.raises(abut.OptionError, match="width"):
        scene.collide(method="kdop", width=9)
