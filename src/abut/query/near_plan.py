"""NearPlan: the stages of a search for all pairs within a distance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Bvh
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.timing import stage
from abut.narrow.pair_distance import brute_near_kernel, test_near_kernel
from abut.narrow.settle_search import Settling
from abut.operands.contact_operands import search_in
from abut.operands.distance_operands import Approach
from abut.query.nearest_plan import ROUNDING
from abut.query.shared import LEAVES_PER_ITEM, MOST_LISTED, Operands, shared_queues
from abut.traversal.near_pairs import (
    list_near_kernel,
    list_self_near_kernel,
    near_kernel,
    self_near_kernel,
)
from abut.traversal.two_trees import relative_kernel


@dataclass
class NearPlan(Operands):
    """Operands of a proximity query and the launches that answer it.

    Attributes:
        a, b: Posed faces.
        trees: The operands' trees; one for a mesh against itself, none for brute force.
        relation: What the operands share (see common_corners).
        size: Extent of both meshes together, which roundings are relative to.
        distance: How far apart faces may be.
    """

    device: wp.Device
    a: Any
    b: Any
    trees: tuple[Bvh, ...]
    sharing: int
    layout: KeyLayout
    pose_count: int
    size: float
    distance: float
    _generation: int = field(default=-1, init=False)

    def run(self) -> Any:
        """Sorted keys, each 2 key + 1 where the pair meets and 2 key where it is near.

        A NumPy array or, on CUDA, a part of a queue, valid until that is used again.
        """
        queues = shared_queues(self.device, self._room)
        while True:
            if self._generation != queues.generation:
                self._record(queues)
            queues.clear()
            for name, task in self._tasks:
                with stage(name, self.device):
                    task.run()
            counts = queues.read()  # the one wait for the device
            if not queues.make_room(counts):
                break
        with stage("sort", self.device):
            width = self.layout.width + (self.pose_count - 1).bit_length() + 1
            keys = queues.sorted_keys("near", counts["near"], width)
            if not counts["hits"]:
                return keys
            settled = queues["hits"].keys[: counts["hits"]].numpy()
            return with_settled(keys if isinstance(keys, np.ndarray) else keys.numpy(), settled)

    def _record(self, queues: PairQueues) -> None:
        """Prepare the launches for the queues as they are now."""
        search = search_in(queues, self.a, self.b, self.sharing, self.layout)
        self._tasks = [*self._stages(search, queues), ("settle", Settling(search, self.device))]
        self._generation = queues.generation

    def _stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        near = queues["near"]
        leaves = self.pose_count * self.a.faces.shape[0]
        if not self.trees:
            args = [search, self.distance, near]
            yield "search", Task(brute_near_kernel, leaves, args, self.device, grain=1)
            return
        trees = [tree.view() for tree in self.trees]
        frames = wp.empty(self.pose_count, dtype=RelativeFrame, device=self.device)
        args = [self.a, self.b, trees[0], trees[-1], frames]
        yield "frames", Task(relative_kernel, self.pose_count, args, self.device)
        if self.device.is_cuda and leaves <= MOST_LISTED:
            yield from self._listed(search, queues, trees, frames)
        elif len(trees) == 1:
            args = [search, *trees, frames, self.distance, ROUNDING * self.size, near]
            yield "search", Task(self_near_kernel, leaves, args, self.device, grain=256)
        else:
            items = 1 << 16 if self.device.is_cuda else min(leaves // LEAVES_PER_ITEM, 256)
            depth = max(items // self.pose_count, 1).bit_length() - 1
            args = [search, *trees, frames, depth, self.distance, ROUNDING * self.size, near]
            count = self.pose_count << depth
            yield "search", Task(near_kernel, count, args, self.device, grain=max(items // 16, 1))

    def _listed(
        self, search: Any, queues: PairQueues, trees: list[Any], frames: wp.array
    ) -> Iterable[tuple[str, Task]]:
        """Candidates first, then their tests."""
        query = Approach()
        query.search = search
        bits = int(np.float64(self.distance).view(np.int64))
        query.bound = wp.full(self.pose_count, bits, dtype=wp.int64, device=self.device)
        query.slack = ROUNDING * self.size
        leaves = self.a.faces.shape[0]
        candidates = queues["candidates"]
        if len(trees) == 1:
            args = [query, *trees, frames, candidates]
            yield "search", Task(list_self_near_kernel, leaves, args, self.device)
        else:
            args = [query, *trees, frames, leaves, candidates]
            yield "search", Task(list_near_kernel, self.pose_count * leaves, args, self.device)
        args = [search, candidates, self.distance, queues["near"]]
        yield "measure", Task(test_near_kernel, UNKNOWN_COUNT, args, self.device)


def with_settled(keys: np.ndarray, settled: np.ndarray) -> np.ndarray:
    """Sorted keys; those of pairs that turned out to meet say so."""
    keys = np.setdiff1d(keys, 2 * settled, assume_unique=True)
    return np.sort(np.concatenate([keys, 2 * settled + 1]))
