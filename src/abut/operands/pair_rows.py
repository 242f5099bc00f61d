"""The host's side of posed pairs: how many rows there are, and launches over rows and items."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp as wp

from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import PairQueues
from abut.core.plan import Stage
from abut.core.team import TEAM_GRID
from abut.operands.posed_pairs import MeshPairs, ScenePairs, WorkItems

Run = Callable[[], Any]


class MeshRows:
    """Rows of two meshes at so many poses: all alike, and known beforehand.

    Attributes:
        view: The struct for kernels.
        kind: Its type.
        capacity: Rows that arrays with an entry a row must hold.
    """

    kind = MeshPairs

    def __init__(self, view: Any, device: wp.Device) -> None:
        self.view, self.device = view, device
        self.capacity: int = view.count

    def over_rows(self, kernel: wp.Kernel, args: Sequence[Any], grain: int, each: int = 1) -> Run:
        """A launch over ``each`` items of all rows."""
        return Task(kernel, self.capacity * each, args, self.device, grain=grain).run

    def divide(self, each: int, leaves: int = 1, deepest: int = 0) -> Any:
        """WorkItems of as many items a row; see there for ``leaves`` and ``deepest``."""
        items = WorkItems()
        items.each, items.leaves, items.deepest = each, leaves, deepest
        return items

    def over_items(
        self,
        kernel: wp.Kernel,
        items: Any,
        args: Callable[[Any], Sequence[Any]],
        grain: int,
        threads_each: int = 1,
        threads: int | None = None,
        steps: int = 1,
    ) -> Run:
        """A launch over all items of so many steps; ``args`` makes the arguments for WorkItems."""
        count = self.capacity * items.each * threads_each
        return Task(kernel, count, args(items), self.device, grain=grain, steps=steps).run

    def over_teams(
        self,
        kernel: wp.Kernel,
        items: Any,
        args: Callable[[Any], Sequence[Any]],
        grain: int,
        block: int | None = None,
    ) -> Run:
        """A launch of teams over all items, see core/team.py."""
        count = self.capacity * items.each
        if self.device.is_cpu:
            return Task(kernel, count, args(items), self.device, grain=grain).run
        threads = min(TEAM_GRID, WARP_SIZE * count)
        return Task(
            kernel, UNKNOWN_COUNT, args(items), self.device, threads=threads, block=block
        ).run


class SceneRows:
    """Rows of a scene: the object pairs that its broad phase leaves in a queue.

    On CUDA the host does not know how many there are: launches cover the queue's capacity.
    """

    kind = ScenePairs

    def __init__(self, view: Any, queues: PairQueues) -> None:
        self.view, self.queues, self.device = view, queues, queues.device
        self.capacity: int = view.object_pairs.keys.shape[0]
        self.item_counts = wp.zeros(self.capacity + 1, dtype=wp.int32, device=self.device)
        self._starts = wp.zeros_like(self.item_counts)
        if self.device.is_cpu:
            self._counts_view, self._starts_view = self.item_counts.numpy(), self._starts.numpy()

    @property
    def count(self) -> int:
        """Number of rows, where the host knows it: on the CPU."""
        return min(self.queues.read()["objects"], self.capacity)

    def over_rows(self, kernel: wp.Kernel, args: Sequence[Any], grain: int, each: int = 1) -> Run:
        """A launch over ``each`` items of all rows.

        On the CPU, few rows are one recorded launch whose span ends at MAX_COUNT: kernels stop at
        the rows there are.
        """
        if self.device.is_cuda:
            return Task(kernel, self.capacity * each, args, self.device).run
        few = Task(kernel, UNKNOWN_COUNT, args, self.device, grain=UNKNOWN_COUNT)

        def run() -> None:
            count = self.count * each
            if count >= 2 * grain:
                launch(kernel, count, args, self.device, grain=grain)
            elif count:
                few.run()

        return run

    def divide(self, each: int, leaves: int = 1, deepest: int = 0) -> Any:
        """WorkItems whose counts an earlier launch writes to ``item_counts``."""
        items = WorkItems()
        items.leaves, items.deepest, items.starts = leaves, deepest, self._starts
        return items

    def scan(self) -> Stage:
        """The stage that finds out where the items of each row begin."""
        return "scan", self._scan_here if self.device.is_cpu else self._scan_there

    def over_items(
        self,
        kernel: wp.Kernel,
        items: Any,
        args: Callable[[Any], Sequence[Any]],
        grain: int,
        threads_each: int = 1,
        threads: int | None = None,
        steps: int = 1,
    ) -> Run:
        """A launch over all items; ``args`` makes the arguments for the WorkItems."""
        if self.device.is_cuda:
            return Task(kernel, UNKNOWN_COUNT, args(items), self.device, threads=threads).run

        def run() -> None:
            count = self.count
            total = int(self._starts_view[count]) * threads_each
            if total:
                items.starts = self._starts[: count + 1]
                launch(kernel, total, args(items), self.device, grain=grain)

        return run

    def over_teams(
        self,
        kernel: wp.Kernel,
        items: Any,
        args: Callable[[Any], Sequence[Any]],
        grain: int,
        block: int | None = None,
    ) -> Run:
        """A launch of teams over all items, see core/team.py."""
        if self.device.is_cuda:
            options = {"threads": TEAM_GRID, "block": block}
            return Task(kernel, UNKNOWN_COUNT, args(items), self.device, **options).run
        if items.starts is not None:
            return self.over_items(kernel, items, args, grain)
        return self.over_rows(kernel, args(items), grain, items.each)

    def _scan_here(self) -> None:
        count = self.count
        np.cumsum(self._counts_view[:count], out=self._starts_view[1 : count + 1])

    def _scan_there(self) -> None:
        wp.utils.array_scan(self.item_counts, self._starts, inclusive=False)
