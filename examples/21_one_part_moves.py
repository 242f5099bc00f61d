"""Drag a part through a heap of others: only its contacts are searched again."""

import time

import numpy as np

import abut
from abut import cases

COUNT, FRAMES = 200, 8

rng = np.random.default_rng(0)
turns, _ = np.linalg.qr(rng.normal(size=(COUNT, 3, 3)))
turns[np.linalg.det(turns) < 0] *= -1
poses = np.tile(np.eye(4), (COUNT, 1, 1))
poses[:, :3, :3] = turns
poses[:, :3, 3] = rng.uniform(0, 12, (COUNT, 3))

scene = abut.Scene()
scene.add(abut.Mesh(*cases.torus(32, 16)), poses)  # rings, all of which may move
part = scene.add(abut.Mesh(*cases.icosphere(1280, 1.5)), name="part")

spent = {"bvh": 0.0, "front": 0.0}
same = True
for k in range(FRAMES):
    pose = np.eye(4)
    pose[:3, 3] = 12 * k / FRAMES
    scene.move("part", pose)
    rows = {}
    for method in spent:  # all contacts of the scene, also of rings with each other
        start = time.perf_counter()
        hits = scene.collide(method=method)
        if k > 1:  # kernels are loaded, queues have grown, and there is a previous frame
            spent[method] += (time.perf_counter() - start) * 1e3 / (FRAMES - 2)
        rows[method] = np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)
    same = same and np.array_equal(*rows.values())
    touched = scene.collide(which=part, first=True)  # the part against all others
    print(f"frame {k}: {len(hits)} pairs of faces meet; the part touches {len(touched)} rings")

print(", ".join(f"{method} {ms:.1f} ms a frame" for method, ms in spent.items()))
print("the rows are the same:", same)
