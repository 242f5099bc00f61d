"""NearestPlan and NearPlan: distance queries of two meshes, prepared once for many poses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.layout import Bvh, BvhView
from abut.core.pair_queue import NO_KEY_INT, KeyLayout, PairQueues
from abut.core.plan import Plan, Stage
from abut.core.timing import stage
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.distance_queues import distance_queues
from abut.operands.pair_rows import MeshRows
from abut.operands.posed_pairs import mesh_pairs
from abut.options import Bound
from abut.query.contact_stages import Strategy
from abut.query.distance_stages import DistanceStages, distances_of
from abut.query.shared import MOST_LISTED, Operands, shared_queues

LEAST_BOUND = 5e-324  # 0 is for meshes that meet


@dataclass
class NearestPlan(Operands):
    """Operands of a query for the nearest faces and the plan that answers it.

    Attributes:
        a, b: Posed meshes.
        views: Their hierarchies, with volumes of ``bound``; none for brute force.
        tolerance: How much more than the smallest distance will do.
        bound: Bounding volume of the trees to use.
        extents: MeshExtent of both meshes where they may be far apart for their size, else none.
        rounds: Of passes of teams before the last; None chooses.
        queues: Queues to fill; None takes those of this thread.
    """

    device: wp.Device
    a: Any
    b: Any
    views: tuple[BvhView, ...]
    layout: KeyLayout
    pose_count: int
    tolerance: float = 0.0
    bound: Bound = Bound.AABB
    extents: tuple[Any, ...] = ()
    rounds: Sequence[int] | None = None
    queues: PairQueues | None = None

    def __post_init__(self) -> None:
        """Prepare the plan."""
        super().__post_init__()
        self._strategy = Strategy.DESCEND if self.views else Strategy.BRUTE
        if self.queues is None:
            self.queues = shared_queues(self.device, self._room)
        self._queues: PairQueues = self.queues
        self._plan = Plan(self._queues, self._stages, clear=self._clear, accept=self._accept)
        self._upper_bound = np.inf
        count = self.pose_count
        self._known = wp.empty(2 * count, dtype=wp.int64, device=self.device)
        self._known_host = self._known
        if self.device.is_cuda:
            self._known_host = wp.empty_like(self._known, device="cpu", pinned=True)
        both = self._known_host.numpy()
        self._bounds_view, self._keys_view = both[:count].view(np.float64), both[count:]

    def run(self, upper_bound: float) -> tuple[np.ndarray, np.ndarray]:
        """((B,) distances, (B,) keys of the nearest faces); NO_KEY for none within the bound.

        A distance of 0 has no key: the meshes meet.
        """
        self._upper_bound = upper_bound
        counts = self._plan.run()
        assert counts is not None
        met = np.empty(0, np.int64)
        if counts["hits"]:
            met = self._queues["hits"].keys[: counts["hits"]].numpy() >> self.layout.width
        keys = self._keys_view.copy()
        return distances_of(self._bounds_view, keys, met, upper_bound), keys

    def _stages(self) -> Iterator[Stage]:
        yield from self.pose_stages(self._queues)
        about = SHARED_NONE, self.pose_count, self.views, self.extents
        rows = MeshRows(mesh_pairs(self.a, self.b, *about), self.device)
        bounds, keys = self._known[: self.pose_count], self._known[self.pose_count :]
        out = distance_queues(self._queues, self.layout, bounds, self.tolerance)
        options = {"far": bool(self.extents), "bound": self.bound, "rounds": self.rounds}
        stages = DistanceStages(rows, self._queues, out, self._strategy, **options)
        yield from stages.nearest(keys)
        if self.device.is_cuda:
            yield "read", lambda: wp.copy(self._known_host, self._known)

    def _accept(self, counts: dict[str, int]) -> bool:
        self.refuse_unfit(counts)
        return True

    def _clear(self) -> None:
        self._queues.clear()
        self._bounds_view[:] = max(self._upper_bound, LEAST_BOUND)
        self._keys_view[:] = NO_KEY_INT
        if self.device.is_cuda:
            wp.copy(self._known, self._known_host)


@dataclass
class NearPlan(Operands):
    """Operands of a query for all faces within a distance and the plan that answers it.

    Attributes:
        a, b: Posed meshes.
        trees: Their hierarchies; one for a mesh against itself, none for brute force.
        sharing: Vertices that the operands share (see common_corners).
        distance: How far apart faces may be.
        strategy: How candidates are found; None chooses by cost.
        queues: Queues to fill; None takes those of this thread.
    """

    device: wp.Device
    a: Any
    b: Any
    trees: tuple[Bvh, ...]
    sharing: int
    layout: KeyLayout
    pose_count: int
    distance: float
    strategy: Strategy | None = None
    queues: PairQueues | None = None

    def __post_init__(self) -> None:
        """Choose a strategy and prepare the plan."""
        super().__post_init__()
        self._strategy = self._cheapest() if self.strategy is None else self.strategy
        if self.queues is None:
            self.queues = shared_queues(self.device, self._room)
        self._queues: PairQueues = self.queues
        self._plan = Plan(self._queues, self._stages)

    def run(self) -> Any:
        """Sorted keys, each 2 key + 1 where the pair meets and 2 key where it is near.

        A NumPy array or, on CUDA, a part of a queue, valid until that is used again.
        """
        counts = self._plan.run()
        assert counts is not None
        with stage("sort", self.device):
            width = self.layout.width + (self.pose_count - 1).bit_length() + 1
            keys = self._queues.sorted_keys("near", counts["near"], width)
            if not counts["hits"]:
                return keys
            exact = self._queues["hits"].keys[: counts["hits"]].numpy()
            return with_contacts(keys if isinstance(keys, np.ndarray) else keys.numpy(), exact)

    def _cheapest(self) -> Strategy:
        """The strategy that costs least, as measured (design/distance.md)."""
        if not self.trees:
            return Strategy.BRUTE
        lists = self.device.is_cuda and self.pose_count * self.a.faces.shape[0] <= MOST_LISTED
        return Strategy.LEAF_WALK if lists else Strategy.DESCEND

    def _stages(self) -> Iterator[Stage]:
        trees = [tree.view() for tree in self.trees]
        view = mesh_pairs(self.a, self.b, self.sharing, self.pose_count, trees)
        bits = int(np.float64(self.distance).view(np.int64))
        bounds = wp.full(self.pose_count, bits, dtype=wp.int64, device=self.device)
        out = distance_queues(self._queues, self.layout, bounds)
        own = self.sharing != SHARED_NONE
        stages = DistanceStages(MeshRows(view, self.device), self._queues, out, self._strategy, own)
        yield from stages.within()


def with_contacts(keys: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Sorted keys of near pairs; ``exact`` are keys of pairs that the exact stage found to meet."""
    if len(exact):
        keys = np.setdiff1d(keys, 2 * exact, assume_unique=True)
        keys = np.concatenate([keys, 2 * exact + 1])
    return np.sort(keys)
