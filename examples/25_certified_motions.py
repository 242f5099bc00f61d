"""Certify motions of an arm: no contact at any time, not only at sampled ones.

Needs ``pip install abut[robots]``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import abut
from abut import cases

ARM = """<robot name="arm">
  <link name="upper"><collision><origin xyz="0.3 0 0"/>
    <geometry><box size="0.6 0.1 0.1"/></geometry></collision></link>
  <link name="fore"><collision><origin xyz="0.35 0 0"/>
    <geometry><box size="0.5 0.08 0.08"/></geometry></collision></link>
  <link name="base"><collision><geometry><box size="0.1 0.1 0.3"/></geometry></collision></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/>
    <origin xyz="0.6 0 0"/><axis xyz="0 0 1"/></joint>
</robot>"""

try:
    with TemporaryDirectory() as folder:
        path = Path(folder, "arm.urdf")
        path.write_text(ARM)
        scene = abut.Scene.load(path, "cpu")
except abut.ToolError as error:
    raise SystemExit(str(error)) from None

pin, pose = cases.icosphere(320), np.eye(4)
pose[:3, 3] = [0.7, 0.7, 0.0]
scene.add(abut.Mesh(pin.vertices * 0.01, pin.faces, "cpu"), pose, "pin")

q0, q1 = np.array([0.0, 0.0]), np.array([1.6, 0.0])
steps = q0 + np.linspace(0, 1, 12)[:, None] * (q1 - q0)
print(f"12 samples: {'free' if scene.robot.valid(steps).numpy().all() else 'in contact'}")

found = scene.robot.valid_motions(q0, q1)
names = " and ".join(scene.name_of(found.objects))
print(f"all the way: {names} touch after {found.time:.3f} of the motion")

path = [q0, [-0.6, 2.2], [1.4, 2.2], q1]  # with the elbow bent
print(f"around the pin: {'free' if scene.robot.valid_motions(path).free else 'in contact'}")
near = scene.robot.clearance(path)
print("clearance at the waypoints:", *(f"{x:.3f}" for x in near.distance.numpy()))
