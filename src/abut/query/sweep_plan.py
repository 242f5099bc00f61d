"""SweepPlan: the stages of a continuous query over one straight piece of motion.

Candidates are listed for a range of leaves at a time, filtered and solved before the next range,
so that memory stays bounded however many there are. The host waits once for each range. Where a
queue was too small the range is done again, with more room or in smaller parts.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative import Relative
from abut.errors import CapacityError
from abut.hierarchy.lbvh import frame_origin
from abut.hierarchy.swept import build_swept
from abut.hierarchy.tree import Tree
from abut.hierarchy.twigs import twigs_of
from abut.mesh import Mesh
from abut.motion import Piece
from abut.narrow.impact import (
    edge_edge_filter_kernel,
    edge_edge_impact_kernel,
    vertex_face_filter_kernel,
    vertex_face_impact_kernel,
)
from abut.narrow.impact_cubic import edge_edge_cubic_kernel, vertex_face_cubic_kernel
from abut.options import Solver
from abut.pairs import KeyLayout, PairQueues
from abut.runtime import EVERYTHING, launch, stage
from abut.sweep import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, Sweep, moving
from abut.traversal.every_pair import every_pair_kernel
from abut.traversal.self_tree import (
    self_gather_kernel,
    self_list_kernel,
    self_open_kernel,
    self_rest_kernel,
)
from abut.traversal.two_trees import gather_kernel, list_kernel

NO_TIME = 0x7FF0000000000000  # bits of infinity
LONG_WALK = 32  # visits of one thread on CUDA, before others share the rest
LEAST_ROOM = 1 << 14
MOST_CANDIDATES = {"cpu": 1 << 20, "cuda": 1 << 25}  # held at once
EXPECTED = 64  # candidates of an item, before any are known
FULL = 0.8  # what a range is planned to fill

_shared = threading.local()


class SweepBuffers:
    """Queues of continuous queries on a device, and the times of impacts; they only ever grow."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.most_candidates = MOST_CANDIDATES["cuda" if device.is_cuda else "cpu"]
        room = {"candidates": LEAST_ROOM, "possible": LEAST_ROOM, "impacts": LEAST_ROOM}
        if device.is_cuda:
            room |= {"candidates": 1 << 22, "possible": 1 << 20, "rest": 1 << 18, "last": 1 << 18}
            room |= {"twigs": 1 << 20}
        self.queues = (
            PairQueues(device, rest=1, last=1, **room)
            if device.is_cpu
            else (PairQueues(device, **room))
        )
        self.best = wp.empty(1, dtype=wp.int64, device=device)
        self._make_times()

    def _make_times(self) -> None:
        room = self.queues["impacts"].keys.shape[0]
        self.times = wp.empty(room, dtype=wp.float64, device=self.device)
        self.converged = wp.empty(room, dtype=wp.bool, device=self.device)

    def restart(self, impact_count: int) -> None:
        """Forget candidates, and impacts beyond the first so many."""
        self.queues.clear()
        if impact_count:
            self.queues["impacts"].count.fill_(impact_count)

    def make_room(self, counts: dict[str, int], impact_count: int) -> bool:
        """Grow to these counts, keeping the first impacts; False when there was room."""
        grown = False
        wanted = dict(counts)
        impacts = wanted.pop("impacts")
        if impacts > self.times.shape[0]:
            kept = self.queues["impacts"].keys, self.times, self.converged
            self.queues.make_room({"impacts": max(impacts, 2 * self.times.shape[0])})
            self._make_times()
            for new, old in zip(
                (self.queues["impacts"].keys, self.times, self.converged), kept, strict=True
            ):
                if impact_count:
                    wp.copy(new, old, count=impact_count)
            grown = True
        return self.queues.make_room(wanted) or grown


def shared_buffers(device: wp.Device) -> SweepBuffers:
    """The buffers of this thread on a device."""
    held = _shared.__dict__.setdefault("buffers", {})
    if device.alias not in held:
        held[device.alias] = SweepBuffers(device)
    return held[device.alias]


