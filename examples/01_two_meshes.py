"""Intersect two meshes."""

import numpy as np

import abut
from abut import cases

knot, ball = (abut.Mesh(*shape) for shape in cases.pair("knot", faces=5000))
print(knot, "and", ball)

hits = abut.collide(knot, ball)
print(f"{len(hits)} pairs of faces meet; the first: {hits.pairs.numpy()[0].tolist()}")

# Each pair intersects in a segment; joined, the segments are the curves of intersection.
for number, curve in enumerate(hits.curves()):
    length = np.linalg.norm(np.diff(curve, axis=0), axis=1).sum()
    closed = "closed" if (curve[0] == curve[-1]).all() else "open"
    print(f"curve {number}: {closed}, {len(curve)} points, {length:.3f} long")

# One pair decides whether there is contact.
print("contact:", bool(abut.collide(knot, ball, first=True)))

# A mesh inside another has no faces in contact, but as solids they collide.
inner, outer = (abut.Mesh(*shape) for shape in cases.pair("nested", faces=2000))
print("surfaces:", bool(abut.collide(inner, outer)), end=", ")
print("solids:", bool(abut.collide(inner, outer, solid=True)))
