"""What Scene.collide returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.errors import SceneError
from abut.narrow.pair_corners import PairSides
from abut.narrow.segments import meeting_segments
from abut.results import Contacts
from abut.scene.contact_search import Found
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
    found: Found, device: wp.Device, poses: wp.array, posed: bool, same: Callable[[], bool]
) -> SceneContacts:
    """Wrap sorted keys.

    Args:
        found: What a search has found.
        device: Where the scene lives.
        poses: Poses of its objects, of all copies.
        posed: There was a batch of poses.
        same: Says whether the scene has kept its shape since.
    """
    copy, objects, pairs = found.rows or object_rows(
        found.meetings, found.keys, found.objects, found.layout, device
    )
    colliding: Any = len(pairs) > 0
    if posed:
        flags = np.zeros(poses.shape[0] // max(found.pairs.object_count, 1), bool)
        flags[copy.numpy()] = True
        colliding = wp.array(flags, dtype=wp.bool, device=device)
    view, held = found.pairs, wp.clone(poses) if found.poses is None else found.poses

    def meet() -> tuple[wp.array, wp.array]:
        if not same():
            raise SceneError("the scene has deformed or lost objects since; ask before.")
        sides = PairSides(view, objects, pairs, copy, held)
        return meeting_segments(sides.a, sides.b, sides.pairs, None)

    return SceneContacts(pairs, copy if posed else None, colliding, None, meet, objects=objects)
