"""Culler: the passes of a culling over a soup, recorded once and run many times.

HostCuller does the same with passes that another backend answers.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import Task
from abut.core.plan import Plan, Stage
from abut.errors import OptionError
from abut.operands.soup import Soup
from abut.options import Level
from abut.visibility.adjacency import neighbours_of
from abut.visibility.raster_target import DRAW_COUNTS, Draw, FragmentTarget, SetupBuffers
from abut.visibility.settings import CullStep, Settings, View
from abut.visibility.state import (
    BOTH,
    COLUMNS,
    FIRST,
    SECOND,
    inherit_state_kernel,
    make_primitives,
    update_state_kernel,
)
from abut.visibility.survivors import Survivors
from abut.visibility.tile_target import TileTarget


class Culler:
    """Culls a soup with kernels, on the CPU or on CUDA.

    Attributes:
        steps: The passes, in order.
        counters: (steps, COLUMNS) counters of the last run, see state.
        milliseconds: Time of each step of the last run.
        survivors: Faces and objects that are not pruned.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.steps = settings.steps
        count = max(soup.face_count, soup.object_count)
        self._states = [self._zeros(n) for n in (soup.object_count, soup.face_count)]
        self._occluded = [self._zeros(count) for _ in range(2)]
        self._marks: list[Any] = [0.0] * (len(self.steps) + 1)
        if self.device.is_cuda:
            self._marks = [wp.Event(self.device, enable_timing=True) for _ in self._marks]
        self.counters = np.zeros((len(self.steps), COLUMNS), dtype=np.int64)
        self.milliseconds = [0.0] * len(self.steps)
        self.survivors = Survivors(soup, settings)
        self.setup = SetupBuffers(soup, settings)
        self.targets: dict[int, Any] = {}
        for pixels in {step.pixels for step in self.steps}:
            target = TileTarget if TileTarget.suits(soup, settings, pixels) else FragmentTarget
            self.targets[pixels] = target(soup, settings, pixels, self.setup)
        steps: dict[str, Any] = {"clear": self._clear, "read": self._read, "accept": self._accept}
        self._plan = Plan(self.survivors.queues, self._stages, graph=True, **steps)
        self._neighbours: Any = None
        self._distance = settings.distance_in(soup)

    def run(self) -> None:
        """Cull the soup as it is now."""
        self.setup.update_views()
        distance = self.settings.distance_in(self.soup)
        changed = distance != self._distance
        if self.settings.within and neighbours_of(self.soup) is not self._neighbours:
            changed = True
        if changed:
            self._distance = distance
            self._plan.forget()
        self._plan.run(self.survivors.copy_ahead)
        self.milliseconds = self._elapsed()

    @property
    def object_state(self) -> wp.array | None:
        """Sets of objects after the passes over objects; None where these keep no sets."""
        return self._states[0] if keeps_object_sets(self.steps) else None

    def primitives(self, level: Level) -> Any:
        """The struct for kernels."""
        return make_primitives(self.soup, level, self._states, self._occluded)

    def _stages(self) -> Iterator[Stage]:
        """All passes, then the survivors."""
        self._neighbours = neighbours_of(self.soup) if self.settings.within else None
        self._allocate_counts()
        runs = [partial(self._mark, 0)]
        for row in range(len(self.steps)):
            runs += [*self._step(row), partial(self._mark, row + 1)]
        yield from (("cull", run) for run in runs)
        yield from self.survivors.stages(self.primitives(self.settings.level))
        if self.device.is_cuda:
            yield "cull", partial(wp.copy, self._counts_host, self._counts)

    def _allocate_counts(self) -> None:
        """Counters of all steps, then the counts of all draws."""
        draws = sum(len(self.targets[step.pixels].parts) for step in self.steps)
        self._counts = wp.zeros(
            self.counters.size + DRAW_COUNTS * draws, dtype=wp.int64, device=self.device
        )
        self._counts_host = self._counts
        if self.device.is_cuda:
            self._counts_host = wp.zeros_like(self._counts, device="cpu", pinned=True)
        self._drawn_on: list[int] = []  # pixels of the target of each draw

    def _step(self, row: int) -> Iterator[Callable[[], Any]]:
        """Draw the view, unless the step before drew it; test occlusion; update the states."""
        step, before = self.steps[row], self.steps[row - 1] if row else None
        if before is not None and before.level is not step.level:
            args = [self._states[0], self.soup.object_of, self._states[1]]
            yield Task(inherit_state_kernel, self.soup.face_count, args, self.device).run
        drawn = before is not None and replace(before, passes=step.passes) == step
        target = self.targets[step.pixels]
        for part in target.parts:
            fresh = not drawn or len(target.parts) > 1
            if fresh:
                self._drawn_on.append(step.pixels)
            draw = self._draw(part, row, step)
            if fresh:
                yield from target.rasterise(draw)
            yield target.test_occlusion(draw)
        yield self._update_states(row, step)

    def _draw(self, part: Any, row: int, step: CullStep) -> Draw:
        """The newest draw, as a step sees it."""
        first = self.counters.size + DRAW_COUNTS * (len(self._drawn_on) - 1)
        counts = self._counts[first : first + DRAW_COUNTS]
        return Draw(part, self.primitives(step.level), row, step, self._counts, counts)

    def _update_states(self, row: int, step: CullStep) -> Callable[[], Any]:
        args = [step.passes, step.keep, row, self.primitives(step.level), self._counts]
        faces = step.level is Level.FACE
        count = self.soup.face_count if faces else self.soup.object_count
        return Task(update_state_kernel, count, args, self.device).run

    def _clear(self) -> None:
        self._counts.zero_()
        for state in self._states:
            state.zero_()
        self.survivors.clear()

    def _read(self) -> dict[str, int]:
        found = self.survivors.read()
        counts = self._counts_host.numpy()
        self.counters = counts[: self.counters.size].reshape(self.counters.shape).copy()
        self._draw_counts = counts[self.counters.size :].reshape(-1, DRAW_COUNTS)
        return found

    def _accept(self, _counts: dict[str, int]) -> bool:
        """False when a target had to grow, or to be replaced by another kind."""
        grown = False
        for pixels, target in self.targets.items():
            drawn = np.flatnonzero(np.array(self._drawn_on) == pixels)
            if target.grow(self._draw_counts[drawn]):
                grown = True
                if target.overfull:
                    other = FragmentTarget(self.soup, self.settings, pixels, self.setup)
                    self.targets[pixels] = other
        if grown:
            self._plan.forget()
        return not grown

    def _zeros(self, count: int) -> wp.array:
        return wp.zeros(count, dtype=wp.int32, device=self.device)

    def _mark(self, i: int) -> None:
        """Note the time before step i."""
        if self.device.is_cpu:
            self._marks[i] = time.perf_counter()
        else:
            stream = wp.get_stream(self.device)
            stream.record_event(self._marks[i], external=stream.is_capturing)

    def _elapsed(self) -> list[float]:
        if self.device.is_cpu:
            return [1e3 * (stop - start) for start, stop in pairwise(self._marks)]
        return [wp.get_event_elapsed_time(*ends) for ends in pairwise(self._marks)]


