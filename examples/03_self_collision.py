"""Find the self-intersections of a mesh."""

import numpy as np

import abut
from abut import cases

cloth = abut.Mesh(*cases.single("folded_cloth", faces=8000))
hits = abut.self_collide(cloth)
faces = np.unique(hits.pairs.numpy())
print(f"{len(hits)} pairs of faces cut each other, {len(faces)} of {cloth.face_count} faces")
for curve in hits.curves():
    low, high = curve.min(axis=0).round(2), curve.max(axis=0).round(2)
    print(f"a fold between {low.tolist()} and {high.tolist()}")

# A file without shared vertices (STL) has three of its own for every face. By default vertices
# at equal positions count as one, so neighbours are not reported; weld=False goes by index.
corners = cloth.vertices.numpy()[cloth.faces.numpy()].reshape(-1, 3)
soup = abut.Mesh(corners, np.arange(len(corners)).reshape(-1, 3))
print("the same as a soup:", len(abut.self_collide(soup)), "pairs")
print("by index alone:", len(abut.self_collide(soup, weld=False)), "pairs, neighbours included")

sphere = abut.Mesh(*cases.single("sphere", faces=5000))
print("a sphere:", len(abut.self_collide(sphere)), "pairs")
