"""Test arrays of triangles exactly, with culling of your own."""

import numpy as np

import abut
from abut import cases

a, b = cases.pair("spheres", faces=500)
triangles_a = a.vertices[a.faces]  # (n, 3, 3)
triangles_b = b.vertices[b.faces]

# A simple culling: boxes that overlap along all three axes.
low_a, high_a = triangles_a.min(axis=1), triangles_a.max(axis=1)
low_b, high_b = triangles_b.min(axis=1), triangles_b.max(axis=1)
overlap = (low_a[:, None] <= high_b) & (low_b <= high_a[:, None])
face_a, face_b = np.nonzero(overlap.all(axis=2))

meet = abut.primitives.intersect_tri_tri(triangles_a[face_a], triangles_b[face_b]).numpy()
pairs = np.stack([face_a, face_b], axis=1)[meet]
print(f"{len(meet)} candidates, {len(pairs)} pairs meet")

hits = abut.collide(abut.Mesh(*a), abut.Mesh(*b))
print("the same as abut.collide:", np.array_equal(pairs, hits.pairs.numpy()))

# Exact: a corner that touches a face counts, one step of the last bit away does not.
floor = np.array([[[0, 0, 0], [4, 0, 0], [0, 4, 0]]], dtype=np.float64)
spike = np.array([[[1, 1, 0], [1, 1, 1], [2, 1, 1]]], dtype=np.float64)
above = spike.copy()
above[0, 0, 2] = np.nextafter(0, 1)
print("touching:", abut.primitives.intersect_tri_tri(floor, spike).numpy()[0], end=", ")
print("a hair above:", abut.primitives.intersect_tri_tri(floor, above).numpy()[0])
