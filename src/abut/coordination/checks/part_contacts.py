"""Contacts: the pairs of faces that meet, for many pairs of parts at once."""

from typing import NamedTuple

import numpy as np

from abut.broad.overlaps import overlapping_boxes
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.scene.scene import Scene


class PartContacts(NamedTuple):
    """Pairs of faces that meet, sorted by pair of parts, then by faces.

    Attributes:
        pair: (m,) row of the pair of parts.
        faces: (m, 2) faces of the surfaces of a and of b.
        segments: (m, 2, 3) float64 [m]: where they meet.
    """

    pair: np.ndarray
    faces: np.ndarray
    segments: np.ndarray

    def of(self, pair: int) -> slice:
        """Rows of a pair of parts."""
        start, stop = np.searchsorted(self.pair, [pair, pair + 1])
        return slice(int(start), int(stop))

    def boxes(self, count: int) -> np.ndarray:
        """(count, 2, 3) boxes around the contacts of each pair; NaN without any."""
        low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
        np.minimum.at(low, self.pair, self.segments.min(axis=1))
        np.maximum.at(high, self.pair, self.segments.max(axis=1))
        boxes = np.stack([low, high], axis=1)
        boxes[~np.isfinite(boxes).all(axis=(1, 2))] = np.nan
        return boxes

    def first(self, count: int) -> np.ndarray:
        """(count, 3) a common point of each pair, on its first contact; NaN without any."""
        points = np.full((count, 3), np.nan)
        pair, row = np.unique(self.pair, return_index=True)
        points[pair] = self.segments[row].mean(axis=1)
        return points


def part_contacts(surfaces: PartSurfaces, pairs: np.ndarray) -> PartContacts:
    """Find all pairs of faces that meet.

    Args:
        surfaces: Surfaces of the parts.
        pairs: (k, 2) rows of parts, the lower first, each pair once.

    Guarantee:
        Exact and complete.
    """
    if not len(pairs):
        return PartContacts(np.empty(0, int), np.empty((0, 2), np.int32), np.empty((0, 2, 3)))
    scene = _PairScene(surfaces, pairs)
    found = scene.scene.collide()
    pair, faces = scene.pairs_of(found.objects.numpy()), found.pairs.numpy()
    faces = np.where(scene.swapped[pair, None], faces[:, ::-1], faces)
    segments = found.segments.numpy().reshape(-1, 2, 3)
    order = np.lexsort((faces[:, 1], faces[:, 0], pair))
    return PartContacts(pair[order], faces[order], segments[order])


def meeting_parts(surfaces: PartSurfaces, pairs: np.ndarray) -> np.ndarray:
    """(k,) whether the surfaces of two parts share a point; arguments of ``part_contacts``.

    Guarantee:
        Exact.
    """
    met = np.zeros(len(pairs), bool)
    if len(pairs):
        scene = _PairScene(surfaces, pairs)
        met[scene.pairs_of(scene.scene.collide(first=True).objects.numpy())] = True
    return met


class _PairScene:
    """A scene of the parts of some pairs, in which all other pairs are ignored.

    Attributes:
        scene: The scene.
        swapped: (k,) the second part of a pair is the first object.
    """

    def __init__(self, surfaces: PartSurfaces, pairs: np.ndarray) -> None:
        rows, local = np.unique(pairs, return_inverse=True)
        rows, local = _by_mesh(surfaces, rows, local.reshape(-1, 2))
        self.scene, self.count = Scene(device=surfaces.device), len(rows)
        for same in np.split(rows, _changes(surfaces.parts.mesh[rows])):
            self.scene.add(surfaces[same[0]].mesh, surfaces.parts.poses[same])
        self.swapped = local[:, 0] > local[:, 1]
        self._asked = np.sort(local, axis=1) @ [self.count, 1]
        boxes = surfaces.parts.boxes[rows]
        near = overlapping_boxes(boxes[:, 0], boxes[:, 1], surfaces.device)
        other = near[~np.isin(near @ [self.count, 1], self._asked)]
        if len(other):
            self.scene.ignore(other[:, 0], other[:, 1])

    def pairs_of(self, objects: np.ndarray) -> np.ndarray:
        """Pairs of (m, 2) objects."""
        order = np.argsort(self._asked)
        return order[np.searchsorted(self._asked[order], objects @ [self.count, 1])]


def _by_mesh(
    surfaces: PartSurfaces, rows: np.ndarray, local: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Parts in the order of their meshes, and the places of the pairs among them."""
    order = np.argsort(surfaces.parts.mesh[rows], kind="stable")
    place = np.empty(len(rows), int)
    place[order] = np.arange(len(rows))
    return rows[order], place[local]


def _changes(values: np.ndarray) -> np.ndarray:
    """Places where a value differs from the one before."""
    return np.flatnonzero(np.diff(values)) + 1
