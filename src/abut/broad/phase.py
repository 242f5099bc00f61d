"""BroadPhase: which objects may meet, by the method that suits them."""

from collections.abc import Callable

import numpy as np
import warp as wp

from abut.broad.boxes import Boxes, Filters
from abut.broad.object_pairs import (
    every_kernel,
    keep_kernel,
    sweep_kernel,
    sweep_key_kernel,
    tree_build_kernel,
    tree_code_kernel,
    tree_walk_kernel,
)
from abut.bvh.lbvh import allocate_bvh, escape_kernel
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.errors import CapacityError
from abut.options import BroadMethod
from abut.traversal.overlap.leaf_packets import packet_count_of, self_packet_pairs_kernel

FEW_OBJECTS = 256  # below, every pair is compared
LOOK_EVERY = 64  # runs; then axis and cells are chosen anew


def best_method(object_count: int, copies: int) -> BroadMethod:
    """The fastest method for so many objects, as measured (design/scene.md)."""
    if object_count <= FEW_OBJECTS:
        return BroadMethod.ALL_PAIRS
    return BroadMethod.TREE if copies == 1 else BroadMethod.SWEEP


class BroadPhase:
    """Lists the pairs of objects whose boxes overlap and who may meet, prepared once.

    Args:
        boxes: The boxes, written anew before every run.
        filters: Who may meet whom.
        queues: Takes keys (copy, low, high) in the queue "objects", in any order; pairs that are
            yet to be filtered in "found".
        copies: Copies of the scene; objects of different ones never meet.
        method: None chooses.
    """

    def __init__(
        self,
        boxes: Boxes,
        filters: Filters,
        queues: PairQueues,
        copies: int = 1,
        method: BroadMethod | None = None,
    ) -> None:
        self.boxes, self.filters, self.queues, self.copies = boxes, filters, queues, copies
        self.device = queues.device
        self.total = boxes.object_count * copies
        self.layout = object_layout(boxes.object_count, copies)
        self.method = method or best_method(boxes.object_count, copies)
        if self.method is BroadMethod.TREE and copies > 1:
            raise CapacityError("the broad phase 'tree' is for one copy of a scene.")
        self._runs = 0
        self._steps: list[Callable[[], None]] = []

    def run(self) -> None:
        """List the pairs."""
        if self.boxes.object_count < 2 or not self.copies:
            return
        if self._runs == 0 or (self.method is BroadMethod.SWEEP and self._runs % LOOK_EVERY == 0):
            self._steps = {
                BroadMethod.ALL_PAIRS: self._every,
                BroadMethod.SWEEP: self._sweep,
                BroadMethod.TREE: self._tree,
            }[self.method]()
        self._runs += 1
        for step in self._steps:
            step()

    def _every(self) -> list[Callable[[], None]]:
        args = [self.boxes, self.filters, self.layout.bits, self.queues["objects"]]
        return [Task(every_kernel, self.total, args, self.device, grain=256).run]

    def _sweep(self) -> list[Callable[[], None]]:
        axis = _widest_axis(*_corners(self.boxes))
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
        args = [self.boxes, codes, order, far_ends, tree.nodes, tree.leaf_slots, tree.split_slots]
        build = Task(tree_build_kernel, count, args, self.device)
        found, objects = self.queues["found"], self.queues["objects"]
        if self.device.is_cpu:
            args = [tree.view(), bits, found]
            packets = packet_count_of(count)
            walk = Task(self_packet_pairs_kernel, packets, args, self.device, grain=256)
            args = [found, self.filters, bits, objects]
            last = Task(keep_kernel, UNKNOWN_COUNT, args, self.device, grain=UNKNOWN_COUNT)
        else:
            args = [tree.split_slots, tree.nodes]
            walk = Task(escape_kernel, 2 * count - 1, args, self.device)
            args = [tree.view(), self.filters, bits, objects]
            last = Task(tree_walk_kernel, count, args, self.device)
        return [begin.run, sort, build.run, walk.run, last.run]

    def _sorting(self, kind: type, bits: int) -> tuple[wp.array, wp.array, Callable[[], None]]:
        """Keys, their order, and what sorts both."""
        keys = wp.empty(2 * self.total, dtype=kind, device=self.device)  # room for two
        order = wp.empty(2 * self.total, dtype=wp.int32, device=self.device)
        bits += (self.copies - 1).bit_length()

        def sort() -> None:
            wp.utils.radix_sort_pairs(keys, order, self.total, 0, bits)

        return keys, order, sort


def object_layout(object_count: int, copies: int) -> KeyLayout:
    """How keys of pairs of objects are laid out."""
    layout = KeyLayout.of(object_count, object_count)
    if (
        layout.width + max(copies - 1, 1).bit_length() > 61
        or object_count * copies >= UNKNOWN_COUNT
    ):
        raise CapacityError(f"{copies} copies of {object_count} objects are too many at once.")
    return layout


def _corners(boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners of the boxes that are there, within reason."""
    lower, upper = boxes.lower.numpy()[:, :3], boxes.upper.numpy()[:, :3]
    there = (lower <= upper).all(axis=1)
    if not there.any():
        return np.zeros((1, 3)), np.ones((1, 3))
    return tuple(np.clip(x[there], -1e37, 1e37).astype(np.float64) for x in (lower, upper))


def _widest_axis(lower: np.ndarray, upper: np.ndarray) -> int:
    """The axis along which boxes lie farthest apart for their size."""
    spread = ((lower + upper) / 2).std(axis=0)
    return int(np.argmax(spread / np.maximum((upper - lower).mean(axis=0), 1e-300)))
