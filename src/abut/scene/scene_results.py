"""SceneContacts and SceneGaps: the results of scene queries."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.errors import SceneError
from abut.narrow.pair_corners import PairSides
from abut.narrow.pair_distance import measured
from abut.narrow.segments import contact_segments
from abut.results import Contacts, Gaps
from abut.scene.broad_stages import BroadStages
from abut.scene.contact_search import FoundContacts
from abut.scene.rows import ObjectRows


@dataclass(frozen=True, eq=False, repr=False)
class SceneContacts(ObjectRows, Contacts):
    """Contacts of objects, sorted by objects, then faces; ``pose`` is the environment.

    Read segments before the scene deforms or loses objects: coordinates are not kept.
    """

    @property
    def object_pairs(self) -> wp.array:
        """(k, 2) int32: the pairs of objects that meet, sorted, each once per environment.

        Computed at first access.
        """
        return self._object_pairs[0]

    @property
    def object_pair_pose(self) -> wp.array | None:
        """(k,) int32: the environment of each of ``object_pairs``; None without a batch."""
        return self._object_pairs[1]

    @cached_property
    def _object_pairs(self) -> tuple[wp.array, wp.array | None]:
        rows, device = self.objects.numpy(), self.objects.device
        copies = np.zeros(len(rows), np.int32) if self.pose is None else self.pose.numpy()
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1) | (copies[1:] != copies[:-1])
        pose = None if self.pose is None else wp.array(copies[new], device=device)
        return wp.array(rows[new], dtype=wp.int32, device=device), pose


@dataclass(frozen=True, eq=False, repr=False)
class SceneGaps(ObjectRows, Gaps):
    """Pairs of faces within a distance of each other, sorted by objects and faces."""


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
        where = (environments, found.poses, found.first_external)
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
    sides = PairSides(scene.rows.view, objects, pairs, environments, first_b=scene.first_external)
    distance = _measured(sides, met, False)[0]
    pose = environments if batched else None
    return SceneGaps(pairs, pose, distance, lambda: _measured(sides, met, True)[1], objects=objects)


def _measured(sides: PairSides, met: np.ndarray, points: bool) -> tuple[wp.array, wp.array]:
    return measured(sides.a, sides.b, sides.pairs, None, met, points=points)
