"""Contacts of a scene by k-DOPs in fixed point: boxes of objects first, then meshes two by two.

Objects that share their meshes are asked about together, as a batch of poses.
"""

import numpy as np

from abut.broad.overlaps import overlapping_boxes
from abut.mesh import Mesh
from abut.query.collide import collide
from abut.scene.look import tested
from abut.scene.objects import Objects

MARGIN = 2.0**-44  # of coordinates: more than the roundings of poses and boxes amount to


def polytope_rows(
    objects: Objects, meshes: list[Mesh], width: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) objects, the lower first, and (n, 2) faces that meet; for pairs that are tested."""
    poses = objects.poses.numpy().reshape(-1, 4, 4)
    pairs = overlapping_boxes(*_boxes(meshes, poses), objects.device)
    pairs = pairs[tested(objects, pairs)]
    shape = {id(mesh): k for k, mesh in enumerate(meshes)}
    kinds = np.array([shape[id(mesh)] for mesh in meshes], dtype=np.int64)
    owners, faces = [np.empty((0, 2), np.int32)], [np.empty((0, 2), np.int32)]
    for kind in np.unique(kinds[pairs], axis=0):
        both = pairs[(kinds[pairs] == kind).all(axis=1)]
        a, b = (meshes[k] for k in kind)
        at = {"pose_a": poses[both[:, 0]], "pose_b": poses[both[:, 1]]}
        hits = collide(a, b, **at, method="kdop", width=width)
        owners.append(both[hits.pose.numpy()])
        faces.append(hits.pairs.numpy())
    return np.concatenate(owners), np.concatenate(faces)


def _boxes(meshes: list[Mesh], poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of objects in the world; an object without faces has none."""
    bounds = np.array([mesh.bounds for mesh in meshes]).reshape(-1, 2, 3)
    centre, half = bounds.mean(axis=1), (bounds[:, 1] - bounds[:, 0]) / 2
    turn, shift = poses[:, :3, :3], poses[:, :3, 3]
    middle = np.einsum("nij,nj->ni", turn, centre) + shift
    reach = np.einsum("nij,nj->ni", np.abs(turn), half)
    far = np.abs(shift) + np.einsum("nij,nj->ni", np.abs(turn), np.abs(bounds).max(axis=1))
    reach += MARGIN * far.max(axis=1, keepdims=True) + np.finfo(np.float64).tiny
    lower, upper = middle - reach, middle + reach
    empty = np.array([mesh.face_count == 0 for mesh in meshes], dtype=bool)
    lower[empty], upper[empty] = 1.0, 0.0
    return lower, upper
