"""Find all contacts of a thousand drifting boxes, in one call per frame."""

import time

import numpy as np

import abut
from abut import cases

COUNT, FRAMES = 1000, 5

rng = np.random.default_rng(0)
turns, _ = np.linalg.qr(rng.normal(size=(COUNT, 3, 3)))
turns[np.linalg.det(turns) < 0] *= -1
poses = np.tile(np.eye(4), (COUNT, 1, 1))
poses[:, :3, :3] = turns
poses[:, :3, 3] = rng.uniform(0, 14, (COUNT, 3))

scene = abut.Scene()
boxes = scene.add(abut.Mesh(*cases.box()), poses)  # a thousand objects that share a mesh
for frame in range(FRAMES):
    poses[:, :3, 3] += rng.normal(0, 0.05, (COUNT, 3))
    start = time.perf_counter()
    scene.move(boxes, poses)
    hits = scene.collide()
    spent = (time.perf_counter() - start) * 1e3
    print(
        f"frame {frame}: {len(hits.object_pairs)} pairs of boxes meet in {len(hits)} pairs of",
        end="",
    )
    print(f" faces, {spent:.1f} ms")

# The box with the most neighbours breaks in two.
touched, counts = np.unique(hits.object_pairs.numpy(), return_counts=True)
busiest = int(touched[counts.argmax()])
halves = scene.split(busiest, np.arange(12) // 6)
after = scene.collide().object_pairs.numpy()
print(f"box {busiest} becomes {halves.tolist()}: {len(after)} pairs of objects meet now")

# Distance to the nearest neighbour, for boxes without contact.
near = scene.distance()
alone = near.distance.numpy() > 0
print(f"{alone.sum()} boxes touch none; the loneliest is {near.distance.numpy().max():.2f} away")
