"""The robot of a scene: its objects among obstacles."""

import pickle

import numpy as np
import pytest

import abut
from abut.cases import box
from abut.scene.kinematics import Joint, Kinematics

EYE = np.eye(4)
Z = np.array([0.0, 0.0, 1.0])


def shifted(*offset):
    pose = np.eye(4)
    pose[:3, 3] = offset
    return pose


def arm_kinematics():
    """A hinge at the origin, an arm along x; a slide at its end, along x, for a hand."""
    frames = np.stack([EYE, shifted(0, 0, 1), shifted(2, 0, 0)])
    turn = Joint(Z, True, np.zeros(3), 0)
    reach = Joint(np.array([1.0, 0, 0]), False, np.zeros(3), 1)
    parts = [(0, EYE), (1, shifted(1, 0, 0)), (2, EYE)]
    limits = np.array([[-3.0, 3.0], [0.0, 1.0]])
    moves, names = [[], [turn], [reach]], ["base", "arm", "hand"]
    return Kinematics(["turn", "reach"], names, [-1, 0, 1], frames, moves, parts, limits)


def arm_scene(device, obstacle_first=False):
    """The arm of cubes of edge 0.5, with or without an obstacle before it."""
    scene = abut.Scene(device)
    cube = abut.Mesh(*box((0.5, 0.5, 0.5)), device)
    if obstacle_first:
        scene.add(cube, shifted(9, 0, 0), "stone")
    rows = [scene.add(cube, name=name) for name in ("base", "arm", "hand")]
    scene.set_robot(arm_kinematics(), rows)
    scene.robot.move([0.0, 0.0])
    return scene


@pytest.mark.parametrize("obstacle_first", [False, True])
def test_poses_hold_obstacles_where_they_are(device, obstacle_first):
    scene = arm_scene(device, obstacle_first)
    first = int(obstacle_first)
    assert scene.robot.objects.tolist() == [first, first + 1, first + 2]
    scene.add(scene.mesh("base"), shifted(0, 5, 1), "wall")
    batch = scene.robot.poses([[0.0, 0.0], [np.pi / 2, 1.0]])
    assert batch.shape == (2, 4 + first, 4, 4)
    assert np.allclose(batch[1, first + 2, :3, 3], [0, 3, 1])
    assert np.array_equal(batch[:, -1], np.stack([shifted(0, 5, 1)] * 2))
    scene.move("wall", shifted(0, 3.4, 1))
    poses = scene.robot.poses([[0.0, 0.0], [np.pi / 2, 1.0], [np.pi / 2, 0.8]])
    assert scene.colliding(poses=poses).numpy().tolist() == [False, True, False]


def test_move(device):
    scene = arm_scene(device)
    scene.robot.move([np.pi / 2, 0.5])
    assert np.allclose(scene.pose_of("hand")[:3, 3], [0, 2.5, 1])


def test_removed_and_split_objects(device):
    scene = arm_scene(device)
    scene.remove("base")
    assert scene.robot.objects.tolist() == [1, 2]
    assert scene.add(scene.mesh("hand"), shifted(0, 9, 0)) == 0  # an obstacle in its row
    assert scene.robot.objects.tolist() == [1, 2]
    pieces = scene.split("hand", np.arange(12) % 2)
    assert set(scene.robot.objects.tolist()) == {1, *pieces.tolist()}
    scene.robot.move([np.pi / 2, 1.0])
    for piece in pieces:
        assert np.allclose(scene.pose_of(piece)[:3, 3], [0, 3, 1])
    assert np.allclose(scene.pose_of(0), shifted(0, 9, 0))


def test_pickling_keeps_the_robot(device):
    scene = arm_scene(device, obstacle_first=True)
    other = pickle.loads(pickle.dumps(scene))
    assert other.robot.objects.tolist() == [1, 2, 3]
    assert np.array_equal(other.robot.poses([0.3, 0.2]), scene.robot.poses([0.3, 0.2]))


def test_set_robot_refuses_other_numbers_of_objects(device):
    scene = arm_scene(device)
    with pytest.raises(abut.SceneError, match="3 parts"):
        scene.set_robot(arm_kinematics(), [0, 1])
    assert abut.Scene(device).robot is None
