"""SweepPlan: the stages of a continuous query over one straight piece of motion.

Candidates are listed for a range of leaves at a time, filtered and solved before the next range,
so that memory stays bounded however many there are. The host waits once for each range. Where a
queue was too small the range is done again, with more room or in smaller parts.

Where only the earliest impact is wanted, a small sample of leaves is asked first. What it finds
bounds the time that is of interest, and boxes shrink to the motion until then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative import Relative
from abut.errors import CapacityError
from abut.hierarchy.tree import Tree
from abut.hierarchy.twigs import twigs_of
from abut.mesh import Mesh
from abut.motion import MIX_ROUNDING, Piece, mixed_points
from abut.narrow.impact import (
    edge_edge_filter_kernel,
    edge_edge_impact_kernel,
    vertex_face_filter_kernel,
    vertex_face_impact_kernel,
)
from abut.narrow.impact_cubic import edge_edge_cubic_kernel, vertex_face_cubic_kernel
from abut.options import Solver
from abut.pairs import KeyLayout, PairQueues
from abut.query.sweep_buffers import (
    SweepBuffers,
    corners_of,
    kept_origin,
    shared_buffers,
    swept_tree,
)
from abut.query.sweep_front import FrontRange, SweepFronts
from abut.runtime import EVERYTHING, launch, stage
from abut.sweep import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, Sweep, moving
from abut.traversal.dop_frames import DopFrames
from abut.traversal.every_pair import every_pair_kernel
from abut.traversal.groups import groups_kernel, groups_of, self_groups_kernel
from abut.traversal.self_tree import self_open_kernel, twig_walks
from abut.traversal.two_trees import walks

EXPECTED = 64  # candidates of an item, before any are known
FULL = 0.8  # what a range is planned to fill
SAMPLES, SAMPLED = 16, 1 / 32  # runs of leaves asked first, and their share of all
SMALL = 1 << 16  # vertices and edges: fewer are sooner searched than sampled
WORTHWHILE = 0.75  # boxes shrink to motions shorter than this


@dataclass
class Listing:
    """How to list the candidates of one kind of pair, by ranges of items.

    ``launch`` takes start, stop and queues; ``accept`` tells whether a range that found room for
    its candidates need not be done again after all.
    """

    kind: int
    item_count: int
    sides: tuple[Any, Any]
    launch: Callable[[int, int, PairQueues], None]
    accept: Callable[[], bool] = lambda: True
    by_front: bool = False


@dataclass
class SweepPlan:
    """Operands of a continuous query over one piece of motion.

    Attributes:
        meshes, pieces: One for a mesh against itself, or two.
        relation: What the operands share (see common_corners).
        gap: Distance at which features touch, what the pieces stray included.
        first: Look for the earliest impact only.
        brute: Test every pair.
        fronts: Where earlier steps stopped, to go on from there; None starts at the roots.
        token: Tells this query's motions from those of others.
    """

    device: wp.Device
    meshes: tuple[Mesh, ...]
    pieces: tuple[Piece, ...]
    relation: int
    layout: KeyLayout
    gap: float
    tolerance: float
    solver: Solver = Solver.CONSERVATIVE
    first: bool = False
    brute: bool = False
    fronts: SweepFronts | None = None
    token: object = field(default_factory=object)

    def run(self) -> tuple[int, SweepBuffers]:
        """Find impacts; returns how many there are and the buffers that hold them."""
        buffers = shared_buffers(self.device)
        buffers.forget()
        until, count = self._sampled(buffers) if self._samples else (1.0, 0)
        for listing in self.listings(until):
            for counts in self._ranges(listing, buffers, count, self._decide):
                count = counts["impacts"]
        return count, buffers

    @property
    def _samples(self) -> bool:
        """Whether to look for the first impact in a sample before; a few long walks on CUDA."""
        if self.device.is_cuda or self.fronts is not None:
            return False
        return self.first and not self.brute and self._size > SMALL

    @property
    def _size(self) -> int:
        return sum(mesh.vertex_count + mesh.edges.shape[0] for mesh in self.meshes)

    def candidate_count(self) -> int:
        """List all candidates, and do nothing with them."""
        buffers = shared_buffers(self.device)
        total = 0
        for listing in self.listings():
            for counts in self._ranges(listing, buffers, 0, lambda *_: None):
                total += counts["candidates"]
        return total

    def listings(self, until: float = 1.0) -> Iterator[Listing]:
        """The kinds of pairs there are, with what lists those that may meet by a time."""
        last = len(self.meshes) - 1
        yield self._between(VERTEX_FACE, (0, "vertex"), (last, "face"), until)
        if last == 0:
            yield self._within(until)
            return
        yield self._between(EDGE_EDGE, (0, "edge"), (last, "edge"), until)
        yield self._between(FACE_VERTEX, (last, "vertex"), (0, "face"), until)

    def _sampled(self, buffers: SweepBuffers) -> tuple[float, int]:
        """A time after which nothing is of interest, and how many impacts a sample has.

        They are kept: what meets at that very time, or is near it without meeting, may not be found
        again. The time is 1 where few candidates are to be expected: to fit boxes to a shorter
        motion does not pay then.
        """
        expected, count = 0.0, 0
        for listing in self.listings():
            run = max(1, int(listing.item_count * SAMPLED / SAMPLES))
            starts = np.linspace(0, listing.item_count - run, SAMPLES).astype(int).tolist()
            counts = self._asked(listing, starts, run, buffers, count)
            count = counts["impacts"]
            expected += counts["candidates"] * listing.item_count / (SAMPLES * run)
        until = buffers.earliest() + self.tolerance
        return (until if until < WORTHWHILE and expected > self._size else 1.0), count

    def _asked(
        self, listing: Listing, starts: list[int], run: int, buffers: SweepBuffers, kept: int
    ) -> dict[str, int]:
        """List and decide some runs of items, beside the impacts kept; what there is then."""
        while True:
            buffers.restart(kept)
            with stage("sample", self.device):
                for start in starts:
                    listing.launch(start, start + run, buffers.queues)
                self._decide(listing, buffers)
            counts = buffers.queues.read()
            if not buffers.keep_impacts(counts["impacts"], kept):
                return counts

    def _ranges(
        self, listing: Listing, buffers: SweepBuffers, impact_count: int, decide: Any
    ) -> Iterator[dict[str, int]]:
        """List and decide range after range; yields the counts of each that was complete."""
        about = (listing.kind, listing.by_front)
        density = buffers.density.get(about, EXPECTED)
        start, step = 0, max(1, int(FULL * buffers.most_candidates / density))
        while start < listing.item_count:
            stop = min(start + step, listing.item_count)
            buffers.restart(impact_count)
            with stage("candidates", self.device):
                listing.launch(start, stop, buffers.queues)
            decide(listing, buffers)
            counts = buffers.queues.read()
            share = counts["candidates"] / buffers.most_candidates
            if share > 1.0 and stop - start > 1:  # too many at once
                step = max(1, int((stop - start) * FULL / share))
            elif not buffers.make_room(counts, impact_count) and listing.accept():
                yield counts
                impact_count = counts["impacts"]
                buffers.density[about] = max(counts["candidates"] / (stop - start), 1.0)
                step = max(1, int(step * min(FULL / max(share, 1e-6), 8.0)))
                start = stop

    def _decide(self, listing: Listing, buffers: SweepBuffers) -> None:
        """Filter the candidates and find the impacts of those that remain."""
        sweep = self._sweep(listing, buffers)
        edges = listing.kind == EDGE_EDGE
        with stage("filter", self.device):
            kernel = edge_edge_filter_kernel if edges else vertex_face_filter_kernel
            launch(kernel, self._held(buffers, "candidates"), [sweep], self.device)
        with stage("impacts", self.device):
            kernel = edge_edge_impact_kernel if edges else vertex_face_impact_kernel
            if self.solver is Solver.CUBIC:
                kernel = edge_edge_cubic_kernel if edges else vertex_face_cubic_kernel
            launch(kernel, self._held(buffers, "possible"), [sweep], self.device, grain=256)

    def _held(self, buffers: SweepBuffers, name: str) -> int:
        """How many keys a queue holds, where the host knows; else how many threads to start.

        On CUDA pairs that remain differ much in what they take: each has a thread of its own.
        """
        room = buffers.queues[name].keys.shape[0]
        if self.device.is_cuda:
            return EVERYTHING if name == "candidates" else room
        return min(buffers.queues.read()[name], room)

    def _sweep(self, listing: Listing, buffers: SweepBuffers) -> Any:
        sweep = Sweep()
        sweep.a, sweep.b = listing.sides
        sweep.kind, sweep.relation, sweep.bits = listing.kind, self.relation, self.layout.bits
        sweep.min_distance, sweep.tolerance = wp.float64(self.gap), wp.float64(self.tolerance)
        queues = buffers.queues
        sweep.candidates, sweep.possible = queues["candidates"], queues["possible"]
        sweep.impacts, sweep.times = queues["impacts"], buffers.times
        sweep.converged, sweep.best = buffers.converged, buffers.best
        sweep.first = self.first
        return sweep

    def _between(self, kind: int, one: Any, other: Any, until: float) -> Listing:
        sides = self._views[one[0]], self._views[other[0]]
        counts = [corners_of(self.meshes[side], feature).shape[0] for side, feature in (one, other)]
        if self.brute:
            args = [counts[1], False, self.layout.bits]
            return Listing(kind, counts[0], sides, self._lister(every_pair_kernel, args))
        held = tuple(self._tree(*which, until) for which in (one, other))
        kept = self._from_front(kind, held, sides)
        if kept is not None:
            return kept
        trees = [tree.view() for tree in held]
        if self.device.is_cpu:
            lister = self._lister(groups_kernel, [*trees, self.layout.bits])
            return Listing(kind, groups_of(counts[0]), sides, lister)
        # From the leaves of the more numerous side: more walks, and shorter ones.
        swapped = counts[1] > counts[0]
        if swapped:
            trees.reverse()
        frame = wp.zeros(1, dtype=Relative, device=self.device)  # boxes have one origin
        args = [*trees, frame, DopFrames(), max(counts), self.layout.bits, swapped]
        return Listing(kind, max(counts), sides, self._lister(walks(finer=False).list, args))

    def _within(self, until: float) -> Listing:
        sides = self._views[0], self._views[0]
        count = corners_of(self.meshes[0], "edge").shape[0]
        if self.brute:
            args = [count, True, self.layout.bits]
            return Listing(EDGE_EDGE, count, sides, self._lister(every_pair_kernel, args))
        tree = self._tree(0, "edge", until)
        kept = self._from_front(EDGE_EDGE, (tree,), sides)
        if kept is not None:
            return kept
        if self.device.is_cpu:
            lister = self._lister(self_groups_kernel, [tree.view(), self.layout.bits])
            return Listing(EDGE_EDGE, groups_of(count), sides, lister)
        count = twigs_of(tree).shape[0]
        return Listing(EDGE_EDGE, count, sides, partial(self._list_edges, tree))

    def _from_front(self, kind: int, trees: tuple[Tree, ...], sides: Any) -> Listing | None:
        """How to list candidates from where the last step stopped; None to start at the roots."""
        if self.fronts is None:
            return None
        front = self.fronts.of(kind, trees, shared_buffers(self.device).queues)
        if front is None:
            return None
        part = FrontRange(self.fronts, kind, front, self.layout.bits)
        return Listing(kind, front.size, sides, part.launch, part.accept, by_front=True)

    def _lister(self, kernel: wp.Kernel, args: list[Any]) -> Callable[[int, int, PairQueues], None]:
        def list_range(start: int, stop: int, queues: PairQueues) -> None:
            inputs = [*args, queues["candidates"]]
            launch(kernel, stop - start, inputs, self.device, grain=256, start=start)

        return list_range

    def _list_edges(self, tree: Tree, start: int, stop: int, queues: PairQueues) -> None:
        """Each pair of edges once, on CUDA, where long walks are shared."""
        walks_of_twigs = twig_walks(tree.view(), twigs_of(tree), queues)
        kernel, _, args = next(walks_of_twigs)
        launch(kernel, stop - start, args, self.device, start=start)
        for kernel, count, args in walks_of_twigs:
            launch(kernel, count, args, self.device)
        args = [tree.view(), self.layout.bits, False, queues["twigs"], queues["candidates"]]
        launch(self_open_kernel, EVERYTHING, args, self.device)

    @cached_property
    def _views(self) -> list[Any]:
        both = zip(self.meshes, self.pieces, strict=True)
        return [moving(mesh, piece.points_t0, piece.points_t1) for mesh, piece in both]

    def _tree(self, side: int, feature: str, until: float) -> Tree:
        """The tree of features whose boxes hold them until a time."""
        piece = self.pieces[side]
        end, pad = piece.points_t1, self.gap / 2.0
        with stage("hierarchy", self.device):
            if until < 1.0 and piece.place is None:
                end = self._shortened(side, until)
                pad += MIX_ROUNDING * float(np.abs(piece.bounds).max())
            points = piece.points_t0, end
            frame = self._origin, self._bounds
            mesh = self.meshes[side]
            twice = side if mesh is self.meshes[0] else 0
            where = piece.bounds, piece.place or (self.token, until)
            return swept_tree(mesh, feature, points, where, frame, pad, twice)

    def _shortened(self, side: int, until: float) -> wp.array:
        """Where vertices are at a time, made once."""
        made = self.__dict__.setdefault("_made", {})
        if (side, until) not in made:
            piece = self.pieces[side]
            made[side, until] = mixed_points(piece.points_t0, piece.points_t1, until)
        return made[side, until]

    @cached_property
    def _bounds(self) -> np.ndarray:
        """Of all that moves."""
        lower = np.min([piece.bounds[0] for piece in self.pieces], axis=0)
        upper = np.max([piece.bounds[1] for piece in self.pieces], axis=0)
        return np.array([lower, upper])

    @cached_property
    def _origin(self) -> np.ndarray:
        return kept_origin(self.meshes, self._bounds)


def require_memory(layout: KeyLayout) -> None:
    """Refuse meshes whose keys would not fit 63 bits."""
    if layout.width > 61:
        raise CapacityError("these meshes have too many features for one query; split them.")
