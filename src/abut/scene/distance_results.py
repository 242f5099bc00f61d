"""SceneDistances and LeastDistance: the results of distance queries of scenes."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from abut.narrow.pair_corners import PairSides
from abut.narrow.pair_distance import measured
from abut.results import Distances
from abut.scene.broad_stages import BroadStages
from abut.scene.object_distances import FoundDistances
from abut.scene.rows import ObjectRows


@dataclass(frozen=True, eq=False, repr=False)
class SceneDistances(ObjectRows, Distances):
    """Distances of pairs of objects, one row each; points and faces as for one pair.

    Attributes:
        objects: (n, 2) int32. Nearest of each: the object, and one near it. Given pairs: as given.
            Pairs under a bound: one of ``which`` and one of ``against``; where both may come first,
            the lower one. Objects of another scene have their indices there; a mesh has 0.
        pose: (n,) int32, the copy of the scene of each row; None without a batch of poses.
        distance: (n,) float64, the smallest; 0 exactly where two objects meet.
    """

    pose: wp.array | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        """Number of rows."""
        return self.objects.shape[0]

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        out = super().numpy()
        if self.pose is not None:
            out["pose"] = self.pose.numpy()
        return out


@dataclass(frozen=True, eq=False, repr=False)
class LeastDistance(Distances):
    """The distance of the two objects that are nearest to each other, and points and faces there.

    Attributes:
        distance: A float; (B,) float64 for a batch. 0 exactly where two objects meet,
            infinite where no two may.
    """

    _objects: np.ndarray = field(repr=False)

    @cached_property
    def objects(self) -> wp.array:
        """(2,) int32, the two objects; (B, 2) for a batch of poses. -1 where no two may meet."""
        return wp.array(self._objects, dtype=wp.int32, device=self._device)

    def numpy(self) -> dict[str, np.ndarray]:
        """The answer as plain NumPy arrays."""
        return {"objects": self._objects, **super().numpy()}


def distance_rows(scene: BroadStages, rows: FoundDistances, batched: bool) -> SceneDistances:
    """Make a result of all rows."""
    about = _made(scene, rows, False)
    environments = wp.array(rows.environments.astype(np.int32), device=scene.device)
    objects = wp.array(about[-1], dtype=wp.int32, device=scene.device)
    return SceneDistances(*about[:-1], objects=objects, pose=environments if batched else None)


def least_distance(scene: BroadStages, rows: FoundDistances, batched: bool) -> LeastDistance:
    """Make a result of rows, one for each copy of the scene."""
    return LeastDistance(*_made(scene, rows, not batched))


def _made(scene: BroadStages, rows: FoundDistances, single: bool) -> tuple[Any, ...]:
    """(distance, faces, device, points, objects) of a result."""
    device, known = scene.device, rows[np.isfinite(rows.value)]
    columns = known.objects, known.faces, known.environments
    sides = PairSides(scene.rows.view, *(wp.array(_int32(c), device=device) for c in columns))
    faces = _int32(np.where(np.isfinite(rows.value)[:, None], rows.faces, -1))
    named = _int32(np.where(rows.objects < 0, -1, rows.objects - [0, scene.first_external]))
    points = partial(_points, sides, rows.value, single)
    if single:
        return float(rows.value[0]), faces[0], device, points, named[0]
    value = wp.array(rows.value, dtype=wp.float64, device=device)
    return value, faces, device, points, named


def _int32(rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.int32)


def _points(sides: PairSides, value: np.ndarray, single: bool) -> wp.array:
    """Nearest points of all rows, of which ``sides`` has those with faces; else NaN."""
    known = np.isfinite(value)
    _, points = measured(sides.a, sides.b, sides.pairs, None, value[known] == 0, points=True)
    if not known.all():
        rows = np.full((len(value), 2, 3), np.nan)
        rows[known] = points.numpy()
        points = wp.array(rows, dtype=wp.float64, device=points.device)
    return points[0] if single else points
