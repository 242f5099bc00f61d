"""Screens: where views are drawn, and what room that takes.

A tally of four numbers comes back for each drawing; see ``lacks_room``.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.errors import CapacityError
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
from abut.visibility.settings import Settings, Step

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


class Screen:
    """What all screens know."""

    def __init__(self, soup: Soup, settings: Settings, views: wp.array) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.views = views
        self.rows = wp.empty(ROWS * soup.face_count, dtype=wp.vec4f, device=self.device)
        self.boxes = wp.empty(soup.face_count, dtype=wp.vec4i, device=self.device)

    def view_of(self, step: Step) -> list[Any]:
        """The map of a step's view, as kernels take it."""
        return [self.views, self.settings.views.index(step.view)]

    def setup(
        self, canvas: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> Task:
        """Map the faces."""
        args = [self.soup.points, self.soup.faces, primitives, *self.view_of(step), row]
        args += [canvas, tally, tally[slot + 2 : slot + 3]]
        count = self.soup.face_count
        return Task(setup_kernel, count, args, self.device, grain=FACES_PER_SLICE)

    def rule_of(self, step: Step) -> Any:
        """What counts as being in the way."""
        rule = Rule()
        rule.passes, rule.free, rule.within = step.passes, self.settings.free, self.settings.within
        rule.touching = self.settings.within and not self.settings.conservative
        if self.settings.within:
            rule.corner_ids = neighbours_of(self.soup).corner_ids
        return rule


class ListScreen(Screen):
    """Fragments listed by pixel, in as many bands as there is room for."""

    def __init__(self, soup: Soup, settings: Settings, views: wp.array) -> None:
        super().__init__(soup, settings, views)
        pixels = settings.pixels
        self.band_count = -(-pixels * pixels // MOST_PIXELS_AT_ONCE)
        self.fragment_room = 4 * soup.face_count + pixels * pixels // 4
        self.item_room = 4 * soup.face_count + pixels * pixels // 64
        self._make_room()

    def lacks_room(self, tally: np.ndarray) -> bool:
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
        self._make_room()
        return True

    def expose(
        self, canvas: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> list[Any]:
        """Draw a view."""
        device, faces, view = self.device, self.soup.face_count, self.view_of(step)
        tasks = [self.setup(canvas, primitives, row, step, tally, slot), Clear(canvas)]
        owners, pixels = self.soup.object_of, canvas.starts.shape[0] - 1
        crowded = Task(crowded_kernel, pixels, [canvas], device, grain=PIXELS_PER_SLICE)
        if device.is_cpu:
            args = [*view, owners, canvas]
            count = Task(count_faces_kernel, faces, args, device, grain=FACES_PER_SLICE)
            args = [*view, canvas]
            fill = Task(fill_faces_kernel, faces, args, device, grain=FACES_PER_SLICE)
            return [*tasks, count, crowded, Scan(canvas), fill]
        items, large = PairQueue(), PairQueue()
        items.keys, items.count = self._items, tally[slot : slot + 1]
        large.keys, large.count = self._large, tally[slot + 1 : slot + 2]
        tasks.append(Task(list_kernel, faces, [canvas, items, large], device))
        tasks.append(Task(list_large_kernel, EVERYTHING, [canvas, large, items], device))
        tasks.append(Task(count_items_kernel, EVERYTHING, [*view, items, owners, canvas], device))
        tasks += [crowded, Scan(canvas)]
        tasks.append(Task(fill_items_kernel, EVERYTHING, [*view, items, canvas], device))
        return tasks

    def look(
        self, canvas: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> Task:
        """Find out what is hidden."""
        count = canvas.starts.shape[0] - 1
        totals = [tally, tally[slot + 3 : slot + 4]]
        if self.device.is_cpu and self.settings.free and not self.settings.within:
            args = [row, canvas, primitives, *totals]
            return Task(look_sorted_kernel, count, args, self.device, grain=PIXELS_PER_SLICE)
        args = [canvas, self.rule_of(step), row, primitives, *totals]
        if self.device.is_cuda:
            return Task(look_fragments_kernel, EVERYTHING, args, self.device)
        return Task(look_pixels_kernel, count, args, self.device, grain=PIXELS_PER_SLICE)

    def _make_room(self) -> None:
        device, pixels = self.device, self.settings.pixels
        rows = whole_blocks(-(-pixels // self.band_count))
        bands = [(first, min(first + rows, pixels)) for first in range(0, pixels, rows)]
        pixel_count = rows * whole_blocks(pixels) + 1
        on_cuda = self.item_room if device.is_cuda else 0
        try:
            self._counts = wp.zeros(pixel_count, dtype=wp.int32, device=device)
            self._owners = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._starts = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._fragments = wp.empty(self.fragment_room, dtype=wp.vec4f, device=device)
            self._items = wp.empty(on_cuda, dtype=wp.int64, device=device)
            self._large = wp.empty(on_cuda, dtype=wp.int64, device=device)
        except Exception as error:
            raise CapacityError(
                f"{self.fragment_room} fragments do not fit on {device}; ask for fewer pixels."
            ) from error
        self.parts = [self._canvas(band) for band in bands]

    def _canvas(self, band: tuple[int, int]) -> Any:
        canvas = Canvas()
        width = whole_blocks(self.settings.pixels)
        count = whole_blocks(band[1] - band[0]) * width + 1
        canvas.rows, canvas.boxes, canvas.fragments = self.rows, self.boxes, self._fragments
        canvas.counts, canvas.starts = self._counts[:count], self._starts[:count]
        canvas.owners = self._owners[:count]
        canvas.band, canvas.tiles = wp.vec2i(*band), width // BLOCK
        canvas.within = self.settings.within
        return canvas


def whole_blocks(pixels: int) -> int:
    """At least so many pixels, in whole blocks."""
    return -(-pixels // BLOCK) * BLOCK
