"""BroadPhase: pairs of objects whose boxes overlap, by the method that suits their number."""

from collections.abc import Callable

import numpy as np
import warp as wp

from abut.broad.boxes import Boxes, Filters
from abut.broad.object_pairs import (
    all_pairs_kernel,
    filter_pairs_kernel,
    sweep_kernel,
    sweep_key_kernel,
    tree_build_kernel,
    tree_code_kernel,
    tree_walk_kernel,
)
from abut.bvh.lbvh import allocate_bvh
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.errors import CapacityError
from abut.options import BroadMethod
from abut.traversal.overlap.leaf_packets import packet_count_of, self_packet_pairs_kernel

FEW_OBJECTS = 256  # below, every pair is compared
RUNS_PER_AXIS = 64  # then the axis of a sweep is chosen anew


def best_method(object_count: int, environments: int) -> BroadMethod:
    """The fastest method for a number of objects, as measured (design/scene.md)."""
    if object_count <= FEW_OBJECTS:
        return BroadMethod.ALL_PAIRS
    return BroadMethod.TREE if environments == 1 else BroadMethod.SWEEP


class BroadPhase:
    """Lists the pairs of objects whose boxes overlap and that the filters leave.

    Args:
        boxes: The boxes, which may change between runs.
        filters: The filters.
        queues: Receives keys (environment, low, high) in the queue "objects", in any order; the
            queue "found" holds pairs before they are filtered.
        environments: Copies of the scene; objects of different ones are never listed.
        method: None chooses one.
    """

    def __init__(
        self,
        boxes: Boxes,
        filters: Filters,
        queues: PairQueues,
        environments: int = 1,
        method: BroadMethod | None = None,
    ) -> None:
        self.boxes, self.filters, self.queues = boxes, filters, queues
        self.environments = environments
        self.device = queues.device
        self.total = boxes.object_count * environments
        self.layout = object_layout(boxes.object_count, environments)
        self.method = method or best_method(boxes.object_count, environments)
        if self.method is BroadMethod.TREE and environments > 1:
            raise CapacityError("the broad phase 'tree' is for one copy of a scene.")
        self._runs = 0
        self._steps: list[Callable[[], None]] = []

    def run(self) -> None:
        """List the pairs."""
        if self.boxes.object_count < 2 or not self.environments:
            return
        outdated = self.method is BroadMethod.SWEEP and self._runs % RUNS_PER_AXIS == 0
        if self._runs == 0 or outdated:
            self._steps = {
                BroadMethod.ALL_PAIRS: self._all_pairs,
                BroadMethod.SWEEP: self._sweep,
                BroadMethod.TREE: self._tree,
            }[self.method]()
        self._runs += 1
        for step in self._steps:
            step()

    def _all_pairs(self) -> list[Callable[[], None]]:
        args = [self.boxes, self.filters, self.layout.bits, self.queues["objects"]]
        return [Task(all_pairs_kernel, self.total, args, self.device, grain=256).run]

    def _sweep(self) -> list[Callable[[], None]]:
        axis = _widest_axis(self.boxes)
        keys, order, sort = self._sorting(wp.int64, 32)
        args = [self.boxes, axis, keys, order]
        begin = Task(sweep_key_kernel, self.total, args, self.device)
        args = [self.boxes, self.filters, self.layout.bits, axis, order, self.queues["objects"]]
        return [begin.run, sort, Task(sweep_kernel, self.total, args, self.device, grain=256).run]

    def _tree(self) -> list[Callable[[], None]]:
        count, bits = self.total, self.layout.bits
        tree = allocate_bvh(count, np.zeros(3), self.device)
        codes, order, sort = self._sorting(wp.int32, 30)
        far_ends = wp.empty(count, dtype=wp.int32, device=self.device)
        begin = Task(tree_code_kernel, count, [self.boxes, codes, order, far_ends], self.device)
        args = [self.boxes, codes, order, far_ends, tree.view()]
        build = Task(tree_build_kernel, count, args, self.device)
        found, objects = self.queues["found"], self.queues["objects"]
        if self.device.is_cpu:
            args = [tree.view(), bits, found]
            packets = packet_count_of(count)
            walk = Task(self_packet_pairs_kernel, packets, args, self.device, grain=256)
            args = [found, self.filters, bits, objects]
            last = Task(filter_pairs_kernel, UNKNOWN_COUNT, args, self.device, grain=UNKNOWN_COUNT)
            return [begin.run, sort, build.run, walk.run, last.run]
        args = [tree.view(), self.filters, bits, objects]
        walk = Task(tree_walk_kernel, count, args, self.device)
        return [begin.run, sort, build.run, walk.run]

    def _sorting(self, kind: type, bits: int) -> tuple[wp.array, wp.array, Callable[[], None]]:
        """Keys, their order, and the function that sorts both."""
        keys = wp.empty(2 * self.total, dtype=kind, device=self.device)  # room for two
        order = wp.empty(2 * self.total, dtype=wp.int32, device=self.device)
        bits += (self.environments - 1).bit_length()

        def sort() -> None:
            wp.utils.radix_sort_pairs(keys, order, self.total, 0, bits)

        return keys, order, sort


def object_layout(object_count: int, environments: int) -> KeyLayout:
    """Layout of the keys of object pairs."""
    layout = KeyLayout.of(object_count, object_count)
    width = layout.width + max(environments - 1, 1).bit_length()
    if width > 61 or object_count * environments >= UNKNOWN_COUNT:
        raise CapacityError(f"{environments} copies of {object_count} objects are too many.")
    return layout


def _widest_axis(boxes: Boxes) -> int:
    """The axis along which boxes that are not empty spread most, relative to their size."""
    lower, upper = boxes.lower.numpy()[:, :3], boxes.upper.numpy()[:, :3]
    used = (lower <= upper).all(axis=1)
    if not used.any():
        return 0
    lower, upper = (np.clip(x[used], -1e37, 1e37).astype(np.float64) for x in (lower, upper))
    spread = ((lower + upper) / 2).std(axis=0)
    return int(np.argmax(spread / np.maximum((upper - lower).mean(axis=0), 1e-300)))