@dataclass
class Listing:
    """How to list the candidates of one kind of pair, by ranges of items."""

    kind: int
    item_count: int
    sides: tuple[Any, Any]
    launch: Callable[[int, int, PairQueues], None]  # start, stop


@dataclass
class SweepPlan:
    """Operands of a continuous query over one piece of motion.

    Attributes:
        meshes, pieces: One for a mesh against itself, or two.
        relation: What the operands share (see common_corners).
        gap: Distance at which features touch, what the pieces stray included.
        first: Look for the earliest impact only.
        brute: Test every pair.
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

    def run(self) -> tuple[int, SweepBuffers]:
        """Find impacts; returns how many there are and the buffers that hold them."""
        buffers = shared_buffers(self.device)
        buffers.best.fill_(NO_TIME)
        count = 0
        for listing in self.listings():
            for counts in self._ranges(listing, buffers, count, self._decide):
                count = counts["impacts"]
        return count, buffers

    def candidate_count(self) -> int:
        """List all candidates, and do nothing with them."""
        buffers = shared_buffers(self.device)
        total = 0
        for listing in self.listings():
            for counts in self._ranges(listing, buffers, 0, lambda *_: None):
                total += counts["candidates"]
        return total

    def _ranges(
        self, listing: Listing, buffers: SweepBuffers, impact_count: int, decide: Any
    ) -> Iterator[dict[str, int]]:
        """List and decide range after range; yields the counts of each that was complete."""
        start, step = 0, max(1, buffers.most_candidates // EXPECTED)
        while start < listing.item_count:
            stop = min(start + step, listing.item_count)
            buffers.restart(impact_count)
            with stage("candidates", self.device):
                listing.launch(start, stop, buffers.queues)
            if self.device.is_cuda or self._fits(buffers):
                decide(listing, buffers)
            counts = buffers.queues.read()
            share = counts["candidates"] / buffers.most_candidates
            if share > 1.0 and stop - start > 1:  # too many at once
                step = max(1, int((stop - start) * FULL / share))
            elif not buffers.make_room(counts, impact_count):
                yield counts
                impact_count = counts["impacts"]
                start = stop
                step = max(1, int(step * min(FULL / max(share, 1e-6), 8.0)))

    def _fits(self, buffers: SweepBuffers) -> bool:
        candidates = buffers.queues["candidates"]
        return buffers.queues.read()["candidates"] <= candidates.keys.shape[0]

    def _decide(self, listing: Listing, buffers: SweepBuffers) -> None:
        """Filter the candidates and find the impacts of those that remain."""
        sweep = self._sweep(listing, buffers)
        edges = listing.kind == EDGE_EDGE
        counts = buffers.queues.read() if self.device.is_cpu else {}
        with stage("filter", self.device):
            kernel = edge_edge_filter_kernel if edges else vertex_face_filter_kernel
            launch(kernel, counts.get("candidates", EVERYTHING), [sweep], self.device)
        counts = buffers.queues.read() if self.device.is_cpu else {}
        possible = min(counts.get("possible", EVERYTHING), sweep.possible.keys.shape[0])
        with stage("impacts", self.device):
            kernel = edge_edge_impact_kernel if edges else vertex_face_impact_kernel
            if self.solver is Solver.CUBIC:
                kernel = edge_edge_cubic_kernel if edges else vertex_face_cubic_kernel
            count = possible if self.device.is_cpu else EVERYTHING
            launch(kernel, count, [sweep], self.device, grain=256)

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

    def listings(self) -> Iterator[Listing]:
        """The kinds of pairs there are, with what lists them."""
        views = [
            moving(mesh, piece.points_t0, piece.points_t1)
            for mesh, piece in zip(self.meshes, self.pieces, strict=True)
        ]
        a, b = 0, len(views) - 1
        yield self._between(VERTEX_FACE, (a, "vertex"), (b, "face"), views)
        if a == b:
            yield self._within(views)
            return
        yield self._between(EDGE_EDGE, (a, "edge"), (b, "edge"), views)
        yield self._between(FACE_VERTEX, (b, "vertex"), (a, "face"), views)

    def _between(self, kind: int, one: Any, other: Any, views: list[Any]) -> Listing:
        sides = views[one[0]], views[other[0]]
        counts = self._corners(*one).shape[0], self._corners(*other).shape[0]
        if self.brute:
            args = [counts[1], False, self.layout.bits]
            return Listing(kind, counts[0], sides, self._lister(every_pair_kernel, args))
        trees = self._tree(*one).view(), self._tree(*other).view()
        if self.device.is_cpu:
            args = [*trees, self.layout.bits]
            return Listing(kind, counts[0], sides, self._lister(gather_kernel, args))
        frame = wp.zeros(1, dtype=Relative, device=self.device)  # boxes have one origin
        args = [*trees, frame, counts[0], self.layout.bits, False]
        return Listing(kind, counts[0], sides, self._lister(list_kernel, args))

    def _within(self, views: list[Any]) -> Listing:
        sides = views[0], views[0]
        count = self._corners(0, "edge").shape[0]
        if self.brute:
            args = [count, True, self.layout.bits]
            return Listing(EDGE_EDGE, count, sides, self._lister(every_pair_kernel, args))
        tree = self._tree(0, "edge")
        if self.device.is_cpu:
            lister = self._lister(self_gather_kernel, [tree.view(), self.layout.bits])
            return Listing(EDGE_EDGE, count, sides, lister)
        count = twigs_of(tree).shape[0]
        return Listing(EDGE_EDGE, count, sides, lambda *range_: self._list_edges(tree, *range_))

    def _lister(self, kernel: wp.Kernel, args: list[Any]) -> Callable[[int, int, PairQueues], None]:
        def list_range(start: int, stop: int, queues: PairQueues) -> None:
            inputs = [*args, queues["candidates"]]
            launch(kernel, stop - start, inputs, self.device, grain=256, start=start)

        return list_range

    def _list_edges(self, tree: Tree, start: int, stop: int, queues: PairQueues) -> None:
        """Each pair of edges once, on CUDA, where long walks are shared."""
        view, twigs, found = tree.view(), twigs_of(tree), queues["twigs"]
        rest, last = queues["rest"], queues["last"]
        args = [view, twigs, LONG_WALK, found, rest]
        launch(self_list_kernel, stop - start, args, self.device, start=start)
        args = [view, twigs, LONG_WALK, rest, found, last]
        launch(self_rest_kernel, EVERYTHING, args, self.device)
        args = [view, twigs, EVERYTHING, last, found, rest]
        launch(self_rest_kernel, EVERYTHING, args, self.device)
        args = [view, self.layout.bits, found, queues["candidates"]]
        launch(self_open_kernel, EVERYTHING, args, self.device)

    def _corners(self, side: int, feature: str) -> wp.array:
        return corners_of(self.meshes[side], feature)

    def _tree(self, side: int, feature: str) -> Any:
        piece = self.pieces[side]
        with stage("hierarchy", self.device):
            return build_swept(
                piece.points_t0,
                piece.points_t1,
                self._corners(side, feature),
                piece.bounds,
                self._origin(),
                self.gap / 2.0,
            )

    def _origin(self) -> np.ndarray:
        lower = np.min([piece.bounds[0] for piece in self.pieces], axis=0)
        upper = np.max([piece.bounds[1] for piece in self.pieces], axis=0)
        return frame_origin(np.array([lower, upper]))


def corners_of(mesh: Mesh, feature: str) -> wp.array:
    """Vertices of all vertices, edges or faces of a mesh, three a row, some of them repeated."""
    if feature == "face":
        return mesh.faces
    with mesh.lock:
        held = mesh.held.get(("corners", feature))
        if held is None:
            rows = np.arange(mesh.vertex_count, dtype=np.int32)[:, None]
            rows = rows if feature == "vertex" else mesh.edges.numpy()
            rows = np.ascontiguousarray(rows[:, [0, -1, -1]])
            held = wp.array(rows, dtype=wp.vec3i, device=mesh.device)
            mesh.held["corners", feature] = held
        return held


def require_memory(layout: KeyLayout) -> None:
    """Refuse meshes whose keys would not fit 63 bits."""
    if layout.width > 61:
        raise CapacityError("these meshes have too many features for one query; split them.")
