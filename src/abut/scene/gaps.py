"""SceneGaps and SceneDistances: the results of Scene.within and Scene.distance."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from abut.core.pickling import PicklableResult
from abut.narrow.pair_corners import PairSides
from abut.narrow.pair_distance import measured
from abut.scene.broad_stages import BroadStages


@dataclass(frozen=True, eq=False)
class SceneGaps(PicklableResult):
    """Pairs of faces at most so far apart, sorted by objects and faces.

    Attributes:
        objects: (n, 2) int32, the objects of each pair, the lower first.
        pairs: (n, 2) int32, their faces.
        distance: (n,) float64; 0 exactly where a pair meets.
    """

    objects: wp.array
    pairs: wp.array
    distance: wp.array
    _measure: Callable[[], wp.array] = field(repr=False)

    def __len__(self) -> int:
        """Number of pairs."""
        return self.pairs.shape[0]

    @cached_property
    def points(self) -> wp.array:
        """(n, 2, 3) float64: the nearest points of each pair; one common point where it meets."""
        return self._measure()

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        names = ("objects", "pairs", "distance", "points")
        return {name: getattr(self, name).numpy() for name in names}


@dataclass(frozen=True, eq=False)
class SceneDistances(PicklableResult):
    """Distances of pairs of objects, one row each, sorted.

    Attributes:
        objects: (n, 2) int32. Pairs under a bound: the lower first. Nearest of each: the object,
            and the one nearest to it.
        value: (n,) float64, the smallest distance; 0 exactly where two objects meet.
        faces: (n, 2) int32, the nearest faces of both, the lowest such pair; of faces that meet,
            one.
    """

    objects: wp.array
    value: wp.array
    faces: wp.array
    _measure: Callable[[], wp.array] = field(repr=False)

    def __len__(self) -> int:
        """Number of pairs of objects."""
        return self.objects.shape[0]

    @cached_property
    def points(self) -> wp.array:
        """(n, 2, 3) float64: the nearest points; one common point where two objects meet."""
        return self._measure()

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        names = ("objects", "value", "faces", "points")
        return {name: getattr(self, name).numpy() for name in names}


def _measured(sides: PairSides, met: np.ndarray, points: bool) -> tuple[wp.array, wp.array]:
    return measured(sides.a, sides.b, sides.pairs, None, met, points=points)


def _points(sides: PairSides, met: np.ndarray) -> wp.array:
    return _measured(sides, met, True)[1]


def _points_turned(sides: PairSides, met: np.ndarray, swapped: np.ndarray) -> wp.array:
    """Nearest points of pairs, some of which are the other way round."""
    points = _points(sides, met)
    rows = points.numpy().copy()
    rows[swapped] = rows[swapped][:, ::-1]
    return wp.array(rows, dtype=wp.float64, device=points.device)


def scene_gaps(
    scene: BroadStages, objects: wp.array, pairs: wp.array, met: np.ndarray
) -> SceneGaps:
    """Measure pairs of faces, of which ``met`` meet."""
    sides = PairSides(scene.rows.view, objects, pairs)
    distance = _measured(sides, met, False)[0]
    return SceneGaps(objects, pairs, distance, partial(_points, sides, met))


def scene_distances(
    scene: BroadStages,
    pairs: np.ndarray,
    value: np.ndarray,
    faces: np.ndarray,
    first: Any,
    nearest: bool,
) -> SceneDistances:
    """Make the result of a NearestSearch.

    Args:
        scene: The rows of the search and their layouts.
        pairs, value, faces: Keys of object pairs, distances and keys of faces that it returned.
        first: One contact of each pair of objects that meets, where there are any.
        nearest: One row an object, its nearest; else one row a pair of objects.
    """
    layout, objects, device = scene.layout, scene.object_layout, scene.device
    ranks = np.flatnonzero(np.isfinite(value))
    low, high = objects.split(pairs)
    if first is not None:  # objects that meet have no faces yet
        met = first.objects.numpy().astype(np.int64)
        place = np.searchsorted(pairs, met[:, 0] << objects.bits_b | met[:, 1])
        rows = first.pairs.numpy().astype(np.int64)
        faces[place] = rows[:, 0] << layout.bits_b | rows[:, 1]
    swapped = np.zeros(len(ranks), bool)
    if nearest:
        mine = np.concatenate([low[ranks], high[ranks]])
        other = np.concatenate([high[ranks], low[ranks]])
        both = np.concatenate([ranks, ranks])
        order = np.lexsort((other, value[both], mine))
        order = order[np.diff(mine[order], prepend=-1) != 0]
        swapped = order >= len(ranks)
        ranks = both[order]
    ends = np.stack([low[ranks], high[ranks]], axis=1)
    corners = np.stack(layout.split(faces[ranks]), axis=1)
    rows = [wp.array(x.astype(np.int32), device=device) for x in (ends, corners)]
    sides = PairSides(scene.rows.view, *rows)
    for both in (ends, corners):
        both[swapped] = both[swapped][:, ::-1]
    rows = [wp.array(x.astype(np.int32), device=device) for x in (ends, corners)]
    values = wp.array(value[ranks], dtype=wp.float64, device=device)
    points = partial(_points_turned, sides, value[ranks] == 0, swapped)
    return SceneDistances(rows[0], values, rows[1], points)
