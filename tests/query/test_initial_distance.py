"""Impacts say how close things were at the start, where no step is safe."""

import pickle

import numpy as np
import pytest

import abut
from abut import cases
from abut.query import initial_distance
from shapes import moved, random_poses, shift


@pytest.fixture
def told(monkeypatch):
    """The messages about starts, as of a new process."""
    messages = []
    monkeypatch.setattr(initial_distance, "_logged", [])
    monkeypatch.setattr(initial_distance.log, "warning", lambda m, *args: messages.append(m % args))
    return messages


def falling(device, height):
    """A box that falls on a floor from a height, which is the distance of both."""
    box, floor = cases.box(), cases.plane(4, 4, size=4.0)
    bottom = box.vertices[:, 2].min()
    start = box.vertices - [0, 0, bottom - height]
    top = abut.Motion(abut.Mesh(start, box.faces, device), start - np.array([0, 0, 2.0]))
    ground = abut.Mesh(*floor, device)
    return top, abut.Motion(ground, ground.vertices)


def test_a_start_closer_than_the_gap_is_said_with_its_distance(device, told):
    moves = falling(device, 0.003)
    hits = abut.ccd(*moves, min_distance=0.01)
    assert hits.first == 0.0 and hits.safe_step == 0.0
    assert hits.initial_distance == pytest.approx(0.003, rel=1e-12)
    assert len(told) == 1 and "start 0.003 apart, closer than min_distance=0.01" in told[0]
    again = abut.ccd(*moves, min_distance=0.01)
    assert again.initial_distance == hits.initial_distance and len(told) == 1, "once is enough"


def test_nothing_is_said_of_an_ordinary_step(device, told):
    hits = abut.ccd(*falling(device, 0.5), min_distance=0.01)
    assert 0.0 < hits.first < 1.0 and hits.initial_distance == np.inf
    far = abut.ccd(*falling(device, 5.0), min_distance=0.01)
    assert not far and far.initial_distance == np.inf
    touching = abut.ccd(*falling(device, 0.0))
    assert touching.first == 0.0 and touching.initial_distance == 0.0
    assert told == []


@pytest.mark.parametrize("first", [False, True])
def test_the_distance_is_that_of_the_meshes(device, first):
    """Of meshes apart, the nearest points lie on a vertex and a face or on two edges."""
    shape = cases.gem(80)
    for seed, pose in enumerate(random_poses(6, 0.2, seed=3)):
        pose[:3, 3] += [2.05, 0.0, 0.0]
        a, b = abut.Mesh(*shape, device), abut.Mesh(*shape, device)
        near = abut.distance(a, b, pose_b=pose)
        if near.distance == 0.0:
            continue
        for rigid in (False, True):
            other = abut.Motion(b, start_pose=pose, end_pose=random_poses(1, 0.2, seed)[0])
            if not rigid:
                there = moved(shape.vertices, pose)
                other = abut.Motion(abut.Mesh(there, shape.faces, device), there * 0.5)
            gap = 1.5 * near.distance
            hits = abut.ccd(abut.Motion(a, a.vertices), other, min_distance=gap, first=first)
            assert hits.first == 0.0
            if first:
                assert near.distance * (1 - 1e-12) <= hits.initial_distance <= gap
            else:
                assert hits.initial_distance == pytest.approx(near.distance, rel=1e-9)
                back = abut.ccd(other, abut.Motion(a, a.vertices), min_distance=gap)
                assert back.initial_distance == pytest.approx(near.distance, rel=1e-9)


def test_of_one_mesh_against_itself(device, told):
    sheet = cases.plane(6, 6, size=2.0)
    both = np.concatenate([sheet.vertices, sheet.vertices + np.array([0.05, 0.03, 0.02])])
    faces = np.concatenate([sheet.faces, sheet.faces + len(sheet.vertices)])
    mesh = abut.Mesh(both, faces, device)
    tracker = abut.Tracker(mesh)
    hits = tracker.advance(both + 0.1, min_distance=0.04)
    assert hits.initial_distance == pytest.approx(0.02, rel=1e-9) and len(told) == 1
    assert pickle.loads(pickle.dumps(hits)).initial_distance == hits.initial_distance


def test_it_is_that_of_the_start_after_the_mesh_has_deformed(device):
    top, floor = falling(device, 0.003)
    hits = abut.ccd(top, floor, min_distance=0.01)
    for k in range(3):
        top.mesh.deform(top.mesh.vertices.numpy() + 1.0 + k)
    assert hits.initial_distance == pytest.approx(0.003, rel=1e-12)


def test_scenes_say_it_too(device, told):
    scene = abut.Scene(device)
    scene.add(abut.Mesh(*cases.box(), device))
    scene.add(abut.Mesh(*cases.box(), device), shift(0, 0, 1.002))
    scene.add(abut.Mesh(*cases.box(), device), shift(9, 0, 0))
    here = scene.poses.numpy().copy()
    down = here.copy()
    down[1] = shift(0, 0, 0.5)
    hits = scene.ccd(down, min_distance=0.01)
    assert hits.first == 0.0
    size = np.ptp(cases.box().vertices[:, 2])
    near = scene.distance(pairs=[(0, 1)]).distance.numpy()[0]
    assert size == 1.0 and near == pytest.approx(0.002, rel=1e-9)
    assert hits.initial_distance == pytest.approx(near, rel=1e-12)
    assert len(told) == 1 and "start 0.002 apart" in told[0]
    assert scene.ccd(down, min_distance=0.001).initial_distance == np.inf
    batch = scene.ccd(np.stack([down, here]), min_distance=0.01, which=[1, 2])
    np.testing.assert_allclose(batch.initial_distance.numpy(), [near, near], rtol=1e-12)
    none = scene.ccd(np.stack([down, here]), min_distance=0.01, which=2)
    np.testing.assert_array_equal(none.initial_distance.numpy(), [np.inf, np.inf])
    assert len(told) == 1
