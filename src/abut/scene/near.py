"""NearSearch and NearestSearch: distance queries of a whole scene."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.broad.neighbours import bound_kernel, neighbour_kernel, row_bounds_kernel
from abut.core.launch import launch
from abut.core.plan import Plan, Stage
from abut.operands.distance_queues import distance_queues
from abut.query.contact_stages import Strategy
from abut.query.distance_plan import with_contacts
from abut.query.distance_stages import DistanceStages, distances_of
from abut.scene.search import SceneSearch


class NearSearch(SceneSearch):
    """Every pair of faces of different objects at most so far apart.

    Args:
        scene: Arguments of SceneSearch.
        distance: How far apart faces may be.
        own: Also faces of one object.
        strategy: How candidates are found.
    """

    def __init__(
        self, *scene: Any, distance: float, own: bool, strategy: Strategy = Strategy.DESCEND
    ) -> None:
        super().__init__(*scene, own=own, margin=0.5 * distance)
        bits = int(np.float64(distance).view(np.int64))
        bounds = wp.full(self.capacity, bits, dtype=wp.int64, device=self.device)
        out = distance_queues(self.queues, self.layout, bounds)
        self._near = DistanceStages(self.rows, self.queues, out, strategy, own)
        self._plan = Plan(self.queues, self._stages, clear=self._clear, accept=self._accept)

    def run(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(sorted keys of faces, whether each pair meets), or None where queues had no room."""
        counts = self._plan.run_once()
        if counts is None:
            return None
        near, exact = (self.queues[name].keys[: counts[name]].numpy() for name in ("near", "hits"))
        keys = with_contacts(near, exact)
        return keys >> 1, (keys & 1).astype(bool)

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad_stages()
        yield from self._near.within()


class NearestSearch(SceneSearch):
    """The smallest distance of every pair of objects at most so far apart.

    Args:
        scene: Arguments of SceneSearch.
        bound: How far apart objects may be; None: at least the nearest of every object.
        strategy: How candidates are found.
    """

    def __init__(
        self, *scene: Any, bound: float | None, strategy: Strategy = Strategy.DESCEND
    ) -> None:
        super().__init__(*scene, margin=0.0 if bound is None else 0.5 * bound)
        self.bound = bound
        bounds, self._keys = (
            wp.empty(self.capacity, dtype=wp.int64, device=self.device) for _ in range(2)
        )
        self._object_bounds = wp.empty(
            self.total if bound is None else 0, dtype=wp.float32, device=self.device
        )
        self._out = distance_queues(self.queues, self.layout, bounds)
        self._nearest = DistanceStages(self.rows, self.queues, self._out, strategy, far=True)
        self._plan = Plan(self.queues, self._stages, clear=self._clear, accept=self._accept)

    def run(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """(keys of pairs of objects, distances, keys of faces), or None without room.

        A pair beyond its bound has the distance infinity; one that meets 0, and no faces.
        """
        counts = self._plan.run_once()
        if counts is None:
            return None
        count = counts["objects"]
        bounds = self._out.bound.numpy()[:count].view(np.float64)
        keys = self._keys.numpy()[:count].copy()
        met = self.queues["hits"].keys[: counts["hits"]].numpy() >> self.layout.width
        value = distances_of(bounds, keys, met, np.inf if self.bound is None else self.bound)
        return self.queues["objects"].keys[:count].numpy().copy(), value, keys

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad_stages()
        most = wp.float64(wp.inf if self.bound is None else self.bound)
        args = [self.pairs, self._object_bounds, most, self._out.bound, self._keys]
        yield "bounds", self.rows.over_rows(row_bounds_kernel, args, 4096)
        yield from self._nearest.nearest(self._keys)

    def _find_pairs(self) -> None:
        if self.bound is not None:
            super()._find_pairs()
            return
        args = [self.boxes, self.filters, self._object_bounds]
        launch(bound_kernel, self.total, args, self.device, grain=64)
        args += [self.objects.bits, self.queues["objects"]]
        launch(neighbour_kernel, self.total, args, self.device, grain=64)
