"""SceneContacts: the result of Scene.collide."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.errors import SceneError
from abut.narrow.pair_corners import PairSides
from abut.narrow.segments import contact_segments
from abut.results import Contacts
from abut.scene.contact_search import FoundContacts
from abut.scene.rows import object_rows


@dataclass(frozen=True, eq=False)
class SceneContacts(Contacts):
    """Contacts of objects, sorted by objects, then faces; ``pose`` is the copy of the scene.

    Ask for segments before the scene deforms or loses objects: coordinates are not kept.

    Attributes:
        objects: (n, 2) int32, the objects of each pair, the lower first; twice the same one where
            an object meets itself.
    """

    objects: wp.array = field(kw_only=True)

    @cached_property
    def object_pairs(self) -> np.ndarray:
        """(k, 2) int32: the pairs of objects that meet, each once, sorted.

        For a batch (k, 3): the copy of the scene comes first.
        """
        rows = self.objects.numpy()
        if self.pose is not None:
            rows = np.concatenate([self.pose.numpy()[:, None], rows], axis=1)
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        return rows[new]

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        return {"objects": self.objects.numpy(), **super().numpy()}


def scene_contacts(
    found: FoundContacts, device: wp.Device, poses: wp.array, posed: bool, same: Callable[[], bool]
) -> SceneContacts:
    """Make the result of a search.

    Args:
        found: Contacts of the search.
        device: Device of the scene.
        poses: Poses of the objects of all environments.
        posed: The query had a batch of poses.
        same: Whether no shape has changed since the search.
    """
    environments, objects, pairs = found.rows or object_rows(
        found.object_pairs, found.keys, found.objects, found.layout, device
    )
    colliding: Any = len(pairs) > 0
    if posed:
        flags = np.zeros(poses.shape[0] // max(found.pairs.object_count, 1), bool)
        flags[environments.numpy()] = True
        colliding = wp.array(flags, dtype=wp.bool, device=device)
    held = wp.clone(poses) if found.poses is None else found.poses

    def segments(pairs: wp.array, _pose: wp.array | None) -> tuple[wp.array, wp.array]:
        if not same():
            raise SceneError("the scene has deformed or lost objects since; ask before.")
        sides = PairSides(found.pairs, objects, pairs, environments, held)
        return contact_segments(sides.a, sides.b, sides.pairs, None)

    pose = environments if posed else None
    return SceneContacts(pairs, pose, colliding, None, segments, objects=objects)
