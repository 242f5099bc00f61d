"""The stages of a contact query: one list for two meshes, a batch of poses and a scene."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Bvh
from abut.bvh.leaf_clusters import leaf_clusters_of
from abut.bvh.leaf_corners import leaf_corner_rows, leaf_corners_kernel
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import PairQueues
from abut.core.plan import QueueLaunch, Stage
from abut.core.team import TEAM_BLOCK
from abut.narrow.exact import EXACT_THREADS, exact_kernel_for
from abut.narrow.filter import brute_kernel_for, filter_kernel_for
from abut.narrow.plane_filter import plane_filter_kernel
from abut.operands.pair_rows import MeshRows, SceneRows
from abut.operands.posed_pairs import WorkItems
from abut.traversal.overlap.descend import descend_kernel_for
from abut.traversal.overlap.kdop_frames import KdopFrames
from abut.traversal.overlap.leaf_cluster_pairs import cluster_walks, open_clusters_kernel
from abut.traversal.overlap.leaf_packets import packet_count_of, packet_kernel
from abut.traversal.overlap.leaf_walk import leaf_walk_kernel_for
from abut.traversal.overlap.row_frames import (
    FACES,
    LEAF_BLOCK,
    LEAF_BLOCKS,
    MANY_ROWS,
    SUBTREES,
    frames_kernel_for,
)
from abut.traversal.overlap.work_balance import BalancedSearch

LEAVES_PER_ITEM = 256  # of a subtree that is an item of a descent on the CPU
MOST_ITEMS = 256  # of all rows of a batch, or of one row of a scene, on the CPU
LEAVES_PER_TEAM = 64  # the same on CUDA
MOST_CUDA_ITEMS = 1 << 17
ROWS_PER_SLICE = {MeshRows: 512, SceneRows: 64}  # of a search for one pair a row, on the CPU
DEEPEST = MOST_ITEMS.bit_length() - 1  # levels down to subtrees of an object of a scene
LEAF_WALK_THREADS = 1 << 20  # a thread that strides over many walks gets several long ones


class Strategy(Enum):
    """Strategies that find candidate pairs of faces. All find the same contacts."""

    DESCEND = auto()  # both trees at once, a team for each subtree; faces are tested on the way
    FIRST = auto()  # both trees at once, a team for each row, until it has a pair
    LEAF_WALK = auto()  # one tree for each leaf of the other; faces are tested afterwards
    PACKETS = auto()  # packets of leaves of one tree against later leaves; tested on the way
    CLUSTERS = auto()  # pairs of leaf clusters of one tree, then their leaves, then the faces
    BALANCED = auto()  # both trees at once, in rounds of tasks with queues (gProximity §3.3)
    BRUTE = auto()  # every pair of faces


@dataclass
class ContactStages:
    """Makes the stages that find the pairs of faces that meet in rows of posed pairs.

    Attributes:
        rows: The posed pairs.
        queues: With ``hits``, ``undecided`` and what the strategy lists.
        out: ContactQueues that the stages fill.
        strategy: How candidates are found.
        trees: The hierarchies of the two meshes, for CLUSTERS.
        finer: Trees have volumes beside their boxes.
        own: Rows may pair a mesh with itself.
        boundless: Boxes decide nothing; finer volumes alone do.
        dops: k-DOPs of the rows, where the trees have some.
        colliding: Flags of environments, for a search that stops at the first contact of each.
    """

    rows: MeshRows | SceneRows
    queues: PairQueues
    out: Any
    strategy: Strategy
    trees: tuple[Bvh, ...] = ()
    finer: bool = False
    own: bool = False
    boundless: bool = False
    dops: Any = field(default_factory=KdopFrames)
    colliding: wp.array | None = None

    def __post_init__(self) -> None:
        """Make the data that stages share."""
        self.device = self.rows.device
        self.frames = wp.empty(self.rows.capacity, dtype=RelativeFrame, device=self.device)
        self._variant = (self.rows.kind, self.finer, self.own)

    def __iter__(self) -> Iterator[Stage]:
        """All stages, from frames to the exact test."""
        yield from {
            Strategy.DESCEND: self._descend,
            Strategy.FIRST: self._descend,
            Strategy.LEAF_WALK: self._leaf_walk,
            Strategy.PACKETS: self._packets,
            Strategy.CLUSTERS: self._clusters,
            Strategy.BALANCED: self._balanced,
            Strategy.BRUTE: self._brute,
        }[self.strategy]()
        yield self.exact()

    def exact(self) -> Stage:
        """The stage that decides the undecided pairs."""
        kernel, args = exact_kernel_for(self.rows.kind), [self.rows.view, self.out]
        over = QueueLaunch(kernel, self.out.undecided, args, threads=EXACT_THREADS)
        return "exact", over.run

    def filter(self, candidates: Any) -> Stage:
        """The stage that filters a queue of candidates."""
        args = [self.rows.view, candidates, self.out]
        kernel = filter_kernel_for(self.rows.kind, self.device.is_cpu)
        over = QueueLaunch(kernel, candidates, args, grain=1024)
        return "filter", over.run

    def _descend(self) -> Iterable[Stage]:
        first, device = self.strategy is Strategy.FIRST, self.device
        frames, flags = wp.empty(0, RelativeFrame, device), wp.empty(0, wp.int32, device)
        if self.colliding is not None:
            flags = self.colliding
        grain = ROWS_PER_SLICE[type(self.rows)]
        if first or self._small:
            items = WorkItems()
            items.each, items.leaves = 1, 1
        elif isinstance(self.rows, MeshRows):
            items = self._subtrees()
            grain = max(self.rows.capacity * items.each // 16, 1)
        else:
            items, frames = self.rows.divide(0, LEAVES_PER_ITEM, DEEPEST), self.frames
            yield from self._frames(SUBTREES, items)
        counter = wp.zeros(1, dtype=wp.int32, device=device)
        if device.is_cuda:
            yield "search", counter.zero_

        def args(items: Any) -> list[Any]:
            search = [self.boundless, self.dops, counter]
            return [self.rows.view, frames, items, *search, self.out, flags]

        kernel = descend_kernel_for(*self._variant, first, device.is_cuda, len(frames) > 0)
        yield "search", self.rows.over_teams(kernel, items, args, grain, TEAM_BLOCK)

    @property
    def _small(self) -> bool:
        """Whether every row is too little work to be divided. A mesh against itself always is."""
        return not self.own and int(self.out.bits[0]) < LEAVES_PER_TEAM.bit_length()

    def _packets(self) -> Iterable[Stage]:
        view = self.rows.view
        count = packet_count_of(view.a.faces.shape[0])
        args = [view.a, view.tree_a, view.sharing, self.out]
        yield "search", Task(packet_kernel, count, args, self.device, grain=32).run

    def _subtrees(self) -> Any:
        """Subtrees of a: enough for all threads, none too small to be worth an item."""
        most, leaves = MOST_ITEMS, LEAVES_PER_ITEM
        if self.device.is_cuda:
            most, leaves = MOST_CUDA_ITEMS, LEAVES_PER_TEAM
        deepest = max(most // self.rows.capacity, 1).bit_length() - 1
        face_count, depth = self.rows.view.a.faces.shape[0], 0
        while depth < deepest and face_count >> (depth + 1) >= leaves:
            depth += 1
        return self.rows.divide(1 << depth, leaves, deepest)

    def _leaf_walk(self) -> Iterable[Stage]:
        view, candidates = self.rows.view, self.queues["candidates"]
        each = 0
        if isinstance(self.rows, MeshRows):
            counts = view.a.faces.shape[0], view.b.faces.shape[0]
            walkers = max(counts) if self.rows.capacity < MANY_ROWS else min(counts)
            each = -(-walkers // int(LEAF_BLOCK))
        items = self.rows.divide(each)
        yield from self._frames(LEAF_BLOCKS, items)
        outputs = [self.out.bits, candidates, self.queues["skipped"]]
        yield (
            "search",
            self.rows.over_items(
                leaf_walk_kernel_for(*self._variant),
                items,
                lambda w: [view, self.frames, w, self.dops, *outputs],
                1024,
                int(LEAF_BLOCK),
                min(self.rows.capacity << int(self.out.bits[0]), LEAF_WALK_THREADS),
            ),
        )
        yield self.filter(candidates)

    def _clusters(self) -> Iterable[Stage]:
        """List pairs of leaf clusters, then of leaves; most fall to the plane filter."""
        tree, view, queues = self.trees[0], self.rows.view, self.queues
        for kernel, count, args in cluster_walks(view.tree_a, leaf_clusters_of(tree), queues):
            yield "search", Task(kernel, count, args, self.device).run
        clusters, leaves, rows = queues["clusters"], queues["leaves"], leaf_corner_rows(tree)
        args = [view.tree_a, self.out.bits, True, clusters, leaves]
        yield "search", Task(open_clusters_kernel, UNKNOWN_COUNT, args, self.device).run
        args = [view.a.points, view.a.faces, view.tree_a.origin, tree.nodes, tree.leaf_slots, rows]
        yield "plane filter", Task(leaf_corners_kernel, tree.face_count, args, self.device).run
        args = [view.tree_a, rows, self.out.bits, leaves, queues["candidates"]]
        yield "plane filter", QueueLaunch(plane_filter_kernel, leaves, args).run
        yield self.filter(queues["candidates"])

    def _balanced(self) -> Iterable[Stage]:
        """Rows of two meshes only: a scene's slots differ from row to row."""
        assert isinstance(self.rows, MeshRows)
        yield from self._frames(SUBTREES, self.rows.divide(1))
        candidates = self.queues["candidates"]
        about = (self.dops, self.finer, self.own, self.out.bits, candidates)
        yield "search", BalancedSearch(self.rows, self.frames, *about).run
        yield self.filter(candidates)

    def _brute(self) -> Iterable[Stage]:
        view, each, others = self.rows.view, 0, 1
        if isinstance(self.rows, MeshRows):
            each, others = view.a.faces.shape[0], view.b.faces.shape[0]
        items = self.rows.divide(each)
        if isinstance(self.rows, SceneRows):
            yield from self._frames(FACES, items)
        kernel = brute_kernel_for(self.rows.kind)
        args = lambda w: [view, w, self.out]  # noqa: E731
        yield "search", self.rows.over_items(kernel, items, args, 1, steps=others)

    def _frames(self, kind: int, items: Any, count: bool = True) -> Iterable[Stage]:
        """Relative frames of all rows; where they differ in size, also their items of work."""
        counts = wp.empty(0, dtype=wp.int32, device=self.device)
        rows = self.rows
        if count and isinstance(rows, SceneRows):
            counts = rows.item_counts
        args = [rows.view, kind, items, self.boundless, self.frames, counts]
        yield "frames", self.rows.over_rows(frames_kernel_for(self.rows.kind), args, 1024)
        if count and isinstance(rows, SceneRows):
            yield rows.scan()
