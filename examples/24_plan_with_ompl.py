"""Plan a motion of a robot with OMPL, by exact verdicts of configurations and whole motions.

Needs ``pip install abut[robots,ompl]``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import abut

LINK = """<link name="{name}"><collision><origin xyz="{at}" rpy="0 1.5708 0"/>
  <geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{above}"/><child link="{below}"/>
  <origin xyz="{at}"/><axis xyz="0 0 1"/><limit lower="-2.8" upper="2.8"/></joint>"""
ARM = f"""<robot name="arm">
<link name="base"/>
{LINK.format(name="upper", at="0.25 0 0")}{LINK.format(name="fore", at="0.25 0 0")}
{LINK.format(name="hand", at="0.25 0 0")}
{JOINT.format(name="shoulder", above="base", below="upper", at="0 0 0")}
{JOINT.format(name="elbow", above="upper", below="fore", at="0.5 0 0")}
{JOINT.format(name="wrist", above="fore", below="hand", at="0.5 0 0")}
</robot>"""

try:
    from ompl import geometric, util

    import abut.adapters.ompl as adapter
except ImportError:
    raise SystemExit("planning: ompl is missing; pip install abut[ompl]") from None

with TemporaryDirectory() as folder:
    path = Path(folder, "arm.urdf")
    path.write_text(ARM)
    scene = abut.Scene.load(path)

# A pole stands beside the arm, between start and goal.
pose = np.eye(4)
pose[:3, 3] = 0.9, 0.5, 0
scene.add(abut.Mesh(*abut.cases.box((0.1, 0.1, 1.0)), scene.device), pose, "pole")
robot = scene.robot
start, goal = {"shoulder": 0.0}, {"shoulder": 1.2}
print("start is free:", robot.valid(start), "and goal:", robot.valid(goal))
straight = robot.valid_motions(robot.values(start), robot.values(goal))
print(f"the straight motion is free until {straight.time:.3f} of the way")

util.setLogLevel(util.LogLevel.LOG_ERROR)
util.RNG.setSeed(1)
setup = adapter.simple_setup(robot)
space = setup.getStateSpace()
states = [space.allocState(), space.allocState()]
for state, values in zip(states, (start, goal), strict=True):
    for k, value in enumerate(robot.values(values)):
        state[k] = float(value)
setup.setStartAndGoalStates(*states)
setup.setPlanner(geometric.RRTConnect(setup.getSpaceInformation()))
print("OMPL finds a path:", bool(setup.solve(60.0)))
found = setup.getSolutionPath()
joints = adapter.PlannedJoints(robot)
points = np.array([joints.values(found.getState(k)) for k in range(found.getStateCount())])
print("free all the way, certified:", robot.valid_motions(points).free)
