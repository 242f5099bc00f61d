"""BVTT fronts on the host: the node pairs at which the last traversal stopped."""

from collections.abc import Iterator
from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Bvh
from abut.bvh.leaf_ranges import leaf_ranges
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.plan import Counts, Plan, QueueLaunch, Ranges, Stage
from abut.geometry.common_corners import SHARED_BY_INDEX, SHARED_NONE
from abut.operands.pair_rows import MeshRows
from abut.operands.posed_mesh import PosedMesh
from abut.operands.posed_pairs import MeshPairs, mesh_pairs
from abut.options import Bound
from abut.traversal.front.advance import FrontQueues, advance_kernel_for
from abut.traversal.front.traversal_tree import FrontRows
from abut.traversal.overlap.row_frames import SUBTREES, frames_kernel_for

MOST_PAIRS = 1 << 25  # of a front; longer ones are given up, and queries start at the roots
LEAST_ROOM = 1 << 16
CLIMB_EVERY = 8  # queries: to move a pair up costs more than to test it
START_ROUNDS = 16  # of a new front; each opens every pair once, so that all threads have work
GRAIN = 1024


class BvttFront:
    """Node pairs at which the last traversal of posed pairs stopped.

    They lie in one of two queues, ``even`` and ``odd``. A traversal reads the one and fills the
    other; ``turn`` then makes the other the front.

    Args:
        device: Where the queues lie.
        layout: Layout of keys (rank of the row, slot of a, slot of b).
        room: Keys that the queues hold at first.
        most_pairs: Length at which a front is given up.
        others: Names of further queues.

    Attributes:
        size: Node pairs in the front.
        steps: Queries that the front has served.
    """

    def __init__(
        self,
        device: wp.Device,
        layout: KeyLayout,
        room: int,
        most_pairs: int,
        others: tuple[str, ...] = (),
    ) -> None:
        self.device, self.layout = device, layout
        names = ("even", "odd", *others)
        self.queues = PairQueues(device, **dict.fromkeys(names, room))
        self.most_pairs = most_pairs
        self.is_odd = False
        self.size = self.steps = 0

    @property
    def names(self) -> tuple[str, str]:
        """The queue that holds the front, and the one that the next traversal fills."""
        return ("odd", "even") if self.is_odd else ("even", "odd")

    @property
    def climbs(self) -> bool:
        """Whether pairs move up in this query."""
        return self.steps % CLIMB_EVERY == CLIMB_EVERY - 1

    def needs(self, counts: Counts) -> Counts | None:
        """For a Plan: all counts must fit; None abandons a front that has grown too long."""
        return None if counts[self.names[1]] > self.most_pairs else counts

    def turn(self, size: int) -> None:
        """Make the pairs that a traversal has written the front."""
        here, there = self.names
        self.queues.keep(here, 0)
        self.queues.keep(there, size)
        self.is_odd, self.size = not self.is_odd, size

    def arguments(
        self, pairs: Any, rows: Any, found: Any, most: int, source: str = "", unopened: str = ""
    ) -> list[Any]:
        """Arguments of the kernel that advances the front, or the unopened pairs of ``source``.

        Pairs that are left after ``most`` were opened go to the queue ``unopened``, else to the
        new front.
        """
        here, there = self.names
        out = FrontQueues()
        out.kept, out.found = self.queues[there], found
        out.unopened = self.queues[unopened or there]
        whole = not source
        last = self.queues[source or here]
        return [pairs, rows, last, whole, most, self.climbs and whole, out]


def volumes_of(trees: tuple[Bvh, ...], bound: Bound) -> tuple[Any, ...]:
    """The arrays of volumes of hierarchies, which a refit keeps."""
    return tuple(tree.volumes(bound) for tree in trees)


