"""Query closest points: the thickness of a knot, and points inside it."""

import numpy as np

import abut
from abut import cases

knot = cases.pair("knot")[0]
mesh = abut.Mesh(*knot)
low, high = knot.vertices.min(axis=0), knot.vertices.max(axis=0)
points = np.random.default_rng(0).uniform(low, high, size=(200_000, 3))

near = abut.closest_point(mesh, points, signed=True)
distance = near.distance.numpy()
print(f"{mesh}: sign by {near.sign}")

# The share of random points inside is the share of the box that the knot fills.
volume = (distance < 0).mean() * np.prod(high - low)
deepest = distance.argmin()
print(f"volume about {volume:.3f}; deepest inside: {-distance[deepest]:.3f}")

# Face and barycentric coordinates of the closest point, for example to look up a texture.
face = near.face.numpy()[deepest]
weights = near.barycentric.numpy()[deepest]
print("closest to the deepest point:", weights @ knot.vertices[knot.faces[face]])

# With an upper bound the search is faster: a safety margin along a path.
path = np.linspace([-2.0, 0.0, 0.3], [2.0, 0.0, 0.3], 1000)
margin = abut.closest_point(mesh, path, signed=True, upper_bound=0.2).distance.numpy()
print(f"{(margin < 0.2).mean():.0%} of the path is nearer than 0.2", end=", ")
print(f"{(margin < 0).mean():.0%} inside")

# A batch of ten poses of the mesh.
poses = np.tile(np.eye(4), (10, 1, 1))
poses[:, 1, 3] = np.linspace(0, 2, 10)
clearance = abut.closest_point(mesh, path, pose=poses, signed=True).distance.numpy().min(axis=1)
print("clearance of the path, pose by pose:", clearance.round(2))
