"""Simulate the collision machine: cycles by width and number of pipelines."""

import numpy as np

import abut
from abut import cases, hardware

CLOCK_MHZ = 150

ring, other = (abut.Mesh(*shape, "cpu") for shape in cases.pair("tori", faces=600))
exact = {tuple(pair) for pair in abut.collide(ring, other).pairs.numpy().tolist()}

# Wider numbers resolve finer gaps: fewer false positives, but more memory to read.
for width in (10, 14, 18, 35):
    run = hardware.simulate(ring, other, width=width)
    found = {tuple(pair) for pair in run.pairs.tolist()}
    assert exact <= found  # no collision is lost
    print(
        f"{width} bits: {run.dop_tests} DOP tests, {run.bursts} bursts, "
        f"{len(found - exact)} near misses among {len(found)} pairs"
    )

# More pipelines test more axes at once, until the memory is the bottleneck.
for pipelines in (1, 2, 4, 8):
    run = hardware.simulate(ring, other, pipelines=pipelines)
    print(f"{pipelines} pipelines: {run.cycles} cycles, {run.cycles / CLOCK_MHZ:.0f} µs")

# The same integers in software, on any device; exact tests of faces follow.
hits = abut.collide(ring, other, method="kdop", width=18)
assert np.array_equal(hits.pairs.numpy(), abut.collide(ring, other).pairs.numpy())
