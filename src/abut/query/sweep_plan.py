"""SweepPlan: the stages of a continuous query over one straight piece of motion.

Candidates are listed for a range of leaves at a time, filtered and solved before the next range,
so that memory stays bounded however many there are. The host waits once for each range. Where a
queue was too small the range is done again, with more room or in smaller parts. On CUDA, where all
is expected to fit, the host waits but once for all kinds of pairs.

Where only the earliest impact is wanted, a small sample of leaves is asked first. What it finds
bounds the time that is of interest, and boxes shrink to the motion until then.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.pair_queue import KeyLayout
from abut.core.timing import stage
from abut.errors import CapacityError
from abut.narrow.impact import (
    edge_edge_filter_kernel,
    edge_edge_impact_kernel,
    vertex_face_filter_kernel,
    vertex_face_impact_kernel,
)
from abut.narrow.impact_cubic import edge_edge_cubic_kernel, vertex_face_cubic_kernel
from abut.operands.ccd_operands import EDGE_EDGE, CcdOperands
from abut.options import Solver
from abut.query.sweep_buffers import SweepBuffers, shared_buffers
from abut.query.sweep_listings import Listing, SweepListings

EXPECTED = 64  # candidates of an item, before any are known
FULL = 0.8  # what a range is planned to fill
SAMPLES, SAMPLED = 16, 1 / 32  # runs of leaves asked first, and their share of all
SMALL = 1 << 16  # vertices and edges: fewer are sooner searched than sampled
WORTHWHILE = 0.75  # boxes shrink to motions shorter than this


@dataclass
class SweepPlan(SweepListings):
    """A continuous query over one piece of motion.

    Attributes:
        solver: Which solver finds the times.
        first: Look for the earliest impact only.
    """

    solver: Solver = Solver.CONSERVATIVE
    first: bool = False

    def run(self) -> tuple[int, SweepBuffers]:
        """Find impacts; returns how many there are and the buffers that hold them."""
        buffers = shared_buffers(self.device)
        buffers.forget()
        noted = self._at_once(buffers, self._decide)
        if noted:
            return noted[-1]["impacts"], buffers
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
        noted = self._at_once(buffers, _leave)
        for listing in () if noted else self.listings():
            noted += self._ranges(listing, buffers, 0, _leave)
        return sum(counts["candidates"] for counts in noted)

    @property
    def _expects(self) -> bool:
        """Whether all kinds of pairs may be searched without a wait in between."""
        return self.device.is_cuda and not self.brute and self.fronts is None

    def _at_once(self, buffers: SweepBuffers, decide: Any) -> list[dict[str, int]]:
        """List and decide all there is, one wait; the counts of each kind, none if not all fits."""
        if not self._expects:
            return []
        known = []
        buffers.restart(0)
        for kind, listing in enumerate(self.listings()):
            about = (listing.kind, listing.by_front)
            density = buffers.density.get(about, np.inf)
            if density * listing.item_count > FULL * buffers.most_candidates:
                return []
            known.append((about, listing.item_count))
            if kind > 0:
                buffers.go_on()
            with stage("candidates", self.device):
                listing.launch(0, listing.item_count, buffers.queues)
            decide(listing, buffers)
            buffers.note(kind)
        noted = buffers.notes(len(known))
        if not all(map(buffers.had_room, noted)):
            return []
        for (about, items), counts in zip(known, noted, strict=True):
            buffers.density[about] = max(counts["candidates"] / max(items, 1), 1.0)
        return noted

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
            return UNKNOWN_COUNT if name == "candidates" else room
        return min(buffers.queues.read()[name], room)

    def _sweep(self, listing: Listing, buffers: SweepBuffers) -> Any:
        sweep = CcdOperands()
        sweep.a, sweep.b = listing.sides
        sweep.kind, sweep.sharing, sweep.bits = listing.kind, self.sharing, self.layout.bits
        sweep.min_distance, sweep.tolerance = wp.float64(self.gap), wp.float64(self.tolerance)
        queues = buffers.queues
        sweep.candidates, sweep.possible = queues["candidates"], queues["possible"]
        sweep.impacts, sweep.times = queues["impacts"], buffers.times
        sweep.converged, sweep.best = buffers.converged, buffers.best
        sweep.first = self.first
        return sweep


def _leave(listing: Listing, buffers: SweepBuffers) -> None:
    """Do nothing with candidates."""


def require_memory(layout: KeyLayout) -> None:
    """Refuse meshes whose keys would not fit 63 bits."""
    if layout.width > 61:
        raise CapacityError("these meshes have too many features for one query; split them.")
