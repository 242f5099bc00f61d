"""Culler: the passes of a culling over a soup, prepared once and run many times."""

import time
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from abut.errors import CapacityError
from abut.options import Level
from abut.pairs import PairQueue
from abut.runtime import EVERYTHING, Task
from abut.soup import Soup
from abut.visibility.depth_order import look_sorted_kernel
from abut.visibility.fragment import ROWS
from abut.visibility.lists import Rule, look_fragments_kernel, look_pixels_kernel
from abut.visibility.neighbours import neighbours_of
from abut.visibility.raster import (
    BLOCK,
    Canvas,
    count_faces_kernel,
    count_items_kernel,
    crowded_kernel,
    fill_faces_kernel,
    fill_items_kernel,
    list_kernel,
    list_large_kernel,
    setup_kernel,
)
from abut.visibility.remains import Remains, primitives_of
from abut.visibility.settings import Settings, Step
from abut.visibility.state import COLUMNS, conclude_kernel, spread_kernel
from abut.visibility.view import ViewMap, map_of

MOST_PIXELS_AT_ONCE = 1 << 24
MOST_FRAGMENTS = {True: 1 << 29, False: 1 << 27}  # at once, on CUDA and on the CPU
GROWTH = 1.25
FACES_PER_SLICE = 1024
PIXELS_PER_SLICE = 1 << 14


class Clear:
    """Nobody has come to any pixel."""

    def __init__(self, canvas: Any) -> None:
        self.canvas = canvas

    def run(self) -> None:
        """Forget the owners."""
        self.canvas.owners.zero_()


class Scan:
    """Where each pixel's fragments start."""

    def __init__(self, canvas: Any) -> None:
        self.canvas = canvas

    def run(self) -> None:
        """Sum the counts."""
        wp.utils.array_scan(self.canvas.counts, self.canvas.starts, inclusive=False)


