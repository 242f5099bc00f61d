"""Measure the clearance of 10,000 configurations of a robot arm, link by link."""

import os
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import abut
from abut import cases

CONFIGURATIONS = 10_000
ENOUGH = 0.1  # clearance beyond which none is measured [m]
# From each link of a Franka Panda to the next: position, and a rotation by 90 degrees about x.
OFFSETS = [(0, 0, 0.333), (0, 0, 0), (0, -0.316, 0), (0.0825, 0, 0)]
OFFSETS += [(-0.0825, 0.384, 0), (0, 0, 0), (0.088, 0, 0)]
QUARTERS = [0, -1, 1, 1, -1, 1, 1]
LOWEST = np.array([-2.9, -1.76, -2.9, -3.07, -2.9, -0.02, -2.9])  # joint limits [rad]
HIGHEST = np.array([2.9, 1.76, 2.9, -0.07, 2.9, 3.75, 2.9])


def link_poses(joints):
    """Poses of the seven links, (7, B, 4, 4), for joint angles (B, 7)."""
    pose = np.tile(np.eye(4), (len(joints), 1, 1))
    poses = []
    for offset, quarter, angle in zip(OFFSETS, QUARTERS, joints.T, strict=True):
        step = np.tile(np.eye(4), (len(joints), 1, 1))
        step[:, :3, 3] = offset
        c, s = np.cos(angle), np.sin(angle)
        turn = np.zeros((len(joints), 3, 3))
        turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1] = c, -s, s, c
        turn[:, 2, 2] = 1
        about_x = np.eye(3) if quarter == 0 else [[1, 0, 0], [0, 0, -quarter], [0, quarter, 0]]
        step[:, :3, :3] = about_x @ turn
        pose = pose @ step
        poses.append(pose)
    return poses


def links():
    """Meshes of the links: from the data folder where there is one, else cylinders."""
    folder = Path(os.environ.get("ABUT_DATA", "../shared/data"))
    if (folder / "robots" / "panda_collision.npz").is_file():
        data = np.load(folder / "robots" / "panda_collision.npz")
        known = {k: (f"link{k}_stl__V", f"link{k}_stl__F") for k in range(1, 8)}
        return {k: abut.Mesh(data[v], data[f]) for k, (v, f) in known.items() if v in data}
    ball = cases.icosphere(300)
    return {k: abut.Mesh(ball.vertices * [0.06, 0.06, 0.12], ball.faces) for k in range(1, 8)}


arm = links()
ring = abut.Mesh(*cases.torus(60, 24, 0.25, 0.08).moved((0.6, 0.0, 0.5)))
joints = np.random.default_rng(0).uniform(LOWEST, HIGHEST, (CONFIGURATIONS, 7))
poses = link_poses(joints)
abut.distance(next(iter(arm.values())), ring, pose_a=poses[0][:300])  # load kernels

start = time.perf_counter()
by_link = {  # distances beyond ENOUGH are infinite
    k: abut.distance(mesh, ring, pose_a=poses[k - 1], upper_bound=ENOUGH).distance.numpy()
    for k, mesh in arm.items()
}
spent = time.perf_counter() - start
clearance = np.minimum(np.min(list(by_link.values()), axis=0), ENOUGH)
free = clearance > 0
print(f"{CONFIGURATIONS} configurations, {len(arm)} links, {ring.face_count} faces: {spent:.2f} s")
print(f"{free.mean():.1%} are free, {np.mean(clearance == ENOUGH):.1%} by {ENOUGH} m or more")
for k, value in by_link.items():
    print(f"link {k}: in contact in {np.mean(value == 0):6.2%}")

# Plot the configurations, sorted by clearance.
image = Image.new("RGB", (900, 300), "white")
x, y = np.linspace(20, 880, 861), np.sort(clearance)[np.linspace(0, len(free) - 1, 861).astype(int)]
ImageDraw.Draw(image).line(list(zip(x, 280 - 260 * y / y.max(), strict=True)), "teal", 2)
Path("out").mkdir(exist_ok=True)
image.save("out/robot_clearance.png")
print("drawn: out/robot_clearance.png")
