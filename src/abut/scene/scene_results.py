"""SceneContacts, SceneGaps and SceneDistances: the results of scene queries."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from abut.errors import SceneError
from abut.narrow.pair_corners import PairSides
from abut.narrow.pair_distance import measured
from abut.narrow.segments import contact_segments
from abut.results import Contacts, Distances, Gaps
from abut.scene.broad_stages import BroadStages
from abut.scene.contact_search import FoundContacts
from abut.scene.rows import ObjectRows


@dataclass(frozen=True, eq=False)
class SceneContacts(ObjectRows, Contacts):
    """Contacts of objects, sorted by objects, then faces; ``pose`` is the copy of the scene.

    Ask for segments before the scene deforms or loses objects: coordinates are not kept.
    """

    @property
    def object_pairs(self) -> wp.array:
        """(k, 2) int32: the pairs of objects that meet, sorted, each once in every copy.

        Computed at first access.
        """
        return self._object_pairs[0]

    @property
    def object_pair_pose(self) -> wp.array | None:
        """(k,) int32: the copy of the scene of each of ``object_pairs``; None without a batch."""
        return self._object_pairs[1]

    @cached_property
    def _object_pairs(self) -> tuple[wp.array, wp.array | None]:
        rows, device = self.objects.numpy(), self.objects.device
        copies = np.zeros(len(rows), np.int32) if self.pose is None else self.pose.numpy()
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1) | (copies[1:] != copies[:-1])
        pose = None if self.pose is None else wp.array(copies[new], device=device)
        return wp.array(rows[new], dtype=wp.int32, device=device), pose


@dataclass(frozen=True, eq=False)
class SceneGaps(ObjectRows, Gaps):
    """Pairs of faces at most so far apart, sorted by objects and faces."""


@dataclass(frozen=True, eq=False)
class SceneDistances(ObjectRows, Distances):
    """Distances of pairs of objects, one row each, sorted; points and faces as for one pair.

    Attributes:
        objects: (n, 2) int32. Pairs under a bound: the lower first. Nearest of each: the object,
            and the one nearest to it.
        value: (n,) float64, the smallest distance; 0 exactly where two objects meet.
    """

    def __len__(self) -> int:
        """Number of pairs of objects."""
        return self.objects.shape[0]


def scene_contacts(found: FoundContacts, batched: bool, same: Callable[[], bool]) -> SceneContacts:
    """Make the result of a contact search.

    Args:
        found: Contacts of the search.
        batched: The query had a batch of poses.
        same: Whether no shape has changed since the search.
    """
    environments, objects, pairs = found.rows
    colliding: Any = len(pairs) > 0
    if batched:
        flags = np.zeros(found.poses.shape[0] // max(found.view.object_count, 1), bool)
        flags[environments.numpy()] = True
        colliding = wp.array(flags, dtype=wp.bool, device=pairs.device)

    def segments(pairs: wp.array, _pose: wp.array | None) -> tuple[wp.array, wp.array]:
        if not same():
            raise SceneError("the scene has deformed or lost objects since; ask before.")
        where = (environments, found.poses, found.first_guest)
        sides = PairSides(found.view, objects, pairs, *where)
        return contact_segments(sides.a, sides.b, sides.pairs, None)

    pose = environments if batched else None
    return SceneContacts(pairs, pose, colliding, None, segments, objects=objects)


def scene_gaps(
    scene: BroadStages,
    found: tuple[wp.array, wp.array, wp.array, np.ndarray],
    batched: bool,
) -> SceneGaps:
    """Measure pairs of faces that a NearSearch has found."""
    environments, objects, pairs, met = found
    sides = PairSides(scene.rows.view, objects, pairs, environments, first_b=scene.first_guest)
    distance = _measured(sides, met, False)[0]
    points = partial(_points, sides, met, np.zeros(len(met), bool))
    pose = environments if batched else None
    return SceneGaps(pairs, pose, distance, points, objects=objects)


def scene_distances(
    scene: BroadStages,
    found: tuple[np.ndarray, np.ndarray, np.ndarray],
    first: SceneContacts | None,
    nearest: bool,
) -> SceneDistances:
    """Make the result of a NearestSearch.

    Args:
        scene: The rows of the search and their layouts.
        found: Keys of object pairs, distances and keys of faces that it returned.
        first: One contact of each pair of objects that meets, where there are any.
        nearest: One row an object, its nearest; else one row a pair of objects.
    """
    layout, objects, device = scene.layout, scene.object_layout, scene.device
    pairs, value, faces = found
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
    ends = np.stack([low[ranks], high[ranks]], axis=1).astype(np.int32)
    corners = np.stack(layout.split(faces[ranks]), axis=1).astype(np.int32)
    sides = PairSides(scene.rows.view, *(wp.array(x, device=device) for x in (ends, corners)))
    for both in (ends, corners):
        both[swapped] = both[swapped][:, ::-1]
    values = wp.array(value[ranks], dtype=wp.float64, device=device)
    points = partial(_points, sides, value[ranks] == 0, swapped)
    named = wp.array(ends, dtype=wp.int32, device=device)
    return SceneDistances(values, corners, device, points, objects=named)


def _measured(sides: PairSides, met: np.ndarray, points: bool) -> tuple[wp.array, wp.array]:
    return measured(sides.a, sides.b, sides.pairs, None, met, points=points)


def _points(sides: PairSides, met: np.ndarray, swapped: np.ndarray) -> wp.array:
    """Nearest points of pairs, of which some are swapped."""
    points = _measured(sides, met, True)[1]
    if not swapped.any():
        return points
    rows = points.numpy().copy()
    rows[swapped] = rows[swapped][:, ::-1]
    return wp.array(rows, dtype=wp.float64, device=points.device)
