"""Find the poses of a batch that are free of contact, in one call."""

import time

import numpy as np

import abut
from abut import cases

POSES = 500

ring, other = (abut.Mesh(*shape) for shape in cases.pair("tori", faces=2000))

# The second ring slides past the first while it rotates about its own z axis.
turn = np.linspace(0, 2 * np.pi, POSES)
poses = np.tile(np.eye(4), (POSES, 1, 1))
poses[:, 0, 0], poses[:, 0, 1] = np.cos(turn), -np.sin(turn)
poses[:, 1, 0], poses[:, 1, 1] = np.sin(turn), np.cos(turn)
poses[:, 0, 3] = np.linspace(-4, 4, POSES)

abut.collide(ring, other, pose_b=poses[:2], first=True)  # load kernels and build hierarchies
start = time.perf_counter()
hits = abut.collide(ring, other, pose_b=poses, first=True)
spent = time.perf_counter() - start
colliding = hits.colliding.numpy()
print(f"{colliding.sum()} of {POSES} poses collide, {1e6 * spent / POSES:.0f} µs a pose")

# Runs of poses without contact:
edges = np.flatnonzero(np.diff(colliding.astype(int), prepend=1, append=1))
for first, last in edges.reshape(-1, 2):
    print(f"free from x = {poses[first, 0, 3]:+.2f} to {poses[last - 1, 0, 3]:+.2f}")

# Without first=True every pair is listed, with the pose it belongs to.
hits = abut.collide(ring, other, pose_b=poses[::100])
for pose, count in zip(*np.unique(hits.pose.numpy(), return_counts=True), strict=True):
    print(f"pose {100 * pose}: {count} pairs")