@dataclass(frozen=True)
class VisibilityQuery:
    """One pass: which primitives are fully visible against the primitives drawn before them?

    All faces of one object are tested, then drawn, unless ``settings.within``: then each face is
    drawn by itself.
    """

    level: Level  # whether the primitives are objects or faces
    view: View
    forward: bool  # in ascending order, else in descending order
    tested: np.ndarray  # (primitives,) bool, primitives to test
    drawn: np.ndarray  # (primitives,) bool, primitives to draw


Backend = Callable[[VisibilityQuery], tuple[np.ndarray, int]]


class HostCuller:
    """Culls like Culler, with passes answered by ``backend``.

    The backend returns (primitives,) bool, fully visible, and the number of faces rasterised.
    """

    def __init__(self, soup: Soup, settings: Settings, backend: Backend) -> None:
        if settings.free:
            raise OptionError("passes are drawn in some order; use order='drawn'.")
        self.soup, self.settings, self.backend = soup, settings, backend
        self.steps = settings.steps
        self.survivors = Survivors(soup, settings)
        self.counters = np.zeros((len(self.steps), COLUMNS), dtype=np.int64)
        self.milliseconds = [0.0] * len(self.steps)
        self.object_state: wp.array | None = None

    def run(self) -> None:
        """Cull the soup as it is now."""
        objects = np.zeros(self.soup.object_count, dtype=np.int32)
        faces = np.zeros(self.soup.face_count, dtype=np.int32)
        object_of = self.soup.object_of.numpy()
        for row, step in enumerate(self.steps):
            start = time.perf_counter()
            if step.level is Level.FACE and row and self.steps[row - 1].level is Level.OBJECT:
                faces[objects[object_of] == BOTH] = BOTH
            state = faces if step.level is Level.FACE else objects
            self.counters[row] = self._step(step, state)
            self.milliseconds[row] = 1e3 * (time.perf_counter() - start)
        device = self.soup.device
        states = [wp.array(state, device=device) for state in (objects, faces)]
        if keeps_object_sets(self.steps):
            self.object_state = states[0]
        none = wp.zeros(0, dtype=wp.int32, device=device)
        primitives = make_primitives(self.soup, self.settings.level, states, (none, none))
        Plan(
            self.survivors.queues,
            lambda: self.survivors.stages(primitives),
            clear=self.survivors.clear,
            read=self.survivors.read,
        ).run()

    def _step(self, step: CullStep, state: np.ndarray) -> list[int]:
        """Passes of one step; updates the states and returns a row of counters."""
        before = state.copy()
        queried = np.zeros(len(state), dtype=bool)
        face_count = 0
        for number, occluding in ((FIRST, SECOND), (SECOND, FIRST)):
            if not step.passes & number:
                continue
            # Both passes of one step start from the states before it.
            tested = (before & number == 0) & (before != BOTH)
            drawn = (before & occluding == 0) & (before != BOTH)
            if self.settings.conservative and step.passes == BOTH and number == SECOND:
                tested &= state == FIRST  # FAR §4.2.1: all others stay, whatever this pass shows
            query = VisibilityQuery(step.level, step.view, number == FIRST, tested, drawn)
            visible, drawn_count = self.backend(query)
            state[tested & visible] |= number
            face_count += drawn_count
            queried |= tested
        sizes = [int((state == s).sum()) for s in (BOTH, FIRST, SECOND, 0)]
        if not step.keep:
            state[state != BOTH] = 0
        return [int(queried.sum()), face_count, 0, *sizes]


def keeps_object_sets(steps: list[CullStep]) -> bool:
    """Whether passes over objects leave the sets of Quick-CULLIDE."""
    return any(step.level is Level.OBJECT and step.keep for step in steps)
