"""ContactPlan: a contact query of two meshes, prepared once and run for many poses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.layout import Bvh
from abut.bvh.node_kdops import NodeKdops
from abut.core.launch import Task
from abut.core.pair_queue import (
    NO_KEY_INT,
    KeyLayout,
    PairQueues,
    lowest_of_each_pose,
    unpack_keys,
    unpack_queue_kernel,
    unpack_rows,
)
from abut.core.pair_sort import MOST_ROWS, RowSort, SmallQueueSort
from abut.core.plan import Plan, Stage
from abut.core.timing import stage
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.contact_queues import contact_queues
from abut.operands.pair_rows import MeshRows
from abut.operands.posed_pairs import mesh_pairs
from abut.options import Bound
from abut.query.contact_stages import ContactStages, Strategy
from abut.query.first_rows import FirstRows
from abut.query.shared import MOST_LISTED, Operands, shared_queues
from abut.traversal.overlap.kdop_frames import NARROW_KDOPS, KdopFrames, kdop_frames
from abut.traversal.overlap.kdop_leaf_walk import kdop_leaf_walk
from abut.traversal.overlap.row_frames import clear_first_kernel

LEAST_EXPECTED = 256  # rows
UNPACKING_THREADS = 1 << 16
FEW_POSES = 8  # too few to occupy a CUDA device with teams
MOST_WALKS = 1 << 26  # leaves of few poses, whose lists of candidates take as much room as trees


@dataclass
class ContactPlan(Operands):
    """Operands of a contact query and the plan that answers it.

    Attributes:
        a, b: Posed meshes.
        trees: Their hierarchies; one for a mesh against itself, none for brute force.
        sharing: Vertices that the operands share (see common_corners).
        first: Find one pair per pose only.
        bound: Bounding volume of the trees to use.
        dops: k-DOPs of the trees, or none.
        axes: Axes along which k-DOPs are tested, see axis_choices.
        boxless: k-DOPs alone decide, axis-aligned boxes do not.
        strategy: How candidates are found; None chooses by cost.
        queues: Queues to fill; None takes those of this thread.
    """

    device: wp.Device
    a: Any
    b: Any
    trees: tuple[Bvh, ...]
    sharing: int
    layout: KeyLayout
    pose_count: int
    first: bool = False
    bound: Bound = Bound.AABB
    dops: tuple[NodeKdops, ...] = ()
    axes: np.ndarray | None = None
    boxless: bool = False
    strategy: Strategy | None = None
    queues: PairQueues | None = None
    _expected: int = field(default=0, init=False)  # rows, by the last answers
    _rows: wp.array | None = field(default=None, init=False)  # made ahead of their count

    def __post_init__(self) -> None:
        """Choose a strategy and prepare the plan."""
        super().__post_init__()
        self._strategy = self._cheapest() if self.strategy is None else self.strategy
        if self.queues is None:
            self.queues = shared_queues(self.device, self._room)
        self._queues: PairQueues = self.queues
        self._plan = Plan(self._queues, self._stages, clear=self._clear, accept=self._accept)

    def run(self) -> Any:
        """Sorted keys of the pairs that meet; with ``first``, of one pair per pose, on the host."""
        counts = self._plan.run()
        assert counts is not None
        return self._keys(counts["hits"])

    def rows(self) -> tuple[wp.array, wp.array, wp.array]:
        """(n, 2) sorted pairs that meet, their (n,) poses, and (B,) whether each pose has any."""
        counts = self._plan.run()
        assert counts is not None
        if self._stops and self.device.is_cuda and not counts["hits"]:
            return self._first_rows.take()
        return unpack_rows(self._keys(counts["hits"]), self.layout, self.pose_count, self.device)

    def _keys(self, decided: int) -> Any:
        with stage("sort", self.device):
            if self._stops:
                return self._one_each(decided)
            keys = self._sorted(decided)
            return lowest_of_each_pose(keys, self.layout) if self.first else keys

    @property
    def _stops(self) -> bool:
        """Whether the search stops at one pair per pose; brute force never does."""
        return self.first and self._strategy is not Strategy.BRUTE

    def pairs(self, sound: Callable[[], bool] | None = None) -> wp.array | None:
        """(n, 2) sorted pairs that meet, of a query without poses.

        ``sound`` is asked while the device is busy, before anything grows: if it says no, the
        answer is None. On CUDA rows are made before their number is known, as many as last time
        and some more, so that nothing is left to do then.
        """
        self._rows = None
        if self.device.is_cuda and self._expected:
            self._rows = wp.empty((self._expected, 2), dtype=wp.int32, device=self.device)
        counts = self._plan.run(sound)
        rows, self._rows = self._rows, None
        if counts is None:
            return None
        count = counts["hits"]
        self._expected = max(count + count // 4 + LEAST_EXPECTED, self._expected * 7 // 8)
        if rows is not None and self._in_order(count) and count <= rows.shape[0]:
            return rows[:count]
        if count == 0:
            return wp.empty((0, 2), dtype=wp.int32, device=self.device)
        return unpack_keys(self._sorted(count), self.layout, False, self.device)[0]

    def _cheapest(self) -> Strategy:
        """The strategy that costs least, as measured (design/traversal.md)."""
        if not self.trees:
            return Strategy.BRUTE
        if self.sharing != SHARED_NONE and self.bound is not Bound.AABB:
            return Strategy.LEAF_WALK if self.device.is_cuda else Strategy.BALANCED
        if self.sharing != SHARED_NONE:
            return Strategy.CLUSTERS if self.device.is_cuda else Strategy.PACKETS
        if self.first:
            return Strategy.FIRST
        leaves = self.pose_count * max(self.a.faces.shape[0], self.b.faces.shape[0])
        most = MOST_WALKS if self.pose_count < FEW_POSES else MOST_LISTED if self.boxless else 0
        if self.device.is_cuda and leaves <= most:
            return Strategy.LEAF_WALK
        return Strategy.DESCEND

    def _stages(self) -> Iterator[Stage]:
        """All stages, for the queues as they are."""
        yield from self.pose_stages(self._queues)
        out = contact_queues(self._queues, self.layout)
        if self._stops:
            out.best = self._room_for_best()
        trees = [tree.view(self.bound) for tree in self.trees]
        view = mesh_pairs(self.a, self.b, self.sharing, self.pose_count, trees)
        rows = MeshRows(view, self.device)
        dops, axes = KdopFrames(), self.axes
        if self.dops:
            assert axes is not None
            dops_a, dops_b = self.dops
            dops, task = kdop_frames(self.a, self.b, dops_a, dops_b, axes, self.pose_count)
            yield "frames", task.run
        stages = ContactStages(
            rows,
            self._queues,
            out,
            self._strategy,
            self.trees,
            finer=self.bound is not Bound.AABB,
            own=self.sharing != SHARED_NONE,
            boundless=self.boxless,
            dops=dops,
        )
        narrow = self._strategy is Strategy.LEAF_WALK and self.boxless
        if narrow and dops.kind == NARROW_KDOPS and axes is not None:
            yield from kdop_leaf_walk(view, self.dops, axes, out.bits, self._queues)
            yield stages.filter(self._queues["candidates"])
            yield stages.exact()
        else:
            yield from stages
        if self._stops and self.device.is_cuda:
            self._first_rows = FirstRows(self._best, self.layout)
            yield from self._first_rows.stages()
        yield from self._sort_stages(out)

    def _sort_stages(self, out: Any) -> Iterator[Stage]:
        """On CUDA, sort the hits and make rows of them without waiting for their count."""
        row_count = self.pose_count << self.layout.bits_a
        self._orders: tuple[SmallQueueSort, RowSort] | None = None
        if self.device.is_cpu or self.first or row_count > MOST_ROWS:
            return
        many = RowSort(out.hits, self.layout.bits_b, row_count, self.device)
        self._orders = SmallQueueSort(out.hits, self.device), many
        args = [out.hits, self.layout.bits, wp.empty((0, 2), wp.int32, self.device)]
        self._unpacking = Task(unpack_queue_kernel, UNPACKING_THREADS, args, self.device)
        yield "sort", self._sort_ahead

    def _sort_ahead(self) -> None:
        assert self._orders is not None
        few, many = self._orders
        expects_few = self._rows is not None and self._rows.shape[0] < few.most
        self._order = few if expects_few else many
        self._order.run()
        if self._rows is not None:
            self._unpacking.set_arg(2, self._rows)
            self._unpacking.run()

    def _accept(self, counts: dict[str, int]) -> bool:
        """Whether the strategy served; else another one is chosen. Refuses unfit poses."""
        self.refuse_unfit(counts)
        if self._strategy is not Strategy.LEAF_WALK or not counts["skipped"]:
            return True
        self._strategy = Strategy.DESCEND
        self._plan.forget()
        return False

    def _sorted(self, count: int) -> Any:
        if self._in_order(count):
            return self._queues["hits"].keys[:count]
        width = self.layout.width + (self.pose_count - 1).bit_length()
        return self._queues.sorted_keys("hits", count, width)

    def _in_order(self, count: int) -> bool:
        """Whether so many hits were sorted where they are."""
        return self._orders is not None and count <= self._order.most

    def _clear(self) -> None:
        """Empty the queues, in one launch on CUDA and by hand on the CPU."""
        if self._stops and self.device.is_cuda:
            self._clearing.run()
            return
        self._queues.clear()
        if self._stops:
            self._best_view[:] = NO_KEY_INT

    def _room_for_best(self) -> wp.array:
        """The best key of each pose."""
        self._best = wp.empty(self.pose_count, dtype=wp.int64, device=self.device)
        args = [self._queues.counts, self._best]
        self._clearing = Task(clear_first_kernel, self.pose_count, args, self.device)
        if self.device.is_cpu:
            self._best_view = self._best.numpy()
        return self._best

    def _one_each(self, decided: int) -> Any:
        """One key per pose: a pair the filter is sure of, else the lowest of the exact stage."""
        best = self._best.numpy()
        width = self.layout.width
        keys = best[best != NO_KEY_INT]
        if decided and len(keys) < self.pose_count:
            exact = lowest_of_each_pose(self._sorted(decided), self.layout)
            exact = exact[best[exact >> width] == NO_KEY_INT]
            keys = np.sort(np.concatenate([keys, exact]))
        return keys
