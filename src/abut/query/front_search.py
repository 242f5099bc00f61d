"""FrontSearch: pairs of faces that meet, found from where the last search stopped."""

from collections.abc import Iterator
from typing import Any

import warp as wp

from abut.bvh.layout import Bvh
from abut.core.cache import RecentCache
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.narrow.exact import exact_kernel_for
from abut.narrow.filter import filter_kernel_for
from abut.operands.contact_queues import contact_queues
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import MeshPairs, mesh_pairs
from abut.query import kept_front
from abut.query.kept_front import GRAIN, LEAST_ROOM, STARTING_ROUNDS, KeptFront
from abut.traversal.front import advance_kernel
from abut.traversal.two_trees import relative_kernel

QUEUES = ("even", "odd", "candidates", "hits", "undecided")


class FrontSearch:
    """A front through the traversal of certain trees, and the launches that move it."""

    def __init__(
        self,
        meshes: tuple[Mesh, ...],
        trees: tuple[Bvh, ...],
        sharing: int,
        layout: KeyLayout,
    ) -> None:
        self.meshes, self.sharing, self.layout = meshes, sharing, layout
        self.device = meshes[0].device
        self.queues = PairQueues(self.device, **dict.fromkeys(QUEUES, LEAST_ROOM))
        self.front = KeptFront(trees, self.queues)
        self._recorded = RecentCache()

    def run(self) -> Any:
        """Move the front to the boxes as they are now and test the leaves that overlap.

        Returns sorted keys; None where the front has grown too long.
        """
        if self.front.steps == 0:
            for _ in range(STARTING_ROUNDS):
                if self._moved(1) is None:
                    return None
            self.front.order()
        counts = self._moved(UNKNOWN_COUNT)
        self.front.steps += 1
        if counts is None:
            return None
        with stage("sort", self.device):
            return self.queues.sorted_keys("hits", counts["hits"], self.layout.width)

    def _moved(self, most: int) -> dict[str, int] | None:
        """One round; None when the front has grown too long."""
        there = self.front.names[1]
        while True:
            for name in ("candidates", "hits", "undecided", there):
                self.queues[name].count.zero_()
            self._launch(most)
            counts = self.queues.read()  # the one wait for the device
            if counts[there] > kept_front.MOST_PAIRS:
                return None
            short = [n for n in counts if counts[n] > self.queues[n].keys.shape[0]]
            if not short:
                break
            self.queues.make_room({n: counts[n] + counts[n] // 4 for n in short})
        self.front.taken = counts[there]
        self.front.turn()
        return counts

    def _launch(self, most: int) -> None:
        if self.device.is_cuda:
            points = [mesh.points for mesh in self.meshes]
            odd, climbs = self.front.names[0] == "odd", self.front.climbs
            about = (self.queues.generation, odd, most, climbs, *points)
            for name, task in self._recorded.get(about, lambda: list(self._tasks(most))):
                with stage(name, self.device):
                    task.run()
            return
        for name, kernel, queue, args, grain in self._stages(most):
            with stage(name, self.device):
                count = 1
                if queue:
                    room = self.queues[queue].keys.shape[0]
                    count = min(self.queues.read()[queue], room)
                launch(kernel, count, args, self.device, grain=grain)

    def _tasks(self, most: int) -> Iterator[tuple[str, Task]]:
        for name, kernel, queue, args, _ in self._stages(most):
            yield name, Task(kernel, UNKNOWN_COUNT if queue else 1, args, self.device)

    def _stages(self, most: int) -> Iterator[tuple[str, wp.Kernel, str, list[Any], int]]:
        """(name, kernel, queue it runs over, arguments, grain) of each launch."""
        sides = [make_posed_mesh(mesh.points, mesh.faces) for mesh in self.meshes]
        if len(sides) == 2:
            trees = [tree.view() for tree in self.front.trees]
            yield "frames", relative_kernel, "", [*sides, *trees, self.front.frames], 1
        found = self.queues["candidates"]
        args = self.front.arguments(most, self.layout.bits, found)
        yield "front", advance_kernel, self.front.names[0], args, GRAIN
        if most == UNKNOWN_COUNT:
            pairs = mesh_pairs(sides[0], sides[-1], self.sharing)
            out = contact_queues(self.queues, self.layout)
            yield "filter", filter_kernel_for(MeshPairs), "candidates", [pairs, found, out], GRAIN
            yield "exact", exact_kernel_for(MeshPairs), "undecided", [pairs, out], 64
