"""NearestPlan: the stages of a distance query, prepared once for two operands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Bvh
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import NO_KEY, KeyLayout, PairQueues
from abut.core.timing import stage
from abut.geometry.common_corners import SHARED_NONE
from abut.narrow.pair_distance import brute_nearest_kernel
from abut.narrow.settle_search import Settling
from abut.operands.contact_operands import search_in
from abut.operands.distance_operands import Approach
from abut.options import Bound
from abut.query.remoteness import Remoteness
from abut.query.shared import Operands, shared_queues
from abut.traversal.beam import seed_kernel
from abut.traversal.beyond import beyond_kernel, beyond_of_all_kernel
from abut.traversal.ends import ends_kernel
from abut.traversal.near_pairs import (
    choose_kernel,
    compare_kernel,
    list_near_kernel,
    sample_kernel,
)
from abut.traversal.nearest import elect_kernel, nearest_walk
from abut.traversal.remote import remote_kernel
from abut.traversal.two_trees import relative_kernel

FEW_POSES = 8  # so few are listed leaf by leaf on CUDA, and walked in several parts on the CPU
WALKS_OF_FEW = 16  # parts of such a walk
FACES_FOR_THREADS = 1 << 19  # less is done before a second thread has begun
MOST_SAMPLES = 1 << 14  # leaves of a that look for a first bound, on CUDA; more cost more
CUDA_ITEMS = 1 << 17  # walks of all poses together
ROUNDING = 2.0**-44  # of what is computed about faces, relative to their meshes
POSES_PER_SLICE = 4
CPU_LEVELS = 2  # of a tree that a walk opens at once: four children; design/distance.md
CUDA_LEVELS = 1
LEAST = 5e-324


@dataclass
class NearestPlan(Operands):
    """Operands of a distance query and the launches that answer it.

    Attributes:
        a, b: Posed faces.
        trees: The operands' trees; none for brute force.
        size: Extent of both meshes together, which roundings are relative to.
        tolerance: How much more than the smallest distance will do.
        bound: Bounding volume of the trees to use.
        kind: How far apart the meshes are, in all poses.
        centres: Of both meshes, not moved.
    """

    device: wp.Device
    a: Any
    b: Any
    trees: tuple[Bvh, ...]
    layout: KeyLayout
    pose_count: int
    size: float
    tolerance: float = 0.0
    bound: Bound = Bound.AABB
    kind: Remoteness = Remoteness.NEAR
    centres: tuple[Any, ...] = ()
    _generation: int = field(default=-1, init=False)

    def run(self, upper_bound: float) -> tuple[np.ndarray, np.ndarray]:
        """((B,) distances, (B,) keys of the nearest faces); NO_KEY for none within the bound.

        A distance of 0 has no key: the meshes meet.
        """
        queues = shared_queues(self.device, self._room)
        while True:
            if self._generation != queues.generation:
                self._record(queues)
            queues.clear()
            self._forget(upper_bound)
            for name, task in self._tasks:
                with stage(name, self.device):
                    task.run()
            counts = self._read(queues)
            if not queues.make_room(counts):
                break
        value, keys = self._values_view.copy(), self._keys_view.copy()
        if counts["hits"]:
            met = queues["hits"].keys[: counts["hits"]].numpy() >> self.layout.width
            value[met] = 0.0
        if self.pose_count > 1:
            value[((keys == NO_KEY) & (value > 0)) | (value > upper_bound)] = np.inf
        elif (keys[0] == NO_KEY and value[0] > 0) or value[0] > upper_bound:  # sooner for one
            value[0] = np.inf
        return value, keys

    def _forget(self, upper_bound: float) -> None:
        """Nothing is known but the bound given, which is not 0: that is for meshes that meet."""
        self._values_view[:] = max(upper_bound, LEAST)
        self._keys_view[:] = NO_KEY
        if self.device.is_cuda:
            wp.copy(self._known, self._known_host)

    def _read(self, queues: PairQueues) -> dict[str, int]:
        """Counts of the queues; bounds and keys are then on the host too."""
        if self.device.is_cuda:
            wp.copy(self._known_host, self._known)
        return queues.read()  # the one wait for the device

    def _record(self, queues: PairQueues) -> None:
        """Prepare the launches for the queues as they are now."""
        search = search_in(queues, self.a, self.b, SHARED_NONE, self.layout)
        query = Approach()
        query.search = search
        query.slack, query.tolerance = ROUNDING * self.size, self.tolerance
        count = self.pose_count
        self._known = wp.empty(2 * count, dtype=wp.int64, device=self.device)
        self._known_host = self._known
        if self.device.is_cuda:
            self._known_host = wp.empty_like(self._known, device="cpu", pinned=True)
        both = self._known_host.numpy()
        self._values_view, self._keys_view = both[:count].view(np.float64), both[count:]
        query.bound, self._keys = self._known[:count], self._known[count:]
        self._tasks = [*self._stages(query, queues), ("settle", Settling(search, self.device))]
        self._generation = queues.generation

    def _stages(self, query: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        if self.kind is Remoteness.BEYOND:
            yield from self._beyond(query)
            return
        if not self.trees:
            per_pose = self.a.faces.shape[0]
            yield from self._elected(brute_nearest_kernel, [query], query, per_pose, 1)
            return
        trees = [tree.view(self.bound) for tree in self.trees]
        if self.kind is Remoteness.REMOTE:
            yield from self._remote(query, trees)
            return
        frames = wp.empty(self.pose_count, dtype=RelativeFrame, device=self.device)
        args = [self.a, self.b, *trees, frames]
        yield "frames", Task(relative_kernel, self.pose_count, args, self.device)
        args = [query, *trees, frames]
        if self.device.is_cuda and self.pose_count <= FEW_POSES:
            yield from self._listed(args, query, queues)
        else:
            yield from self._walked(args, query)

    def _remote(self, query: Any, trees: list[Any]) -> Iterable[tuple[str, Task]]:
        """One thread a pose looks at the near ends; where they are crowded, trees are walked."""
        crowded = wp.empty(self.pose_count, dtype=wp.int32, device=self.device)
        args = [query, *trees, crowded, self._keys]
        yield "seed", Task(ends_kernel, self.pose_count, args, self.device, grain=POSES_PER_SLICE)
        items, grain = self._divided()
        items = max(items, 2)  # so that they do not write where the ends were found
        args = [query, *trees, items.bit_length() - 1, crowded]
        yield from self._elected(remote_kernel, args, query, items, grain)

    def _beyond(self, query: Any) -> Iterable[tuple[str, Task]]:
        """One thread a pose finds either face by itself."""
        trees = [tree.view() for tree in self.trees]
        kernel = beyond_kernel if trees else beyond_of_all_kernel
        args = [query, *trees, *(wp.vec3d(*centre) for centre in self.centres), self._keys]
        yield "search", Task(kernel, self.pose_count, args, self.device, grain=POSES_PER_SLICE)

    def _listed(
        self, args: list[Any], query: Any, queues: PairQueues
    ) -> Iterable[tuple[str, Task]]:
        """Many threads a pose: a first bound, then all faces nearer than that."""
        leaves = self.a.faces.shape[0]
        samples = min(leaves, MOST_SAMPLES)
        count = self.pose_count * samples
        yield "seed", Task(sample_kernel, count, [*args, samples], self.device)
        candidates = queues["candidates"]
        count = self.pose_count * leaves
        yield "search", Task(list_near_kernel, count, [*args, leaves, candidates], self.device)
        yield "measure", Task(compare_kernel, UNKNOWN_COUNT, [query, candidates], self.device)
        last = [query, candidates, self._keys]
        yield "choose", Task(choose_kernel, UNKNOWN_COUNT, last, self.device)

    def _walked(self, args: list[Any], query: Any) -> Iterable[tuple[str, Task]]:
        """One thread a pose, or a few."""
        count = self.pose_count
        ways = wp.empty(count, dtype=wp.vec3d, device=self.device)
        found = [wp.empty(count, dtype=wp.int64, device=self.device) for _ in range(2)]
        first = [*args, ways, *found]
        yield "seed", Task(seed_kernel, count, first, self.device, grain=POSES_PER_SLICE)
        items, grain = self._divided()
        depth = items.bit_length() - 1
        walk = nearest_walk(CUDA_LEVELS if self.device.is_cuda else CPU_LEVELS)
        yield from self._elected(walk, [*args, ways, depth], query, items, grain)
        if self.tolerance > 0:
            last = [query.bound, *found, 1, self._keys]
            yield "choose", Task(elect_kernel, count, last, self.device)

    def _divided(self) -> tuple[int, int]:
        """Into how many walks to divide a pose, and how many of all walks make a slice.

        Several walks with one bound are no slower than one, and hardly miss an early good pair.
        """
        if self.device.is_cuda:
            return 1 << (max(CUDA_ITEMS // self.pose_count, 1).bit_length() - 1), 1
        if self.pose_count > FEW_POSES:
            return 1, POSES_PER_SLICE
        large = self.a.faces.shape[0] + self.b.faces.shape[0] > FACES_FOR_THREADS
        return WALKS_OF_FEW, WALKS_OF_FEW // 4 if large else UNKNOWN_COUNT

    def _elected(
        self, kernel: wp.Kernel, args: list[Any], query: Any, per_pose: int, grain: int
    ) -> Iterable[tuple[str, Task]]:
        """A search of one or several items a pose, and the choice among what they find."""
        count = self.pose_count * per_pose
        distances = wp.empty(count, dtype=wp.int64, device=self.device)
        keys = self._keys if per_pose == 1 else wp.empty_like(distances)
        found = [distances, keys]
        yield "search", Task(kernel, count, [*args, *found], self.device, grain=grain)
        if per_pose == 1:
            return
        last = [query.bound, *found, per_pose, self._keys]
        yield "choose", Task(elect_kernel, count, last, self.device)
