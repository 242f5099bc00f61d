"""Find the self-collisions of ten thousand configurations of a robot from a file.

Needs ``pip install abut[robots]``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import abut

ARM = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom name="table" type="box" size="1 1 0.05" pos="0 0 -0.05"/>
    <body name="base" pos="0 0 0.1">
      <geom name="base" type="cylinder" size="0.12 0.1"/>
      <body name="upper" pos="0 0 0.15">
        <joint name="turn" axis="0 0 1" range="-3 3" limited="true"/>
        <joint name="shoulder" axis="0 1 0" range="-2 2" limited="true"/>
        <geom name="upper" type="capsule" size="0.06" fromto="0 0 0.08 0 0 0.5"/>
        <body name="fore" pos="0 0 0.6">
          <joint name="elbow" axis="0 1 0" range="-2.9 2.9" limited="true"/>
          <geom name="fore" type="capsule" size="0.05" fromto="0 0 0.07 0 0 0.45"/>
          <body name="hand" pos="0 0 0.55">
            <joint name="wrist" axis="0 1 0" range="-2 2" limited="true"/>
            <geom name="hand" type="box" size="0.08 0.03 0.08"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

try:
    with TemporaryDirectory() as folder:
        path = Path(folder, "arm.xml")
        path.write_text(ARM)
        scene = abut.Scene.load(path)
except abut.ToolError as error:
    raise SystemExit(f"self-collisions: {error}") from None

robot = scene.robot
print(f"{len(scene)} objects, joints {', '.join(robot.joints)}")
rng = np.random.default_rng(0)
values = rng.uniform(*robot.limits.T, (10_000, len(robot.joints)))
free = ~scene.colliding(poses=robot.poses(values)).numpy()
print(f"{free.sum()} of {len(values)} configurations are free of self-collisions and of the table")

# Pairs of links that collide most often.
hits = scene.collide(poses=robot.poses(values[:2000]), first=True)
pairs, counts = np.unique(hits.object_pairs.numpy(), axis=0, return_counts=True)
for (i, j), count in sorted(zip(pairs.tolist(), counts, strict=True), key=lambda x: -x[1]):
    print(f"{scene.name_of(i)} and {scene.name_of(j)}: in {count} of 2000")

# Check a straight path between two free configurations, in small steps.
start, goal = values[free][:2]
steps = start + np.linspace(0, 1, 500)[:, None] * (goal - start)
blocked = scene.colliding(poses=robot.poses(steps)).numpy()
print("the straight way is", f"blocked at {blocked.argmax()} of 500" if blocked.any() else "free")
