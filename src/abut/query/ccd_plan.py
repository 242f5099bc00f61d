"""CcdPlan: the stages of a continuous query over one straight piece of motion.

Candidates are listed for a range of items at a time, filtered and solved before the next range, so
that memory stays bounded however many there are. The host waits once for each range. Where all
candidates are expected to fit, one list of stages covers all kinds of pairs, and the host waits
once.

Where only the earliest impact is wanted, a small sample of leaves comes first. Its earliest impact
bounds the time of interest, and boxes shrink to the motion until then.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.pair_queue import JoinedQueues, KeyLayout
from abut.core.plan import Counts, Plan, QueueLaunch, Ranges, Stage
from abut.core.progress import tracked
from abut.mesh import Mesh
from abut.motion import Piece
from abut.narrow.impact import candidate_kernel_for, impact_kernel_for
from abut.operands.ccd_operands import EDGE_EDGE, FACE_VERTEX, CcdOperands
from abut.options import Bound, Solver
from abut.query.ccd_candidates import (
    CcdCandidates,
    CcdFronts,
    CcdStrategy,
    FeaturePairs,
    cheapest_strategy,
)
from abut.query.ccd_labels import IgnoredLabels
from abut.query.ccd_queues import CcdQueues, shared_ccd_queues

EXPECTED = 64  # candidates of an item, before any are known
SAMPLES, SAMPLED = 16, 1 / 32  # runs of items in a sample, and their share of all
LEAST_SAMPLED = 1 << 16  # vertices and edges: fewer are sooner searched than sampled
WORTHWHILE = 0.75  # boxes shrink to motions shorter than this


@dataclass
class CcdExecution:
    """Execution of a continuous query, which changes no answer. None is chosen by rule.

    Attributes:
        strategy: The way to find candidates.
        fronts: Fronts of earlier steps of the same meshes, for the strategy FRONT.
        at_once: Run all kinds of pairs without a wait in between, where they are expected to fit.
        least_sampled: Vertices and edges from which on a sample is searched before the rest.
        queues: Queues of pairs; None takes those of the thread.
        bound: Bounding volume of the hierarchies, AABB, OBB or RSS.
    """

    strategy: CcdStrategy | None = None
    fronts: CcdFronts | None = None
    at_once: bool | None = None
    least_sampled: int = LEAST_SAMPLED
    queues: CcdQueues | None = None
    bound: Bound = Bound.AABB


class CcdPlan:
    """A continuous query over one piece of motion.

    Args:
        meshes, pieces: One for a mesh against itself, or two.
        sharing: Vertices that the operands share (see common_corners).
        layout: Of keys of features.
        gap: Distance at which features touch, the deviation of pieces included.
        tolerance: How much earlier than the contact a time may be.
        solver: Solver of the times.
        first: Look for the earliest impact only.
        execution: Strategy, queues and other choices that change no answer.
        ignored: Labels whose features do not collide.
    """

    def __init__(
        self,
        meshes: tuple[Mesh, ...],
        pieces: tuple[Piece, ...],
        sharing: int,
        layout: KeyLayout,
        gap: float,
        tolerance: float,
        solver: Solver = Solver.CONSERVATIVE,
        first: bool = False,
        execution: CcdExecution | None = None,
        ignored: IgnoredLabels | None = None,
    ) -> None:
        how = execution or CcdExecution()
        self.device = meshes[0].device
        self.meshes, self.sharing, self.layout = meshes, sharing, layout
        self.gap, self.tolerance, self.solver, self.first = gap, tolerance, solver, first
        self.ignored = ignored
        self.queues = how.queues or shared_ccd_queues(self.device)
        strategy = how.strategy or cheapest_strategy(self.device, how.fronts)
        self.candidates = CcdCandidates(
            self.device, meshes, pieces, layout, gap, strategy, self.queues, how.fronts, how.bound
        )
        leaf_walk = strategy is CcdStrategy.LEAF_WALK
        self.at_once = leaf_walk if how.at_once is None else how.at_once
        sampled = first and strategy is CcdStrategy.PACKETS and how.bound is Bound.AABB
        self.samples = sampled and self._feature_count > how.least_sampled

    def run(self) -> int:
        """Find the impacts; returns their number."""
        self.queues.begin()
        if self.at_once:
            if self._run_at_once(True):
                return self.queues.kept("impacts")
            self.queues.begin()
        until = self._sample() if self.samples else 1.0
        kinds = self.candidates.kinds
        for kind in tracked(kinds, len(kinds)):
            self._run_ranges(self.candidates.pairs_of(kind, until), until, True)
        return self.queues.kept("impacts")

    def candidate_count(self) -> int:
        """Number of candidates."""
        counts = self._run_at_once(False) if self.at_once else []
        if not counts:
            for kind in self.candidates.kinds:
                counts += self._run_ranges(self.candidates.pairs_of(kind), 1.0, False)
        return sum(each["candidates"] for each in counts)

    @property
    def _feature_count(self) -> int:
        return sum(mesh.vertex_count + mesh.edges.shape[0] for mesh in self.meshes)

    def _run_at_once(self, decide: bool) -> list[Counts]:
        """Run all kinds with one wait; the counts of each kind, none if not all can fit."""
        queues = self.queues
        pairs = [self.candidates.pairs_of(kind) for kind in self.candidates.kinds]
        for each in pairs:
            density = queues.density.get(each.key, np.inf)
            if density * each.item_count > Ranges.FILL * queues.most_candidates:
                return []

        def stages() -> Iterator[Stage]:
            for number, each in enumerate(pairs):
                yield "candidates", lambda each=each: each.list_items(0, each.item_count)
                if decide:
                    yield from self._decide(each)
                yield "counts", lambda number=number: queues.save_counts(number)

        def read() -> Counts:
            saved = queues.saved_counts(len(pairs))
            return {name: max(counts[name] for counts in saved) for name in saved[0]}

        def needs(counts: Counts) -> Counts | None:
            return counts if counts["candidates"] <= queues.most_candidates else None

        counts = Plan(queues, stages, read=read, needs=needs).run()
        if counts is None:
            return []
        queues.keep("impacts", counts["impacts"])
        saved = queues.saved_counts(len(pairs))
        for each, found in zip(pairs, saved, strict=True):
            queues.density[each.key] = max(found["candidates"] / max(each.item_count, 1), 1.0)
        return saved

    def _sample(self) -> float:
        """Find the impacts of a sample; returns a time after which no impact is the earliest.

        The impacts are kept, since pairs that meet at that very time may not be found again. The
        time is 1 where few candidates are expected, since to refit boxes does not pay then.
        """
        expected = 0.0
        for kind in self.candidates.kinds:
            pairs = self.candidates.pairs_of(kind)
            size = max(1, int(pairs.item_count * SAMPLED / SAMPLES))
            starts = np.linspace(0, pairs.item_count - size, SAMPLES).astype(int).tolist()
            counts = self._run_sample(pairs, starts, size)
            self.queues.keep("impacts", counts["impacts"])
            expected += counts["candidates"] * pairs.item_count / (SAMPLES * size)
        until = self.queues.earliest() + self.tolerance
        return until if until < WORTHWHILE and expected > self._feature_count else 1.0

    def _run_sample(self, pairs: FeaturePairs, starts: list[int], size: int) -> Counts:
        """Run some ranges of items. Candidates without room are left out of the sample."""

        def stages() -> Iterator[Stage]:
            for start in starts:
                yield "sample", lambda start=start: pairs.list_items(start, start + size)
            yield from self._decide(pairs)

        plan = Plan(self.queues, stages, needs=lambda counts: {"impacts": counts["impacts"]})
        counts = plan.run()
        assert counts is not None
        return counts

    def _run_ranges(self, pairs: FeaturePairs, until: float, decide: bool) -> list[Counts]:
        """Run range after range of items; the counts of each."""
        queues, front, impact_count = self.queues, pairs.front, self.queues.kept("impacts")
        density = queues.density.get(pairs.key, EXPECTED)
        ranges = Ranges(pairs.item_count, "candidates", queues.most_candidates, density)

        def stages() -> Iterator[Stage]:
            if front is None:
                yield "candidates", lambda: pairs.list_items(ranges.start, ranges.stop)
            else:
                yield from front.range_stages(self.layout.bits, queues["candidates"], ranges)
            if decide:
                yield from self._decide(pairs)

        def accept(counts: Counts) -> bool:
            queues.keep("impacts", counts["impacts"])
            if front is not None:
                front.queues.keep(front.names[1], counts[front.names[1]])
            return True

        filled = queues if front is None else JoinedQueues(queues, front.queues)
        needs = None if front is None else front.needs
        counts = Plan(filled, stages, needs=needs, accept=accept).run_ranges(ranges)
        if counts is None:  # the front has grown too long
            queues.keep("impacts", impact_count)
            fronts = self.candidates.fronts
            assert front is not None and fronts is not None
            fronts.give_up(pairs.kind, front.trees)
            return self._run_ranges(self.candidates.pairs_of(pairs.kind, until), until, decide)
        queues.density[pairs.key] = ranges.density
        if front is not None:
            front.turn(front.queues.kept(front.names[1]))
            front.steps += 1
        return counts

    def _decide(self, pairs: FeaturePairs) -> Iterator[Stage]:
        """Stages that filter the candidates and find the impacts of those that remain."""
        operands, edges = self._operands(pairs), pairs.kind == int(EDGE_EDGE)
        kernel = candidate_kernel_for(edges)
        candidates, possible = self.queues["candidates"], self.queues["possible"]
        yield "filter", QueueLaunch(kernel, candidates, [operands], grain=4096).run
        kernel = impact_kernel_for(edges, self.solver is Solver.CUBIC)
        threads = possible.keys.shape[0]  # pairs differ much in cost: on CUDA a thread for each
        yield "impacts", QueueLaunch(kernel, possible, [operands], grain=256, threads=threads).run

    def _operands(self, pairs: FeaturePairs) -> Any:
        out, queues = CcdOperands(), self.queues
        out.a, out.b, out.kind = pairs.a, pairs.b, pairs.kind
        out.sharing, out.bits, out.first = self.sharing, self.layout.bits, self.first
        out.min_distance, out.tolerance = wp.float64(self.gap), wp.float64(self.tolerance)
        out.candidates, out.possible = queues["candidates"], queues["possible"]
        out.impacts, out.times = queues["impacts"], queues.times
        out.converged, out.best = queues.converged, queues.best
        if self.ignored is not None:
            sides = self.ignored.labels
            sides = sides[::-1] if pairs.kind == int(FACE_VERTEX) else sides
            out.labels_a, out.labels_b, out.ignored = sides[0], sides[-1], self.ignored.pairs
        return out
