"""Searches for the distances of objects: of pairs of them, and of each to its nearest ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.broad.neighbours import (
    candidate_bounds_kernel,
    candidates_kernel,
    least_bound_kernel,
    lower_bounds_kernel,
    neighbour_kernel,
    object_bounds_kernel,
    row_bound_kernel,
    row_bounds_kernel,
)
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import NO_KEY_INT, KeyLayout
from abut.core.plan import Plan, Stage
from abut.operands.distance_queues import distance_queues
from abut.operands.pair_rows import SceneRows
from abut.options import Bound
from abut.query.contact_stages import Strategy
from abut.query.distance_stages import DistanceStages, distances_of
from abut.scene.broad_stages import BroadStages

OBJECTS_PER_SLICE = 16  # that compare boxes with all others, on the CPU
MORE_CANDIDATES = 7  # of an object than it has nearest ones


@dataclass
class FoundDistances:
    """Distances of pairs of objects, on the host.

    Attributes:
        environments: (n,) copies of the scene.
        objects: (n, 2) rows of objects, in the order in which the search compares them.
        faces: (n, 2) their nearest faces; no meaning where they meet.
        value: (n,) distances: 0 for objects that meet, infinite beyond the bound of a pair.
    """

    environments: np.ndarray
    objects: np.ndarray
    faces: np.ndarray
    value: np.ndarray

    def __getitem__(self, rows: Any) -> "FoundDistances":
        """Some of the rows."""
        columns = self.environments, self.objects, self.faces, self.value
        return FoundDistances(*(column[rows] for column in columns))


class DistanceRows:
    """Distances of a list of object pairs.

    Args:
        rows: The object pairs, and their queues.
        layout: Bits of a key that two faces take.
        strategy: How candidates are found.

    Attributes:
        bounds: (capacity,) bits of the distance of each pair, or of a bound that it exceeds.
    """

    def __init__(self, rows: SceneRows, layout: KeyLayout, strategy: Strategy) -> None:
        self._rows, self._layout, self._strategy = rows, layout, strategy
        self.bounds, self._keys = (
            wp.empty(rows.capacity, dtype=wp.int64, device=rows.device) for _ in range(2)
        )

    def stages(
        self, filters: Any, object_bounds: wp.array, most: float, least: wp.array | None = None
    ) -> Iterator[Stage]:
        """Stages that find distances up to ``most`` and the bounds of both objects, if any.

        ``least`` of each environment: larger distances do not matter.
        """
        rows = self._rows
        args = [rows.view, filters, object_bounds, wp.float64(most), self.bounds, self._keys]
        yield "bounds", rows.over_rows(row_bounds_kernel, args, 4096)
        out = distance_queues(rows.queues, self._layout, self.bounds)
        if least is not None:
            out.least = least
        bound = Bound.RSS if rows.view.bvhs.rss.shape[0] else Bound.AABB
        stages = DistanceStages(rows, rows.queues, out, self._strategy, far=True, bound=bound)
        yield from stages.nearest(self._keys)

    def read(self, broad: BroadStages, counts: dict[str, int], most: float) -> FoundDistances:
        """The distances of all pairs."""
        count, queues = counts["objects"], self._rows.queues
        keys = self._keys.numpy()[:count]
        met = queues["hits"].keys[: counts["hits"]].numpy() >> self._layout.width
        value = distances_of(self.bounds.numpy()[:count].view(np.float64), keys, met, most)
        pairs = queues["objects"].keys[:count].numpy()
        objects = np.stack(broad.object_layout.split(pairs), axis=1)
        faces = np.stack(self._layout.split(keys), axis=1)
        return FoundDistances(pairs >> broad.object_layout.width, objects, faces, value)


class PairSearch:
    """The distance of every pair of objects at most so far apart, or of pairs that are given.

    Args:
        scene: Arguments of BroadStages.
        bound: How far apart objects may be.
        given: Pairs are given to ``run``; filters do not apply.
        strategy: How candidates are found.
    """

    def __init__(
        self,
        *scene: Any,
        bound: float,
        given: bool = False,
        strategy: Strategy = Strategy.DESCEND,
    ) -> None:
        margin = 0.0 if given else 0.5 * bound
        self.broad = BroadStages(*scene, margin=margin, find=self._list if given else None)
        self._bound, self._strategy, self._given = bound, strategy, np.empty(0, np.int64)
        clear, accept = self.broad.clear, self.broad.accept
        self._plan = Plan(self.broad.queues, self._stages, clear=clear, accept=accept)

    def run(self, given: np.ndarray | None = None) -> FoundDistances:
        """The distances, sorted by environments and objects.

        Args:
            given: (n, 2) different pairs of objects, ascending.
        """
        if given is not None:
            layout, count = self.broad.object_layout, self.broad.environments
            keys = given[:, 0].astype(np.int64) << layout.bits_b | given[:, 1]
            self._given = (np.arange(count)[:, None] << layout.width | keys).reshape(-1)
            self.broad.queues.make_room({"objects": len(self._given)})
        counts = self._plan.run()
        assert counts is not None
        return self._rows.read(self.broad, counts, self._bound)

    def _list(self) -> None:
        """Fill the queue of object pairs with those given."""
        queue, count = self.broad.queues["objects"], len(self._given)
        queue.keys[:count].assign(self._given)
        queue.count.fill_(count)

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad
        broad = self.broad
        self._rows = DistanceRows(broad.rows, broad.layout, self._strategy)
        unbounded = wp.empty(0, dtype=wp.int64, device=broad.device)
        yield from self._rows.stages(broad.filters, unbounded, self._bound)


class NearestSearch:
    """At least the distances of each object to its nearest ones.

    Args:
        scene: Arguments of BroadStages.
        nearest: How many objects each asks for.
        bound: How far apart objects may be.
        least: Only distances that may be the least of an environment matter.
        strategy: How candidates are found.
    """

    def __init__(
        self,
        *scene: Any,
        nearest: int,
        bound: float,
        least: bool = False,
        strategy: Strategy = Strategy.DESCEND,
    ) -> None:
        self.broad = broad = BroadStages(*scene)
        self._nearest, self._bound, self._strategy = nearest, bound, strategy
        empty = partial(wp.empty, device=broad.device)
        self._settled = empty(broad.total, dtype=wp.int32)
        self._bounds = empty(broad.total, dtype=wp.int64)
        self._least = empty(broad.environments if least else 0, dtype=wp.int64)
        self._each = nearest + (0 if least else MORE_CANDIDATES)
        self._candidates = empty(broad.total * self._each, dtype=wp.int32)
        self._distances = empty(broad.total * self._each, dtype=wp.float64)
        self._plan = Plan(broad.queues, self._stages, clear=broad.clear, accept=broad.accept)

    def run(self, settled: np.ndarray) -> FoundDistances:
        """The distances, sorted by environments and objects.

        Args:
            settled: (environments * objects,) bool, objects whose nearest ones are known.
        """
        self._settled.assign(settled.astype(np.int32))
        counts = self._plan.run()
        assert counts is not None
        return self._rows.read(self.broad, counts, self._bound)

    def _bound_objects(self) -> Iterator[Stage]:
        """Stages that bound the distances of objects by those of some candidates."""
        broad, each, total = self.broad, self._each, self.broad.total
        task, held = partial(Task, device=broad.device), (self._candidates, each)
        args = [broad.boxes, broad.filters, self._settled, each, self._distances, held[0]]
        yield "candidates", task(candidates_kernel, total, args, grain=OBJECTS_PER_SLICE).run
        args = [broad.rows.view, broad.filters, *held, self._distances]
        yield "candidates", task(candidate_bounds_kernel, total * each, args, grain=64).run
        args = [*held, self._nearest, self._distances, self._bounds]
        yield "candidates", task(object_bounds_kernel, total, args, grain=1024).run
        if self._least.shape[0]:
            yield "candidates", lambda: self._least.fill_(NO_KEY_INT)
            args = [self._bounds, total // broad.environments, self._least]
            yield "candidates", task(least_bound_kernel, total, args, grain=UNKNOWN_COUNT).run
            yield self._lower_bounds()

    def _lower_bounds(self) -> Stage:
        """The stage that lowers the bounds of objects to the least of their environment."""
        broad = self.broad
        args = [self._least, broad.total // broad.environments, self._bounds]
        return "candidates", Task(lower_bounds_kernel, broad.total, args, broad.device).run

    def _stages(self) -> Iterator[Stage]:
        broad = self.broad
        boxes, _, sort = broad
        yield boxes
        yield from self._bound_objects()
        args = [broad.rows.view, broad.boxes, broad.filters, self._bounds]
        args += [wp.float64(self._bound), broad.queues["objects"]]
        grain = OBJECTS_PER_SLICE
        yield "broad", Task(neighbour_kernel, broad.total, args, broad.device, grain=grain).run
        yield sort
        if self._least.shape[0]:
            args = [broad.rows.view, self._least]
            yield "candidates", broad.rows.over_rows(row_bound_kernel, args, 16)
            yield self._lower_bounds()
        self._rows = DistanceRows(broad.rows, broad.layout, self._strategy)
        yield from self._rows.stages(broad.filters, self._bounds, self._bound, self._least)
