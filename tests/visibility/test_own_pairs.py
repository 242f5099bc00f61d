"""Faces of one object are culled by the rule of Scene.collide: in the frame of the object."""

import numpy as np
import pytest

import abut
from shapes import random_poses


def random_mesh(rng, device):
    """Faces anywhere, or between points of a lattice, which share corners and planes."""
    if rng.random() < 0.5:
        corners = rng.uniform(-1.0, 1.0, size=(60, 1, 3)) + rng.normal(size=(60, 3, 3)) * 0.5
        return abut.Mesh(corners.reshape(-1, 3), np.arange(180).reshape(-1, 3), device)
    points = np.round(rng.uniform(-1.0, 1.0, size=(40, 3)) * 4.0) / 4.0
    return abut.Mesh(points, rng.integers(0, 40, size=(60, 3)), device)


@pytest.mark.parametrize("distance", [0.0, 0.05])
@pytest.mark.parametrize("shift", [0.0, 1.0, 1e6, 1e12, 1e15])
def test_own_pairs_survive_far_from_the_origin(device, shift, distance):
    rng = np.random.default_rng(7)
    scene = abut.Scene(device=device)
    place = scene.add(random_mesh(rng, device))
    for pose in random_poses(6, shift):
        scene.remove(place)
        place = scene.add(random_mesh(rng, device), pose=pose)
        found = scene.collide(self_collisions=True)
        if distance:
            found = scene.within(distance, self_collisions=True)
        left = abut.cull(scene, self_collisions=True, pixels=512, distance=distance)
        pairs = set(map(tuple, left.pairs.numpy().tolist()))
        assert len(found) > 10
        assert set(map(tuple, found.pairs.numpy().tolist())) <= pairs
        assert {face for pair in pairs for face in pair} <= set(left.faces.numpy()[:, 1].tolist())


def test_one_object_that_moves_away(device):
    """Buffers of a culling serve poses whose rounding differs."""
    rng = np.random.default_rng(3)
    mesh = random_mesh(rng, device)
    met = abut.self_collide(mesh).pairs.numpy()
    for shift in (1.0, 1e15, 1.0, 1e12):
        pose = random_poses(1, shift, seed=int(np.log2(shift)))[0]
        left = abut.cull([mesh], poses=[pose], self_collisions=True, pixels=512)
        pairs = set(map(tuple, left.pairs.numpy().tolist()))
        assert set(map(tuple, met.tolist())) <= pairs