class MeshFront(BvttFront):
    """The front of two hierarchies in one space, or of one against itself: a single row.

    Args:
        trees: The hierarchies, one or two.
        room: Keys that the queues hold at first.
        most_pairs: Length at which the front is given up.
        bound: Node volumes that decide: AABB, OBB or RSS.
    """

    def __init__(
        self,
        trees: tuple[Bvh, ...],
        room: int = LEAST_ROOM,
        most_pairs: int = MOST_PAIRS,
        bound: Bound = Bound.AABB,
    ) -> None:
        slots = [2 * tree.face_count for tree in (trees[0], trees[-1])]
        super().__init__(trees[0].nodes.device, KeyLayout.of(*slots), room, most_pairs)
        self.trees, self.bound, self._volumes = trees, bound, volumes_of(trees, bound)
        sharing = SHARED_NONE if len(trees) == 2 else SHARED_BY_INDEX
        nothing = PosedMesh()
        views = [tree.view(bound) for tree in trees]
        self.rows = MeshRows(mesh_pairs(nothing, nothing, sharing, trees=views), self.device)
        self._frames = wp.empty(1, dtype=RelativeFrame, device=self.device)
        self._ranges = wp.empty(sum(slots), dtype=wp.vec2i, device=self.device)
        for k, tree in enumerate(trees):
            wp.copy(self._ranges, leaf_ranges(tree), dest_offset=k * slots[0])
        key = ((slots[0] - 2) << self.layout.bits_b) | (slots[1] - 2)
        self.queues["even"].keys.fill_(key)
        self.queues.keep("even", 1)
        self.size = 1

    def fits(self, trees: tuple[Bvh, ...], bound: Bound = Bound.AABB) -> bool:
        """Whether the front belongs to these hierarchies; they may have been refitted."""
        mine, given = (*self.trees, *self._volumes), (*trees, *volumes_of(trees, bound))
        same = bound is self.bound and len(mine) == len(given)
        return same and all(x is y for x, y in zip(mine, given, strict=True))

    def start(self, found: Any) -> bool:
        """Open the pair of the roots round by round; False where the front grows too long.

        Keys that go to the queue ``found`` are not read.
        """
        unused = wp.vec2i(31, 31)
        for _ in range(START_ROUNDS):
            plan = Plan(self.queues, lambda: self.stages(unused, found, 1), needs=self.needs)
            counts = plan.run()
            if counts is None:
                return False
            self.turn(counts[self.names[1]])
        if self.device.is_cpu:  # it grew breadth first: bring it into the order of leaves
            self.queues[self.names[0]].keys.numpy()[: self.size].sort()
        return True

    def stages(self, bits: wp.vec2i, found: Any, most: int = UNKNOWN_COUNT) -> Iterator[Stage]:
        """Stages that advance the whole front; ``bits`` is the layout of the keys found."""
        yield self._frames_stage()
        args = self.arguments(self.rows.view, self._view(bits), found, most)
        over = QueueLaunch(
            advance_kernel_for(MeshPairs, self.bound), self.queues[self.names[0]], args, grain=GRAIN
        )
        yield "front", over.run

    def range_stages(self, bits: wp.vec2i, found: Any, ranges: Ranges) -> Iterator[Stage]:
        """Stages that advance a range of the front."""
        yield self._frames_stage()
        args = self.arguments(self.rows.view, self._view(bits), found, UNKNOWN_COUNT)

        kernel = advance_kernel_for(MeshPairs, self.bound)

        def run() -> None:
            launch(kernel, ranges.size, args, self.device, grain=GRAIN, start=ranges.start)

        yield "candidates", run

    def _frames_stage(self) -> Stage:
        counts = wp.empty(0, dtype=wp.int32, device=self.device)
        args = [self.rows.view, int(SUBTREES), self.rows.divide(1), False, self._frames, counts]
        return "frames", self.rows.over_rows(frames_kernel_for(MeshPairs), args, GRAIN)

    def _view(self, bits: wp.vec2i) -> Any:
        view = FrontRows()
        view.frames, view.leaf_ranges = self._frames, self._ranges
        view.slot_bits, view.bits = self.layout.bits, bits
        return view
