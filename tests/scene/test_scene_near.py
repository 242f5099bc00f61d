"""Distances in scenes are those of pairs of meshes."""

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere, torus
from shapes import random_poses


def random_scene(device, count=9, spread=2.2, seed=0):
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*s, device=device) for s in (icosphere(80), torus(12, 8), box())]
    for k, pose in enumerate(random_poses(count, spread, seed)):
        scene.add(shapes[k % 3], pose)
    return scene


def sides(scene, i, j):
    poses = scene.poses.numpy()
    return (scene.mesh(i), scene.mesh(j)), {"pose_a": poses[i], "pose_b": poses[j]}


@pytest.mark.parametrize("distance", [0.0, 0.05, 0.7])
def test_within(device, distance):
    scene = random_scene(device)
    gaps = scene.within(distance, self_collisions=True)
    rows, values, points = [], [], []
    for i in range(9):
        for j in range(i, 9):
            if i == j:
                found = abut.within(scene.mesh(i), None, distance, method="brute")
            else:
                meshes, poses = sides(scene, i, j)
                found = abut.within(*meshes, distance, **poses, method="brute")
            rows += [(i, j, *pair) for pair in found.pairs.numpy().tolist()]
            values.append(found.distance.numpy())
            points.append(found.points.numpy())
    ours = np.concatenate([gaps.objects.numpy(), gaps.pairs.numpy()], axis=1)
    assert np.array_equal(ours, np.array(rows, np.int32).reshape(-1, 4))
    assert np.array_equal(gaps.distance.numpy(), np.concatenate(values))
    apart = [row for row in range(len(gaps)) if ours[row, 0] != ours[row, 1]]
    assert np.allclose(gaps.points.numpy()[apart], np.concatenate(points)[apart], atol=1e-12)
    assert len(gaps) > 0
    assert len(scene.within(distance)) == len(apart)
    assert set(gaps.numpy()) == {"objects", "pairs", "distance", "points"}


@pytest.mark.parametrize(("spread", "bound"), [(2.2, 0.9), (6.0, 4.0), (0.8, 0.0)])
def test_pairs_under_a_bound(device, spread, bound):
    scene = random_scene(device, spread=spread)
    near = scene.distance(upper_bound=bound)
    expected = {}
    for i in range(9):
        for j in range(i + 1, 9):
            meshes, poses = sides(scene, i, j)
            found = abut.distance(*meshes, **poses)
            if found.value <= bound:
                expected[i, j] = found
    assert [tuple(row) for row in near.objects.numpy().tolist()] == list(expected)
    assert len(near) > 0
    for k, found in enumerate(expected.values()):
        assert near.value.numpy()[k] == found.value
        if found.value > 0:
            assert np.array_equal(near.faces.numpy()[k], found.faces.numpy())
        else:
            meshes, poses = sides(scene, *near.objects.numpy()[k])
            pairs = abut.collide(*meshes, **poses).pairs.numpy().tolist()
            assert near.faces.numpy()[k].tolist() in pairs
        p, q = near.points.numpy()[k]
        assert np.isclose(np.linalg.norm(p - q), found.value, atol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 3.0, 20.0])
def test_the_nearest_of_each(device, spread):
    scene = random_scene(device, spread=spread)
    scene.remove(4)
    near = scene.distance()
    values = np.full((9, 9), np.inf)
    for i in scene.indices.tolist():
        for j in scene.indices.tolist():
            if i < j:
                meshes, poses = sides(scene, i, j)
                values[i, j] = values[j, i] = abut.distance(*meshes, **poses).value
    living = scene.indices
    assert np.array_equal(near.objects.numpy()[:, 0], living)
    assert np.array_equal(near.objects.numpy()[:, 1], values[living].argmin(axis=1))
    assert np.array_equal(near.value.numpy(), values[living].min(axis=1))
    p, q = near.points.numpy().swapaxes(0, 1)
    assert np.allclose(np.linalg.norm(p - q, axis=1), near.value.numpy(), atol=1e-12)
    for (i, _), faces, end in zip(near.objects.numpy(), near.faces.numpy(), p, strict=True):
        mesh, pose = scene.mesh(i), scene.poses.numpy()[i]
        face = abut.Mesh(mesh.vertices.numpy(), mesh.faces.numpy()[faces[:1]], device=device)
        there = (end - pose[:3, 3]) @ pose[:3, :3]
        assert abut.closest_point(face, there[None]).distance.numpy()[0] < 1e-9


def test_filtered_pairs_are_not_near(device):
    scene = abut.Scene(device)
    ball = abut.Mesh(*icosphere(80), device=device)
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = [0, 2.5, 9]
    scene.add(ball, poses)
    assert scene.distance().objects.numpy().tolist() == [[0, 1], [1, 0], [2, 1]]
    scene.ignore(0, 1)
    assert scene.distance().objects.numpy().tolist() == [[0, 2], [1, 2], [2, 1]]
    assert len(scene.within(0.6)) == 0
    assert len(scene.distance(upper_bound=0.6)) == 0


def test_small_scenes(device):
    scene = abut.Scene(device)
    assert len(scene.within(1.0)) == 0
    assert len(scene.distance()) == 0
    scene.add(abut.Mesh(*icosphere(20), device=device))
    assert len(scene.distance()) == 0
    assert len(scene.distance(upper_bound=3.0)) == 0
    with pytest.raises(abut.OptionError):
        scene.within(-1.0)
    with pytest.raises(abut.OptionError):
        scene.distance(upper_bound=np.nan)
