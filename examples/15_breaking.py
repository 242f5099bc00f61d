"""Break a ring into closed pieces, push one, and find the pieces that touch."""

import numpy as np

import abut
from abut import cases

ring = cases.torus(40, 20)
sites = cases.broken_sites(ring, 12, impact=np.array([1.0, 0.0, 0.4]))
pieces = cases.shattered(ring, sites, gap=1e-3)


def volume(shape):
    a, b, c = (shape.vertices[corner] for corner in shape.faces.T)
    return float(np.einsum("ij,ij->", np.cross(a, b), c)) / 6


share = sum(map(volume, pieces)) / volume(ring)
print(f"{len(pieces)} pieces, {share:.1%} of the ring's volume")

scene = abut.Scene()
whole = cases.joined(*pieces)
labels = np.repeat(np.arange(len(pieces)), [len(piece.faces) for piece in pieces])
index = scene.add(abut.Mesh(*whole), name="ring")
objects = scene.split(index, labels)
print(f"objects: {len(scene)}, pairs of faces that meet: {len(scene.collide())}")

largest = int(np.argmax([volume(piece) for piece in pieces]))
for angle in np.linspace(0.0, 0.4, 5):
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    scene.move(objects[largest], pose)
    hits = scene.collide()
    print(f"pushed along the ring by {angle:.1f}: meets {len(hits.object_pairs)} other pieces")
