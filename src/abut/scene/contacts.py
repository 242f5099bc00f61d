"""What Scene.collide returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.errors import SceneError
from abut.narrow.crowd_corners import PairSides
from abut.narrow.meet import meeting_segments
from abut.polylines import join_segments
from abut.scene.contact_search import Found
from abut.scene.rows import object_rows


@dataclass(frozen=True, eq=False)
class SceneContacts:
    """Pairs of faces of objects that meet, sorted.

    Attributes:
        objects: (n, 2) int32, the objects of each pair, the lower first; twice the same one where
            an object meets itself.
        pairs: (n, 2) int32, their faces.
        pose: (n,) int32, the copy of the scene; None where no batch of poses was given.
        colliding: Whether there is contact; for a batch of B copies a (B,) array.
    """

    objects: wp.array
    pairs: wp.array
    pose: wp.array | None
    colliding: Any
    _meet: Callable[[], tuple[wp.array, wp.array]] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Number of pairs of faces."""
        return self.pairs.shape[0]

    def __bool__(self) -> bool:
        """Whether there is any contact."""
        if isinstance(self.colliding, bool):
            return self.colliding
        return bool(self.colliding.numpy().any())

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

    @property
    def segments(self) -> wp.array:
        """(n, 2, 3) float64: the segment in which each pair meets, computed when first asked.

        Ask before the scene deforms: coordinates are not kept for answers.
        """
        return self._segments[0]

    @property
    def coplanar(self) -> wp.array:
        """(n,) bool: pairs that overlap in a common plane, or in a common line."""
        return self._segments[1]

    @cached_property
    def _segments(self) -> tuple[wp.array, wp.array]:
        assert self._meet is not None
        return self._meet()

    def curves(self) -> list[np.ndarray]:
        """The intersections as polylines, each (k, 3); coplanar pairs have none."""
        segments, coplanar = (array.numpy() for array in self._segments)
        return join_segments(segments[~coplanar])

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        colliding = self.colliding
        out = {
            "objects": self.objects.numpy(),
            "pairs": self.pairs.numpy(),
            "colliding": colliding.numpy()
            if isinstance(colliding, wp.array)
            else np.asarray(colliding),
        }
        if self.pose is not None:
            out["pose"] = self.pose.numpy()
        return out


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
    copy, objects, pairs = object_rows(
        found.meetings, found.keys, found.objects, found.layout, device
    )
    colliding: Any = len(pairs) > 0
    if posed:
        flags = np.zeros(poses.shape[0] // max(found.crowd.object_count, 1), bool)
        flags[copy.numpy()] = True
        colliding = wp.array(flags, dtype=wp.bool, device=device)
    crowd, held = found.crowd, wp.clone(poses)

    def meet() -> tuple[wp.array, wp.array]:
        if not same():
            raise SceneError("the scene has deformed since; ask for segments before.")
        sides = PairSides(crowd, objects, pairs, copy, held)
        return meeting_segments(sides.a, sides.b, sides.pairs, None)

    return SceneContacts(objects, pairs, copy if posed else None, colliding, meet)
