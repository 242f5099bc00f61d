"""The queues of a scene, among them that of pairs of objects, which is sorted on the device."""

from typing import Any

import warp as wp

from abut.core.pair_queue import PairQueues

ROOM = {"found": 1024, "objects": 1024, "bad": 1024}
ROOM |= {"hits": 1 << 14, "undecided": 1 << 14, "near": 1 << 12}
MORE = 1.25


class SceneQueues(PairQueues):
    """Queues that a scene keeps; they only ever grow."""

    def __init__(self, device: wp.Device) -> None:
        sizes = ROOM | {"candidates": 1 << 17 if device.is_cuda else 1 << 8, "skipped": 1}
        super().__init__(device, **sizes)

    def make_room(self, counts: dict[str, int]) -> bool:
        """Let queues grow to hold these counts and some more; False when all had room already."""
        short = {n: c for n, c in counts.items() if c > self.queues[n].keys.shape[0]}
        return super().make_room({name: int(count * MORE) for name, count in short.items()})

    def sort_objects(self, width: int, count: int | None = None) -> None:
        """Sort the first ``count`` pairs of objects, of ``width`` bits.

        On CUDA the count need not be known: then all there is room for is sorted; where there is
        no pair, keys must be above all others.
        """
        if self.device.is_cpu:
            self.queues["objects"].keys.numpy()[:count].sort()
        elif count != 0:
            room = self.queues["objects"].keys.shape[0] if count is None else count
            wp.utils.radix_sort_pairs(self._objects, self._ranks, room, 0, width + 1)

    def _allocate(self, name: str, capacity: int) -> None:
        if name != "objects" or self.device.is_cpu:
            super()._allocate(name, capacity)
            return
        super()._allocate(name, 2 * capacity)  # the sort needs room for two
        self._objects: Any = self.queues[name].keys
        self._ranks = wp.zeros(2 * capacity, dtype=wp.int32, device=self.device)
        self.queues[name].keys = self._objects[:capacity]
        self._capacities[name] = capacity