class Culler:
    """The launches of a culling.

    Attributes:
        face_state, object_state: What is known of each, see state; BOTH is pruned.
        counters: A row of numbers for each step, see state.
        milliseconds: Time of each step of the last run.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.steps = settings.steps
        self.face_state = wp.zeros(soup.face_count, dtype=wp.int32, device=self.device)
        self.object_state = wp.zeros(soup.object_count, dtype=wp.int32, device=self.device)
        self.views = wp.zeros(len(settings.views), dtype=ViewMap, device=self.device)
        self._views_host = self.views
        if self.device.is_cuda:
            self._views_host = wp.zeros_like(self.views, device="cpu", pinned=True)
        self._marks: list[Any] = [0.0] * (len(self.steps) + 1)
        if self.device.is_cuda:
            self._marks = [wp.Event(self.device, enable_timing=True) for _ in self._marks]
        self._graph: Any = None
        self._warm = False
        pixels = settings.pixels
        self.band_count = -(-pixels * pixels // MOST_PIXELS_AT_ONCE)
        self.fragment_room = 4 * soup.face_count + pixels * pixels // 4
        self.item_room = 4 * soup.face_count + pixels * pixels // 64
        self.counters = np.zeros((len(self.steps), COLUMNS), dtype=np.int64)
        self.remains = Remains(soup, settings)
        self.milliseconds = [0.0] * len(self.steps)
        self._record()

    def run(self) -> None:
        """Look at the soup as it is now."""
        self._aim()
        while True:
            self._launch()
            lacks_room = self._lacks_room(self._read())
            if self.remains.read() and not lacks_room:
                break
            self._graph, self._warm = None, False
        self.milliseconds = self._elapsed()

    def _launch(self) -> None:
        """Launch everything: one by one at first, then, on CUDA, as one graph."""
        if self._graph is not None:
            wp.capture_launch(self._graph)
        elif self._warm:
            with wp.ScopedCapture(self.device) as capture:
                self._launch_each(captured=True)
            self._graph = capture.graph
            wp.capture_launch(self._graph)
        else:
            self._launch_each(captured=False)
            self._warm = self.device.is_cuda and wp.is_mempool_enabled(self.device)

    def _launch_each(self, captured: bool) -> None:
        self._tally.zero_()
        self.face_state.zero_()
        self.object_state.zero_()
        self._mark(0, captured)
        for row, tasks in enumerate(self._tasks):
            for task in tasks:
                task.run()
            self._mark(row + 1, captured)
        self.remains.start(self._last)
        if self.device.is_cuda:
            wp.copy(self._tally_host, self._tally)

    def _read(self) -> np.ndarray:
        """The numbers that the device has put down; waits for it."""
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
        tally = self._tally_host.numpy()
        self.counters = tally[: self.counters.size].reshape(self.counters.shape).copy()
        return tally[self.counters.size :].reshape(-1, 4)

    def _lacks_room(self, tally: np.ndarray) -> bool:
        """Make room where there was too little: (items, large faces, area, fragments) of each."""
        items, large, area = (int(n) for n in tally[:, :3].max(axis=0, initial=0))
        fragments = int(tally[:, 3].max(initial=0))
        too_many = area > EVERYTHING or fragments > MOST_FRAGMENTS[self.device.is_cuda]
        if too_many and self.band_count < self.settings.pixels:
            self.band_count = min(2 * self.band_count, self.settings.pixels)
        elif area > EVERYTHING:
            raise CapacityError(f"a row of pixels has {area} fragments; ask for fewer pixels.")
        elif items > self.item_room or large > self.item_room:
            self.item_room = int(GROWTH * max(items, large))
        elif fragments > self.fragment_room:
            self.fragment_room = int(GROWTH * fragments)
        else:
            return False
        self._record()
        return True

    def _aim(self) -> None:
        """Let the views show what there is."""
        s = self.settings
        how = {"conservative": s.conservative, "distance": s.distance}
        maps = self._views_host.numpy()
        for i, view in enumerate(s.views):
            maps[i] = map_of(view, self.soup.bounds, s.pixels, **how)
        if self.device.is_cuda:
            wp.copy(self.views, self._views_host)

    def _record(self) -> None:
        """Prepare the launches for the room there is."""
        pixels = self.settings.pixels
        rows = _whole_blocks(-(-pixels // self.band_count))
        bands = [(first, min(first + rows, pixels)) for first in range(0, pixels, rows)]
        size = self.counters.size + 4 * len(self.steps) * len(bands)
        self._tally = wp.zeros(size, dtype=wp.int64, device=self.device)
        self._tally_host = self._tally
        if self.device.is_cuda:
            self._tally_host = wp.zeros_like(self._tally, device="cpu", pinned=True)
        self._make_room(rows * _whole_blocks(pixels))
        self._tasks: list[list[Any]] = []
        self._graph, self._warm = None, False
        self._last = self._primitives(self.settings.level)
        free = iter(range(self.counters.size, size, 4))
        seen: tuple[Any, ...] = ()
        for row, step in enumerate(self.steps):
            fresh = (step.level, step.view) != seen
            seen = (step.level, step.view)
            tasks = list(self._before(row, step))
            for band in bands:
                canvas, slot = self._canvas(band), next(free)
                if fresh or len(bands) > 1:
                    tasks += self._expose(canvas, row, step, slot)
                tasks.append(self._look(canvas, row, step, slot))
            tasks.append(self._conclude(row, step))
            self._tasks.append(tasks)

    def _make_room(self, pixel_count: int) -> None:
        device, faces = self.device, self.soup.face_count
        on_cuda = self.item_room if device.is_cuda else 0
        try:
            self._rows = wp.empty(ROWS * faces, dtype=wp.vec4f, device=device)
            self._boxes = wp.empty(faces, dtype=wp.vec4i, device=device)
            self._counts = wp.zeros(pixel_count + 1, dtype=wp.int32, device=device)
            self._owners = wp.empty(pixel_count + 1, dtype=wp.int32, device=device)
            self._starts = wp.empty(pixel_count + 1, dtype=wp.int32, device=device)
            self._fragments = wp.empty(self.fragment_room, dtype=wp.vec4f, device=device)
            self._items = wp.empty(on_cuda, dtype=wp.int64, device=device)
            self._large = wp.empty(on_cuda, dtype=wp.int64, device=device)
        except Exception as error:
            raise CapacityError(
                f"{self.fragment_room} fragments do not fit on {device}; ask for fewer pixels."
            ) from error
        count = max(faces, self.soup.object_count)
        self._hidden = [wp.zeros(count, dtype=wp.int32, device=device) for _ in range(2)]

    def _canvas(self, band: tuple[int, int]) -> Any:
        canvas = Canvas()
        width = _whole_blocks(self.settings.pixels)
        count = _whole_blocks(band[1] - band[0]) * width + 1
        canvas.rows, canvas.boxes, canvas.fragments = self._rows, self._boxes, self._fragments
        canvas.counts, canvas.starts = self._counts[:count], self._starts[:count]
        canvas.owners = self._owners[:count]
        canvas.band, canvas.tiles = wp.vec2i(*band), width // BLOCK
        canvas.within = self.settings.within
        return canvas

    def _primitives(self, level: Level) -> Any:
        states = self.object_state, self.face_state
        return primitives_of(self.soup, level, states, self._hidden)

    def _before(self, row: int, step: Step) -> Any:
        """Faces inherit what is known of their objects."""
        if row and self.steps[row - 1].level is not step.level:
            args = [self.object_state, self.soup.object_of, self.face_state]
            yield Task(spread_kernel, self.soup.face_count, args, self.device)

    def _expose(self, canvas: Any, row: int, step: Step, slot: int) -> list[Any]:
        """Draw a view."""
        device, faces = self.device, self.soup.face_count
        view = [self.views, self.settings.views.index(step.view)]
        args = [self.soup.points, self.soup.faces, self._primitives(step.level), *view, row]
        args += [canvas, self._tally, self._tally[slot + 2 : slot + 3]]
        grain = FACES_PER_SLICE
        tasks: list[Any] = [Task(setup_kernel, faces, args, device, grain=grain), Clear(canvas)]
        owners, pixels = self.soup.object_of, canvas.starts.shape[0] - 1
        crowded = Task(crowded_kernel, pixels, [canvas], device, grain=PIXELS_PER_SLICE)
        if device.is_cpu:
            count = Task(count_faces_kernel, faces, [*view, owners, canvas], device, grain=grain)
            fill = Task(fill_faces_kernel, faces, [*view, canvas], device, grain=grain)
            return [*tasks, count, crowded, Scan(canvas), fill]
        items, large = PairQueue(), PairQueue()
        items.keys, items.count = self._items, self._tally[slot : slot + 1]
        large.keys, large.count = self._large, self._tally[slot + 1 : slot + 2]
        tasks.append(Task(list_kernel, faces, [canvas, items, large], device))
        tasks.append(Task(list_large_kernel, EVERYTHING, [canvas, large, items], device))
        tasks.append(Task(count_items_kernel, EVERYTHING, [*view, items, owners, canvas], device))
        tasks += [crowded, Scan(canvas)]
        tasks.append(Task(fill_items_kernel, EVERYTHING, [*view, items, canvas], device))
        return tasks

    def _look(self, canvas: Any, row: int, step: Step, slot: int) -> Task:
        """Find out what is hidden."""
        count = canvas.starts.shape[0] - 1
        totals = [self._tally, self._tally[slot + 3 : slot + 4]]
        primitives = self._primitives(step.level)
        if self.device.is_cpu and self.settings.free and not self.settings.within:
            args = [row, canvas, primitives, *totals]
            return Task(look_sorted_kernel, count, args, self.device, grain=PIXELS_PER_SLICE)
        rule = Rule()
        rule.passes, rule.free, rule.within = step.passes, self.settings.free, self.settings.within
        rule.touching = self.settings.within and not self.settings.conservative
        if self.settings.within:
            rule.corner_ids = neighbours_of(self.soup).corner_ids
        args = [canvas, rule, row, primitives, *totals]
        if self.device.is_cuda:
            return Task(look_fragments_kernel, EVERYTHING, args, self.device)
        return Task(look_pixels_kernel, count, args, self.device, grain=PIXELS_PER_SLICE)

    def _conclude(self, row: int, step: Step) -> Task:
        primitives = self._primitives(step.level)
        args = [step.passes, step.keep, row, primitives, self._tally]
        count = self.soup.object_count
        if step.level is Level.FACE:
            count = self.soup.face_count
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


def _whole_blocks(pixels: int) -> int:
    """At least so many pixels, in whole blocks."""
    return -(-pixels // BLOCK) * BLOCK
