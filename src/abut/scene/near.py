"""NearSearch: pairs of faces of a scene within a distance."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.core.plan import Plan, Stage
from abut.operands.distance_queues import distance_queues
from abut.query.contact_stages import Strategy
from abut.query.distance_plan import with_contacts
from abut.query.distance_stages import DistanceStages
from abut.scene.broad_stages import BroadStages


class NearSearch:
    """Every pair of faces of different objects at most so far apart.

    Args:
        scene: Arguments of BroadStages.
        distance: How far apart faces may be.
        own: Also faces of one object.
        strategy: How candidates are found.
        box_cache: As in BroadStages.
    """

    def __init__(
        self,
        *scene: Any,
        distance: float,
        own: bool,
        strategy: Strategy = Strategy.DESCEND,
        box_cache: Any = None,
    ) -> None:
        self.broad = BroadStages(*scene, own=own, margin=0.5 * distance, box_cache=box_cache)
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
