"""Track an animation frame by frame: impacts between frames, and contacts in each."""

import numpy as np

import abut
from abut import cases

FRAMES = 16

ring = cases.torus(96, 32)


def shape_at(phase):
    """A ring that is pinched until its sides intersect, then released."""
    x, y, z = ring.vertices.T
    pinch = np.sin(phase) * np.exp(-4.0 * x**2) * np.tanh(4.0 * y)
    return np.stack([x, y - 1.2 * pinch, z], axis=1)


impacts = abut.Tracker(abut.Mesh(shape_at(0.0), ring.faces))
contacts = abut.Tracker(abut.Mesh(shape_at(0.0), ring.faces))
for frame in range(1, FRAMES + 1):
    shape = shape_at(np.pi * frame / FRAMES)
    hits = impacts.advance(shape)  # vertices move on straight lines from the last frame
    cuts = contacts.step(shape)
    when = f", the first at {hits.first:.3f} of the step" if hits else ""
    print(f"frame {frame:2}: {len(cuts):4} pairs of faces meet, {len(hits):4} impacts{when}")
