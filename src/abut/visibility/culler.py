"""Culler: the passes of a culling over a soup, prepared once and run many times."""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import can_capture
from abut.core.launch import Task
from abut.operands.soup import Soup
from abut.options import Level
from abut.visibility.adjacency import neighbours_of
from abut.visibility.screen import TALLY, FaceRoom, ListScreen
from abut.visibility.settings import Settings, Step
from abut.visibility.state import COLUMNS, conclude_kernel, spread_kernel
from abut.visibility.survivors import Survivors, primitives_of
from abut.visibility.tile_screen import TileScreen


class Culler:
    """The launches of a culling.

    Attributes:
        face_state, object_state: What is known of each, see state; BOTH is pruned.
        counters: A row of numbers for each step, see state.
        milliseconds: Time of each step of the last run.
        remains: What is left.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.steps = settings.steps
        self.face_state = wp.zeros(soup.face_count, dtype=wp.int32, device=self.device)
        self.object_state = wp.zeros(soup.object_count, dtype=wp.int32, device=self.device)
        count = max(soup.face_count, soup.object_count)
        self._hidden = [wp.zeros(count, dtype=wp.int32, device=self.device) for _ in range(2)]
        self._marks: list[Any] = [0.0] * (len(self.steps) + 1)
        if self.device.is_cuda:
            self._marks = [wp.Event(self.device, enable_timing=True) for _ in self._marks]
        self.counters = np.zeros((len(self.steps), COLUMNS), dtype=np.int64)
        self.milliseconds = [0.0] * len(self.steps)
        self.remains = Survivors(soup, settings)
        self.faces = FaceRoom(soup, settings)
        self.screens: dict[int, Any] = {}
        for pixels in {step.pixels for step in self.steps}:
            screen = TileScreen if TileScreen.suits(soup, settings, pixels) else ListScreen
            self.screens[pixels] = screen(soup, settings, pixels, self.faces)
        self._record()

    def run(self) -> None:
        """Look at the soup as it is now."""
        self.faces.aim()
        self._follow_neighbours()
        while True:
            self._launch()
            self.remains.copy_ahead()
            lacks_room = self._lacks_room(self._read())
            if self.remains.read() and not lacks_room:
                break
            self._graph, self._warm = None, False
        self.milliseconds = self._elapsed()

    def _follow_neighbours(self) -> None:
        """Prepare the launches anew where other faces have a common corner than before."""
        if self.settings.within and neighbours_of(self.soup) is not self._neighbours:
            self._record()

    def _launch(self) -> None:
        """Launch everything: one by one at first, then, on CUDA, as one graph."""
        if self._graph is not None:
            wp.capture_launch(self._graph)
        elif self._warm and can_capture(self.device):
            with wp.ScopedCapture(self.device) as capture:
                self._launch_each(captured=True)
            self._graph = capture.graph
            wp.capture_launch(self._graph)
        else:
            self._launch_each(captured=False)
            self._warm = True

    def _launch_each(self, captured: bool) -> None:
        self._tally.zero_()
        self.face_state.zero_()
        self.object_state.zero_()
        self._mark(0, captured)
        for row, tasks in enumerate(self._tasks):
            for task in tasks:
                task.run()
            self._mark(row + 1, captured)
        self.remains.start(self._primitives(self.settings.level))
        if self.device.is_cuda:
            wp.copy(self._tally_host, self._tally)

    def _read(self) -> np.ndarray:
        """The tallies of all drawings; waits for the device."""
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
        tally = self._tally_host.numpy()
        self.counters = tally[: self.counters.size].reshape(self.counters.shape).copy()
        return tally[self.counters.size :].reshape(-1, TALLY)

    def _lacks_room(self, tally: np.ndarray) -> bool:
        """Whether all must be repeated, with more room or on another screen."""
        lacking = False
        for pixels, screen in self.screens.items():
            drawn = np.flatnonzero(np.array(self._drawn_on) == pixels)
            if screen.lacks_room(tally[drawn]):
                lacking = True
                if getattr(screen, "crowded", False):
                    other = ListScreen(self.soup, self.settings, pixels, self.faces)
                    self.screens[pixels] = other
        if lacking:
            self._record()
        return lacking

    def _record(self) -> None:
        """Prepare the launches for the screens and neighbours as they are."""
        self._neighbours = neighbours_of(self.soup) if self.settings.within else None
        most = sum(len(self.screens[step.pixels].parts) for step in self.steps)
        size = self.counters.size + TALLY * most
        self._tally = self._tally_host = wp.zeros(size, dtype=wp.int64, device=self.device)
        if self.device.is_cuda:
            self._tally_host = wp.zeros_like(self._tally, device="cpu", pinned=True)
        free = iter(range(self.counters.size, size, TALLY))
        self._drawn_on: list[int] = []
        self._tasks = [list(self._tasks_of(row, free)) for row in range(len(self.steps))]
        self._graph: Any = None
        self._warm = False

    def _tasks_of(self, row: int, free: Iterator[int]) -> Iterator[Any]:
        """What a step does: draw the view, unless it is there already, look, conclude."""
        step, before = self.steps[row], self.steps[row - 1] if row else None
        if before is not None and before.level is not step.level:
            args = [self.object_state, self.soup.object_of, self.face_state]
            yield Task(spread_kernel, self.soup.face_count, args, self.device)
        seen = before is not None and replace(before, passes=step.passes) == step
        screen = self.screens[step.pixels]
        for part in screen.parts:
            fresh = not seen or len(screen.parts) > 1
            if fresh:
                self._slot = next(free)
                self._drawn_on.append(step.pixels)
            args = [part, self._primitives(step.level), row, step, self._tally, self._slot]
            if fresh:
                yield from screen.expose(*args)
            yield screen.look(*args)
        yield self._conclude(row, step)

    def _primitives(self, level: Level) -> Any:
        states = self.object_state, self.face_state
        return primitives_of(self.soup, level, states, self._hidden)

    def _conclude(self, row: int, step: Step) -> Task:
        args = [step.passes, step.keep, row, self._primitives(step.level), self._tally]
        faces = step.level is Level.FACE
        count = self.soup.face_count if faces else self.soup.object_count
        return Task(conclude_kernel, count, args, self.device)

    def _mark(self, i: int, captured: bool) -> None:
        if self.device.is_cpu:
            self._marks[i] = time.perf_counter()
        else:
            wp.get_stream(self.device).record_event(self._marks[i], external=captured)

    def _elapsed(self) -> list[float]:
        if self.device.is_cpu:
            return [1e3 * (stop - start) for start, stop in pairwise(self._marks)]
        return [wp.get_event_elapsed_time(*ends) for ends in pairwise(self._marks)]
