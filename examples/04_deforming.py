"""Deform a mesh in every frame: its hierarchy is refitted, not rebuilt."""

import time

import numpy as np

import abut
from abut import cases

FRAMES = 12

ground, ball = cases.pair("terrain", faces=5000)
terrain = abut.Mesh(*ground)
jelly = abut.Mesh(*ball)
abut.collide(terrain, jelly)  # load kernels and build hierarchies

rest = ball.vertices
for frame in range(FRAMES):
    phase = 2 * np.pi * frame / FRAMES
    stretch = 1 + 0.3 * np.cos(phase)
    shape = rest * [1 / np.sqrt(stretch), 1 / np.sqrt(stretch), stretch]
    shape[:, 2] += 0.6 + 0.4 * np.cos(phase)

    start = time.perf_counter()
    jelly.deform(shape)
    hits = abut.collide(terrain, jelly)
    spent = 1e3 * (time.perf_counter() - start)
    print(f"frame {frame:2}: {len(hits):4} pairs, {len(hits.curves())} curves, {spent:.2f} ms")
