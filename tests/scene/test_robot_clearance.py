"""Least distances of a robot in configurations."""

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere
from abut.scene.robots import robot_clearance
from abut.scene.robots.kinematics import Joint, Kinematics

X = np.array([1.0, 0.0, 0.0])


def shifted(*offset):
    pose = np.eye(4)
    pose[:3, 3] = offset
    return pose


def two_cubes(device):
    """Two cubes of edge 1 on slides along x, 3 apart at rest, and a wall at 5."""
    moves = [[Joint(X, False, np.zeros(3), k)] for k in range(2)]
    frames = np.stack([np.eye(4), shifted(0, 4, 0)])
    parts, limits = [(0, np.eye(4)), (1, np.eye(4))], np.tile([-9.0, 9.0], (2, 1))
    kinematics = Kinematics(["a", "b"], ["a", "b"], [-1, -1], frames, moves, parts, limits)
    scene = abut.Scene(device)
    cube = abut.Mesh(*box((1.0, 1.0, 1.0)), device)
    scene.set_robot(kinematics, [scene.add(cube, name="a"), scene.add(cube, name="b")])
    scene.add(abut.Mesh(*box((1.0, 1.0, 20.0)), device), shifted(5, 0, 0), "wall")
    return scene


def test_known_clearances(device, monkeypatch):
    robot = two_cubes(device).robot
    one = robot.clearance([0.0, 0.0])
    assert one.distance == 3.0 and one.objects.tolist() == [0, 1]
    monkeypatch.setattr(robot_clearance, "CLEARANCE_CHUNK", 2)
    some = robot.clearance([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [4.5, 0], [9.0, 0]]).numpy()
    assert some["distance"].tolist() == [3.0, 2.0, 0.0, 0.0, 3.0]
    assert some["objects"].tolist() == [[0, 1], [0, 2], [0, 2], [0, 2], [0, 2]]


def test_paddings_are_taken_off(device):
    """Another pair may be the nearest then, and answers are those of valid."""
    robot = two_cubes(device).robot
    robot.pad(0.5)
    near = robot.clearance([0.0, 0.0])
    assert near.distance == 2.0 and near.objects.tolist() == [0, 1]
    robot.pad({"a": 0, "b": 0, "wall": 1.5})
    near = robot.clearance([0.0, 0.0])
    assert near.distance == 2.5 and near.objects.tolist() == [0, 2]
    values = np.random.default_rng(0).uniform(-3, 6, (200, 2))
    robot.pad({"a": 0.25, "b": 0.3, "wall": 0.4})
    found = robot.clearance(values).numpy()
    pairs, pads = [(0, 1), (0, 2), (1, 2)], [0.55, 0.65, 0.7]
    rows = robot.scene.distance(pairs=pairs, poses=robot.poses(values)).distance.numpy()
    left = np.maximum(rows.reshape(200, 3) - pads, 0)
    assert np.array_equal(found["distance"] > 0, robot.valid(values).numpy())
    assert np.allclose(found["distance"], left.min(axis=1), atol=1e-15)
    single = left.min(axis=1) > 0
    assert np.array_equal(found["objects"][single], np.array(pairs)[left.argmin(axis=1)][single])
    assert 20 < single.sum() < 180


def test_one_inside_another_has_no_clearance(device):
    scene = two_cubes(device)
    ball = icosphere(80)
    scene.add(abut.Mesh(ball.vertices * 0.1, ball.faces, device), name="seed")
    found = scene.robot.clearance([[0.0, 0.0], [-3.0, 0.0]]).numpy()
    assert found["distance"][0] == 0.0 and found["objects"][0].tolist() == [-1, -1]
    assert abs(found["distance"][1] - 2.4) < 0.01


def test_pairs_that_are_not_tested_do_not_count(device):
    scene = two_cubes(device)
    scene.ignore("a", "b")
    assert scene.robot.clearance([0.0, 0.0]).objects.tolist() == [0, 2]
    scene.ignore(["a", "b"], "wall")
    assert scene.robot.clearance([0.0, 0.0]).distance == np.inf
    with pytest.raises(abut.AbutError):
        scene.robot.clearance([np.nan, 0.0])
    assert scene.robot.clearance(np.zeros((0, 2))).numpy()["distance"].shape == (0,)


def test_obstacles_do_not_count(device):
    scene = two_cubes(device)
    scene.add(scene.mesh("a"), shifted(5, 0, 12), "other")
    values = np.random.default_rng(0).uniform(-3, 3, (30, 2))
    found = scene.robot.clearance(values).numpy()["distance"]
    rows = scene.distance(
        pairs=[(0, 1), (0, 2), (1, 2), (0, 3), (1, 3)], poses=scene.robot.poses(values)
    )
    assert np.array_equal(found, rows.distance.numpy().reshape(30, 5).min(axis=1))
