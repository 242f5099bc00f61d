"""ContactPlan: the stages of a contact query, prepared once for two operands and run many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.core.pair_queue import (
    NO_KEY,
    PairQueues,
    lowest_of_each_pose,
    to_rows,
    unpack_queue_kernel,
)
from abut.core.pair_sort import MOST_ROWS, FewOrder, RowOrder
from abut.core.runtime import Task, stage
from abut.narrow.exact import Settling
from abut.operands.contact_operands import search_in
from abut.query.contact_stages import ContactStages
from abut.query.shared import shared_queues
from abut.traversal.first_of_all import TOO_LONG
from abut.traversal.two_trees import forget_kernel

LEAST_EXPECTED = 256  # rows
UNPACKING_THREADS = 1 << 16


@dataclass
class ContactPlan(ContactStages):
    """Operands of a contact query and the launches that answer it."""

    _generation: int = field(default=-1, init=False)
    _expected: int = field(default=0, init=False)  # rows, by the last answers

    def run(self) -> Any:
        """Sorted keys of the pairs that meet; with ``first``, of one pair per pose, on the host."""
        counts = self._counts()
        assert counts is not None
        queues = shared_queues(self.device, self._room)
        with stage("sort", self.device):
            if self.first:
                return self._one_each(queues, counts["hits"])
            return self._sorted(queues, counts["hits"])

    def pairs(self, sound: Callable[[], bool] | None = None) -> wp.array | None:
        """(n, 2) sorted pairs that meet, of a query without poses.

        ``sound`` is asked while the device is busy, before anything grows: if it says no, the
        answer is None. On CUDA rows are made before their number is known, as many as last time
        and some more, so that nothing is left to do then.
        """
        rows = None
        if self.device.is_cuda and self._expected:
            rows = wp.empty((self._expected, 2), dtype=wp.int32, device=self.device)
        counts = self._counts(rows, sound)
        if counts is None:
            return None
        count = counts["hits"]
        self._expected = max(count + count // 4 + LEAST_EXPECTED, self._expected * 7 // 8)
        if rows is not None and self._in_order(count) and count <= rows.shape[0]:
            return rows[:count]
        keys = self._sorted(shared_queues(self.device, self._room), count)
        return to_rows(keys, self.layout, False, self.device)[0]

    def _counts(
        self, rows: wp.array | None = None, sound: Callable[[], bool] | None = None
    ) -> dict[str, int] | None:
        """Search; what the queues hold then. None if it was not ``sound``."""
        queues = shared_queues(self.device, self._room)
        while True:
            if self._generation != queues.generation:
                self._record(queues)
            self._forget(queues)
            for name, task in self._tasks:
                with stage(name, self.device):
                    task.run()
            if self._orders:
                few, many = self._orders
                self._order = few if rows is not None and rows.shape[0] < few.most else many
                with stage("sort", self.device):
                    self._order.run()
            if self._picks:
                wp.copy(self._best_host, self._best)
            if rows is not None:
                self._unpacking.give(2, rows)
                self._unpacking.run()
            if sound is not None and not sound():
                return None
            counts = queues.read()  # the one wait for the device
            if queues.make_room(counts):
                continue
            if not (self._picks and (self._best_view == TOO_LONG).any()):
                return counts
            self._descends, self._generation = True, -1

    @property
    def _picks(self) -> bool:
        return self.first and self.device.is_cuda

    def _sorted(self, queues: PairQueues, count: int) -> Any:
        if self._in_order(count):
            return queues["hits"].keys[:count]
        width = self.layout.width + (self.pose_count - 1).bit_length()
        return queues.sorted_keys("hits", count, width)

    def _in_order(self, count: int) -> bool:
        """Whether so many hits were sorted where they are."""
        return bool(self._orders) and count <= self._order.most

    def _forget(self, queues: PairQueues) -> None:
        """Empty the queues, in one launch on CUDA and by hand on the CPU."""
        if self.first and self.device.is_cuda:
            self._forgetting.run()
            return
        queues.clear()
        if self.first:
            self._best_view[:] = NO_KEY

    def _record(self, queues: PairQueues) -> None:
        """Prepare the launches for the queues as they are now."""
        search = search_in(queues, self.a, self.b, self.sharing, self.layout)
        if self.first:
            search.best = self._room_for_best(queues)
        self._tasks = [*self._stages(search, queues), ("settle", Settling(search, self.device))]
        if self.device.is_cuda:
            args = [queues["hits"], self.layout.bits, wp.empty((0, 2), wp.int32, self.device)]
            self._unpacking = Task(unpack_queue_kernel, UNPACKING_THREADS, args, self.device)
        self._orders = self._sorting(queues)
        self._generation = queues.generation

    def _sorting(self, queues: PairQueues) -> tuple[FewOrder, RowOrder] | None:
        """Ways to sort the hits without waiting for the device: where they are few, and many."""
        row_count = self.pose_count << self.layout.bits_a
        if self.device.is_cpu or self.first or row_count > MOST_ROWS:
            return None
        hits = queues["hits"]
        many = RowOrder(hits, self.layout.bits_b, row_count, self.device)
        return FewOrder(hits, self.device), many

    def _room_for_best(self, queues: PairQueues) -> wp.array:
        """The best key of each pose, beside it the lowest path, and a copy for the host."""
        count = self.pose_count
        bests = wp.empty(2 * count, dtype=wp.int64, device=self.device)
        self._best, self._lowest = bests[:count], bests[count:]
        self._forgetting = Task(forget_kernel, 2 * count, [queues.counts, bests], self.device)
        self._best_host = self._best
        if self.device.is_cuda:
            self._best_host = wp.empty_like(self._best, device="cpu", pinned=True)
        self._best_view = self._best_host.numpy()
        return self._best

    def _one_each(self, queues: PairQueues, settled_count: int) -> Any:
        """One key per pose: of the pairs the filter was sure of, else the lowest settled one."""
        best = self._best_view
        width = self.layout.width
        keys = best[best != NO_KEY]
        if settled_count and len(keys) < self.pose_count:
            settled = lowest_of_each_pose(self._sorted(queues, settled_count), self.layout)
            settled = settled[best[settled >> width] == NO_KEY]
            keys = np.sort(np.concatenate([keys, settled]))
        return keys
