"""The stages that contact queries share: search, settle, sort."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.narrow.classify import classify_every_pair, classify_queue
from abut.narrow.settle import settle_queue
from abut.pairs import KeyLayout, PairQueues, sorted_keys
from abut.runtime import EVERYTHING, stage
from abut.traversal.descend import Search

LEAST_ROOM = 1 << 14
NO_KEY = 2**63 - 1


@dataclass
class FacePairs:
    """Operands and queues of one contact query."""

    a: Any
    b: Any
    relation: int
    layout: KeyLayout
    pose_count: int
    device: wp.Device

    def __post_init__(self) -> None:
        """Queues, small at first: they grow to what the query needs."""
        room = max(LEAST_ROOM, self.a.faces.shape[0] + self.b.faces.shape[0])
        room = {"hits": room, "undecided": room}
        if self.device.is_cuda:
            room["candidates"] = 8 * room["hits"]
        self.queues = PairQueues(self.device, **room)

    def search(self, best: wp.array | None = None) -> Any:
        """What a walk needs to know; with ``best``, to keep one pair per pose."""
        search = Search()
        search.a, search.b, search.relation = self.a, self.b, self.relation
        search.bits = self.layout.bits
        search.hits, search.undecided = self.queues["hits"], self.queues["undecided"]
        if best is not None:
            search.best = best
        return search

    def all_pairs(self, search: Callable[[], None]) -> wp.array:
        """Sorted keys of all pairs that meet; ``search`` fills hits and undecided."""
        while True:
            self.queues.clear()
            with stage("search", self.device):
                search()
            with stage("settle", self.device):
                self.settle()
            if self.queues.all_fit():
                break
        with stage("sort", self.device):
            return sorted_keys(self.queues["hits"].keys, self.queues.count("hits"))

    def first_pairs(self, search: Callable[[wp.array], None]) -> wp.array:
        """Sorted keys of one pair for each pose with contact; ``search`` lowers best keys.

        A pair that the filter decides goes before those that need exact arithmetic.
        """
        best = wp.full(self.pose_count, NO_KEY, dtype=wp.int64, device=self.device)
        while True:
            self.queues.clear()
            with stage("search", self.device):
                search(best)
            with stage("settle", self.device):
                self.settle()
            if self.queues.all_fit():
                break
        with stage("sort", self.device):
            settled = sorted_keys(self.queues["hits"].keys, self.queues.count("hits"))
            return self._one_each(best.numpy(), self.lowest_of_each_pose(settled).numpy())

    def lowest_of_each_pose(self, keys: wp.array) -> wp.array:
        """The first key of every pose, of sorted keys."""
        host = keys.numpy()
        pose = host >> self.layout.width
        lowest = host[np.flatnonzero(np.diff(pose, prepend=-1))]
        return wp.array(lowest, dtype=wp.int64, device=self.device)

    def _one_each(self, best: np.ndarray, settled: np.ndarray) -> wp.array:
        """Keys of the best pairs, and of the settled ones for poses that have none."""
        found = np.flatnonzero(best != NO_KEY)
        width = self.layout.width
        sure = (found << width) | (best[found] & ((1 << width) - 1))
        settled = settled[best[settled >> width] == NO_KEY]
        keys = np.sort(np.concatenate([sure, settled]))
        return wp.array(keys, dtype=wp.int64, device=self.device)

    def settle(self) -> None:
        """Move the undecided pairs that meet to the hits."""
        queue = self.queues["undecided"]
        count = EVERYTHING
        if self.device.is_cpu:
            count = min(self.queues.count("undecided"), queue.keys.shape[0])
        if count:
            hits = self.queues["hits"]
            bits = self.layout.bits
            settle_queue(self.a, self.b, self.relation, bits, queue, count, hits)

    def classify(self) -> None:
        """Move the candidates to the hits and the undecided."""
        bits = self.layout.bits
        candidates, hits = self.queues["candidates"], self.queues["hits"]
        undecided = self.queues["undecided"]
        classify_queue(self.a, self.b, self.relation, bits, candidates, EVERYTHING, hits, undecided)

    def classify_every_pair(self) -> None:
        """Test every pair of faces: the slow truth."""
        bits = self.layout.bits
        queues = self.queues["hits"], self.queues["undecided"]
        classify_every_pair(self.a, self.b, self.relation, bits, self.pose_count, *queues)
