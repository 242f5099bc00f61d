"""Cull leaves around a tree, without a hierarchy."""

import numpy as np

import abut
from abut import cases

scene = cases.leaves(60)
meshes = [abut.Mesh(*shape) for shape in scene.shapes]
faces = sum(mesh.face_count for mesh in meshes)

for pixels in (32, 128, 512):
    left = abut.cull(meshes, poses=scene.poses, pixels=pixels)
    print(
        f"{pixels:4} pixels: {len(left.objects):3} of {len(meshes)} objects, "
        f"{len(left):5} of {faces} faces, {len(left.object_pairs):3} pairs of objects"
    )

# at any resolution no touching face is lost
kept = {tuple(row) for row in left.object_pairs.numpy().tolist()}
lost = 0
for i, j in np.argwhere(np.triu(np.ones((len(meshes),) * 2), 1)).tolist():
    poses = {"pose_a": scene.poses[i], "pose_b": scene.poses[j]}
    if (i, j) not in kept and abut.collide(meshes[i], meshes[j], first=True, **poses):
        lost += 1
print(f"pairs of objects that touch and were lost: {lost}")
