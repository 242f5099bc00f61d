"""NearSearch and NearestSearch: distance queries of a whole scene."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.broad.neighbours import nearest_bound_kernel, neighbour_kernel, row_bounds_kernel
from abut.core.launch import launch
from abut.core.plan import Plan, Stage
from abut.operands.distance_queues import distance_queues
from abut.query.contact_stages import Strategy
from abut.query.distance_plan import with_contacts
from abut.query.distance_stages import DistanceStages, distances_of
from abut.scene.broad_stages import BroadStages


class NearSearch:
    """Every pair of faces of different objects at most so far apart.

    Args:
        scene: Arguments of BroadStages.
        distance: How far apart faces may be.
        own: Also faces of one object.
        strategy: How candidates are found.
    """

    def __init__(
        self, *scene: Any, distance: float, own: bool, strategy: Strategy = Strategy.DESCEND
    ) -> None:
        self.broad = BroadStages(*scene, own=own, margin=0.5 * distance)
        self.queues, self.own, self.strategy = self.broad.queues, own, strategy
        self._bound = int(np.float64(distance).view(np.int64))
        clear, accept = self.broad.clear, self.broad.accept
        self._plan = Plan(self.queues, self._stages, clear=clear, accept=accept)

    def run(self) -> tuple[wp.array, wp.array, wp.array, np.ndarray]:
        """((n,) environments, (n, 2) objects, (n, 2) faces, whether they meet), sorted."""
        counts = self._plan.run()
        assert counts is not None
        near, exact = (self.queues[name].keys[: counts[name]].numpy() for name in ("near", "hits"))
        keys = with_contacts(near, exact)
        return *self.broad.rows_of(keys >> 1), (keys & 1).astype(bool)

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad
        rows, device = self.broad.rows, self.broad.device
        bounds = wp.full(rows.capacity, self._bound, dtype=wp.int64, device=device)
        out = distance_queues(self.queues, self.broad.layout, bounds)
        yield from DistanceStages(rows, self.queues, out, self.strategy, self.own).within()


class NearestSearch:
    """The smallest distance of every pair of objects at most so far apart.

    Args:
        scene: Arguments of BroadStages.
        bound: How far apart objects may be; None: at least the nearest of every object.
        strategy: How candidates are found.
    """

    def __init__(
        self, *scene: Any, bound: float | None, strategy: Strategy = Strategy.DESCEND
    ) -> None:
        find = self._find_neighbours if bound is None else None
        self.broad = BroadStages(*scene, margin=0.5 * (bound or 0.0), find=find)
        self.queues, self.bound, self.strategy = self.broad.queues, bound, strategy
        count = self.broad.total if bound is None else 0
        self._object_bounds = wp.empty(count, dtype=wp.float32, device=self.broad.device)
        clear, accept = self.broad.clear, self.broad.accept
        self._plan = Plan(self.queues, self._stages, clear=clear, accept=accept)

    def run(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(keys of pairs of objects, distances, keys of faces).

        A pair beyond its bound has the distance infinity; one that meets 0, and no faces.
        """
        counts = self._plan.run()
        assert counts is not None
        count = counts["objects"]
        bounds = self._bounds.numpy()[:count].view(np.float64)
        keys = self._keys.numpy()[:count].copy()
        met = self.queues["hits"].keys[: counts["hits"]].numpy() >> self.broad.layout.width
        value = distances_of(bounds, keys, met, np.inf if self.bound is None else self.bound)
        return self.queues["objects"].keys[:count].numpy().copy(), value, keys

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad
        rows, device = self.broad.rows, self.broad.device
        self._bounds, self._keys = (
            wp.empty(rows.capacity, dtype=wp.int64, device=device) for _ in range(2)
        )
        most = wp.float64(wp.inf if self.bound is None else self.bound)
        args = [rows.view, self._object_bounds, most, self._bounds, self._keys]
        yield "bounds", rows.over_rows(row_bounds_kernel, args, 4096)
        out = distance_queues(self.queues, self.broad.layout, self._bounds)
        stages = DistanceStages(rows, self.queues, out, self.strategy, far=True)
        yield from stages.nearest(self._keys)

    def _find_neighbours(self) -> None:
        """List the pairs of which one may be the nearest of the other."""
        broad = self.broad
        args = [broad.boxes, broad.filters, self._object_bounds]
        launch(nearest_bound_kernel, broad.total, args, broad.device, grain=64)
        args += [broad.object_layout.bits, self.queues["objects"]]
        launch(neighbour_kernel, broad.total, args, broad.device, grain=64)
