"""The slow truth about scenes: the verbs by brute force, for one pair of objects after another."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abut.core.pair_queue import KeyLayout
from abut.mesh import Mesh
from abut.query.distance import distance
from abut.query.within import within
from abut.scene.look import tested
from abut.scene.objects import Objects


def tested_pairs(objects: Objects, meshes: list[Mesh]) -> np.ndarray:
    """(m, 2) all pairs of objects with faces that are to be tested, the lower first, sorted."""
    rows = np.array([i for i, mesh in enumerate(meshes) if mesh.face_count], dtype=np.int64)
    low, high = np.triu_indices(len(rows), 1)
    pairs = np.stack([rows[low], rows[high]], axis=1)
    return pairs[tested(objects, pairs)]


def _posed(objects: Objects, meshes: list[Mesh]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    poses = objects.poses.numpy().reshape(-1, 4, 4)
    for i, j in tested_pairs(objects, meshes).tolist():
        yield i, j, {"pose_a": poses[i], "pose_b": poses[j], "method": "brute"}


def near_rows(
    objects: Objects, meshes: list[Mesh], far: float, own: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """((n, 2) objects, (n, 2) faces, whether they meet) of faces at most so far apart, sorted."""
    found = [(i, j, within(meshes[i], meshes[j], far, **how))
             for i, j, how in _posed(objects, meshes)]  # fmt: skip
    if own:
        found += [(i, i, within(mesh, None, far, method="brute")) for i, mesh in enumerate(meshes)]
    found.sort(key=lambda row: row[:2])
    owners = [np.full((len(gaps), 2), (i, j), np.int32) for i, j, gaps in found]
    faces = [gaps.pairs.numpy() for *_, gaps in found]
    met = [gaps.distance.numpy() == 0 for *_, gaps in found]
    none = np.empty((0, 2), np.int32)
    parts = ([none, *owners], [none, *faces], [np.empty(0, bool), *met])
    owners, faces, met = (np.concatenate(part) for part in parts)
    return owners, faces, met


def nearest_rows(
    objects: Objects, meshes: list[Mesh], bound: float, pairs: KeyLayout, layout: KeyLayout
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(keys of pairs of objects, distances, keys of faces), as ``NearestSearch`` has them."""
    rows = []
    for i, j, how in _posed(objects, meshes):
        near = distance(meshes[i], meshes[j], upper_bound=bound, **how)
        a, b = near.faces.numpy().tolist()
        rows.append((i << pairs.bits_b | j, near.value, a << layout.bits_b | b))
    keys, values, faces = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(keys, np.int64), np.array(values, float), np.array(faces, np.int64)
