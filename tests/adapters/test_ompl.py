"""OMPL plans with verdicts of abut: every path that it finds is free all the way."""

from itertools import pairwise

import numpy as np
import pytest

import abut
from abut.cases import box
from abut.scene.robots.kinematics import Joint, Kinematics

pytest.importorskip("ompl")
from abut.adapters import ompl as adapter


def pose(*at):
    out = np.eye(4)
    out[:3, 3] = at
    return out


def scene_of_a_slider():
    """A cube that slides in a plane, before a wall of 0.2 with a gap, and a third joint aside."""
    scene = abut.Scene(device="cpu")
    cube = abut.Mesh(*box((0.2, 0.2, 0.2)), "cpu")
    body = scene.add(cube, name="body")
    axes = np.eye(3)
    moves = [[Joint(axes[k], False, np.zeros(3), k) for k in range(3)]]
    limits = np.array([[-1.0, 1], [-1, 1], [-5, 5]])
    frames, parts = np.eye(4)[None], [(0, np.eye(4))]
    robot = Kinematics(["x", "y", "z"], ["body"], [-1], frames, moves, parts, limits)
    scene.set_robot(robot, [body])
    wall = abut.Mesh(*box((0.01, 1.5, 1.0)), "cpu")
    scene.add(wall, pose(0, -0.4, 0), "wall")
    return scene


def state_of(space, values):
    state = space.allocState()
    for k, value in enumerate(values):
        state[k] = float(value)
    return state


def test_states_and_motions():
    scene = scene_of_a_slider()
    setup = adapter.simple_setup(scene.robot, ["x", "y"])
    information, space = setup.getSpaceInformation(), setup.getStateSpace()
    information.setup()
    left, right, wall, out = (
        state_of(space, q) for q in ((-0.5, -0.5), (0.5, -0.5), (0.0, -0.5), (1.5, 0.9))
    )
    assert [information.isValid(x) for x in (left, right, wall, out)] == [True, True, False, False]
    assert not information.checkMotion(left, right)  # a thin wall between
    assert information.checkMotion(left, state_of(space, (-0.5, 0.9)))


def test_values_of_other_joints():
    scene = scene_of_a_slider()
    joints = adapter.PlannedJoints(scene.robot, ["y", "x"], at={"z": 2.0})
    assert joints.values([0.25, 0.5]).tolist() == [0.5, 0.25, 2.0]
    assert joints.state_values({"x": 0.5}).tolist() == [0.0, 0.5]
    with pytest.raises(abut.SceneError, match="no joint 'w'"):
        adapter.PlannedJoints(scene.robot, ["w"])
    scene.robot.limits[0] = -np.inf, np.inf
    with pytest.raises(abut.SceneError, match="joint x has no limits"):
        adapter.simple_setup(scene.robot)


def test_bounds_of_joints_without_limits(tmp_path):
    """A continuous hinge turns half a turn each way; a mobile base is given bounds."""
    (tmp_path / "cart.urdf").write_text(
        """<robot name="cart">
      <link name="floor"/>
      <link name="cart"><collision><geometry><box size="0.3 0.2 0.2"/></geometry></collision></link>
      <link name="arm"><collision><origin xyz="0.3 0 0.2"/><geometry><box size="0.3 0.1 0.1"/>
        </geometry></collision></link>
      <joint name="base" type="{kind}"><parent link="floor"/><child link="cart"/>
        <axis xyz="0 0 1"/></joint>
      <joint name="arm" type="continuous"><parent link="cart"/><child link="arm"/>
        <axis xyz="0 0 1"/></joint></robot>""".replace("{kind}", "planar")
    )
    scene = abut.Scene.load(tmp_path / "cart.urdf", "cpu")
    scene.add(abut.Mesh(*box((0.2, 2.0, 2.0)), "cpu"), pose(1, 0, 0))
    robot = scene.robot
    assert adapter.PlannedJoints(robot, ["arm"]).low.tolist() == [-np.pi]
    with pytest.raises(abut.SceneError, match="base/x has no limits"):
        adapter.simple_setup(robot)
    bounds = {"base/x": (-3, 3), "base/y": (-3, 3)}
    from ompl import geometric

    setup = adapter.simple_setup(robot, bounds=bounds)
    space = setup.getStateSpace()
    setup.setStartAndGoalStates(state_of(space, (0, 0, 0, 0)), state_of(space, (2, 0, 0, 0)))
    setup.setPlanner(geometric.RRTConnect(setup.getSpaceInformation()))
    assert setup.solve(20.0)
    path = setup.getSolutionPath()
    points = [[path.getState(k)[i] for i in range(4)] for k in range(path.getStateCount())]
    assert robot.valid_motions(points).free
    text = (tmp_path / "cart.urdf").read_text().replace("planar", "floating")
    (tmp_path / "cart.urdf").write_text(text)
    robot = abut.Scene.load(tmp_path / "cart.urdf", "cpu").robot
    with pytest.raises(abut.SceneError, match="base/rot_w is part of a quaternion"):
        adapter.simple_setup(robot, ["base/rot_w"])


def test_a_plan_around_a_wall():
    from ompl import geometric, util

    util.setLogLevel(util.LogLevel.LOG_ERROR)
    scene = scene_of_a_slider()
    setup = adapter.simple_setup(scene.robot, ["x", "y"])
    space = setup.getStateSpace()
    setup.setStartAndGoalStates(state_of(space, (-0.5, -0.5)), state_of(space, (0.5, -0.5)))
    setup.setPlanner(geometric.RRTConnect(setup.getSpaceInformation()))
    assert setup.solve(20.0)
    path = setup.getSolutionPath()
    states = [path.getState(k) for k in range(path.getStateCount())]
    joints = adapter.PlannedJoints(scene.robot, ["x", "y"])
    points = np.array([joints.values(state) for state in states])
    assert len(points) > 2 and scene.robot.valid_motions(points).free
    fine = np.concatenate([np.linspace(a, b, 200) for a, b in pairwise(points)])
    assert scene.robot.valid(fine).numpy().all()
