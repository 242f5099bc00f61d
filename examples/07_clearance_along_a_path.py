"""Measure the clearance along a path in one call, and plot it."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import abut
from abut import cases

STEPS = 2000
SAFE = 0.25  # required clearance


def plot(path, values, line):
    """Draw a curve over a dashed line."""
    size, margin = (900, 300), 20
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    x = np.linspace(margin, size[0] - margin, len(values))
    y = size[1] - margin - values / values.max() * (size[1] - 2 * margin)
    level = size[1] - margin - line / values.max() * (size[1] - 2 * margin)
    for left in range(margin, size[0] - margin, 16):
        pen.line([(left, level), (left + 8, level)], "firebrick", 2)
    pen.line(list(zip(x, y, strict=True)), "teal", 2)
    path.parent.mkdir(exist_ok=True)
    image.save(path)


gate = abut.Mesh(*cases.torus(72, 36))  # in the xy plane, about z
ball = abut.Mesh(*cases.icosphere(5000))

# A small ball flies through the ring on a wavy path.
small = abut.Mesh(ball.vertices.numpy() * 0.25, ball.faces)
t = np.linspace(-1, 1, STEPS)
poses = np.tile(np.eye(4), (STEPS, 1, 1))
poses[:, :3, 3] = np.stack([0.3 * np.sin(5 * t), 0.2 * np.cos(3 * t), 2 * t], axis=1)

near = abut.distance(gate, small, pose_b=poses)
clearance = near.distance.numpy()
tightest = int(clearance.argmin())
print(f"{STEPS} steps; the tightest is {tightest}, with {clearance[tightest]:.4f} to spare")

p, q = near.points.numpy()[tightest]
print(f"between {p.round(3).tolist()} of the ring and {q.round(3).tolist()} of the ball")
print(f"{(clearance < SAFE).mean():.0%} of the path is nearer than {SAFE}")

# List the faces that are nearer than the limit.
rows = abut.within(gate, small, SAFE, pose_b=poses[tightest])
print(f"there, {len(np.unique(rows.pairs.numpy()[:, 0]))} faces of the ring are too near")

plot(Path("out/clearance.png"), clearance, SAFE)
print("drawn: out/clearance.png")
