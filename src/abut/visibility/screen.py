"""Screens: where views are drawn, and what room that takes.

A tally of numbers comes back for each drawing; see ``lacks_room``.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import PairQueue
from abut.errors import CapacityError
from abut.operands.soup import Soup
from abut.visibility.adjacency import neighbours_of
from abut.visibility.cover import BLOCK
from abut.visibility.depth_order import look_sorted_kernel
from abut.visibility.fragment import ROWS
from abut.visibility.fragment_lists import (
    Canvas,
    count_faces_kernel,
    fill_faces_kernel,
    room_kernel,
)
from abut.visibility.items import (
    Items,
    count_items_kernel,
    fill_items_kernel,
    list_large_kernel,
    setup_items_kernel,
)
from abut.visibility.lists import look_fragments_kernel, look_pixels_kernel
from abut.visibility.occlusion import Rule
from abut.visibility.settings import Settings, Step
from abut.visibility.setup import Shown, setup_kernel
from abut.visibility.view import ViewMap, map_of

MOST_PIXELS_AT_ONCE = 1 << 24
MOST_FRAGMENTS = {True: 1 << 29, False: 1 << 27}  # at once, on CUDA and on the CPU
TALLY = 5  # numbers a drawing
GROWTH = 1.25
FACES_PER_SLICE = 1024
PIXELS_PER_SLICE = 1 << 14


class Clear:
    """Nobody has come anywhere."""

    def __init__(self, comers: wp.array) -> None:
        self.comers = comers

    def run(self) -> None:
        """Forget who came."""
        self.comers.zero_()


class FaceRoom:
    """Maps of all views, and room for the faces as one of them shows them.

    Attributes:
        aims: View and pixels of each map.
        maps, maps_host: The maps, and where they are written.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        device = soup.device
        self.soup, self.settings = soup, settings
        self.aims = list(dict.fromkeys((step.view, step.pixels) for step in settings.steps))
        self.maps = self.maps_host = wp.zeros(len(self.aims), dtype=ViewMap, device=device)
        if device.is_cuda:
            self.maps_host = wp.zeros_like(self.maps, device="cpu", pinned=True)
        self._aimed_at: np.ndarray | None = None
        self.rows = wp.empty(ROWS * soup.face_count, dtype=wp.vec4f, device=device)
        self.boxes = wp.empty(soup.face_count, dtype=wp.vec4i, device=device)

    def aim(self) -> None:
        """Let the views show what there is, if that has changed."""
        if np.array_equal(self.soup.bounds, self._aimed_at):
            return
        self._aimed_at = self.soup.bounds
        s, host = self.settings, self.maps_host.numpy()
        how = {"conservative": s.conservative, "distance": s.distance}
        for i, (view, pixels) in enumerate(self.aims):
            host[i] = map_of(view, self.soup.bounds, pixels, **how)
        if self.maps_host is not self.maps:
            wp.copy(self.maps, self.maps_host)


class Screen:
    """A viewport of so many pixels, and faces as it shows them."""

    def __init__(self, soup: Soup, settings: Settings, pixels: int, faces: FaceRoom) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.pixels, self.faces = pixels, faces

    def view_of(self, step: Step) -> list[Any]:
        """The map of a step's view, as kernels take it."""
        return [self.faces.maps, self.faces.aims.index((step.view, step.pixels))]

    def shown(self, band: tuple[int, int]) -> Any:
        """Room for the faces of a band."""
        shown = Shown()
        shown.rows, shown.boxes, shown.band = self.faces.rows, self.faces.boxes, wp.vec2i(*band)
        return shown

    def setup(
        self, part: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> Task:
        """Map the faces."""
        args = [self.soup.points, self.soup.faces, primitives, *self.view_of(step), row]
        args += [part.shown, tally, tally[slot + 2 : slot + 3]]
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

    def __init__(self, soup: Soup, settings: Settings, pixels: int, faces: FaceRoom) -> None:
        super().__init__(soup, settings, pixels, faces)
        self.band_count = -(-pixels * pixels // MOST_PIXELS_AT_ONCE)
        self.fragment_room = 4 * soup.face_count + pixels * pixels // 4
        self.item_room = 4 * soup.face_count + pixels * pixels // 64
        self._make_room()

    def lacks_room(self, tally: np.ndarray) -> bool:
        """Make room where there was too little: (blocks, large faces, area, fragments, small)."""
        items, _, area, fragments, _ = (int(n) for n in tally.max(axis=0, initial=0))
        too_many = area > UNKNOWN_COUNT or fragments > MOST_FRAGMENTS[self.device.is_cuda]
        if too_many and self.band_count < self.pixels:
            self.band_count = min(2 * self.band_count, self.pixels)
        elif area > UNKNOWN_COUNT:
            raise CapacityError(f"a row of pixels has {area} fragments; ask for fewer pixels.")
        elif items > self.item_room:
            self.item_room = int(GROWTH * items)
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
        owners, total = self.soup.object_of, tally[slot + 3 : slot + 4]
        pixels, grain = canvas.starts.shape[0], FACES_PER_SLICE
        room = Task(room_kernel, pixels, [canvas, total], device, grain=PIXELS_PER_SLICE)
        if device.is_cpu:
            set_up = self.setup(canvas, primitives, row, step, tally, slot)
            count = Task(count_faces_kernel, faces, [*view, owners, canvas], device, grain=grain)
            fill = Task(fill_faces_kernel, faces, [*view, canvas], device, grain=grain)
            return [set_up, Clear(canvas.owners), count, room, fill]
        lists = Items()
        keys = (self._items, self._large, self._small)
        for k, (name, room_for) in enumerate(zip(("blocks", "large", "small"), keys, strict=True)):
            queue = PairQueue()
            at = slot + (k if k < 2 else 4)
            queue.keys, queue.count = room_for, tally[at : at + 1]
            setattr(lists, name, queue)
        args = [self.soup.points, self.soup.faces, primitives, *view, row]
        args += [canvas, tally, tally[slot + 2 : slot + 3], lists]
        blocks = lists.blocks
        return [
            Clear(canvas.owners),
            Task(setup_items_kernel, faces, args, device),
            Task(list_large_kernel, UNKNOWN_COUNT, [*view, canvas, lists.large, blocks], device),
            Task(count_items_kernel, UNKNOWN_COUNT, [*view, blocks, owners, canvas], device),
            room,
            Task(fill_items_kernel, UNKNOWN_COUNT, [*view, lists, canvas], device),
        ]

    def look(
        self, canvas: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> Task:
        """Find out what is hidden."""
        count, total = canvas.starts.shape[0], tally[slot + 3 : slot + 4]
        if self.device.is_cpu and self.settings.free and not self.settings.within:
            args = [total, row, canvas, primitives, tally]
            return Task(look_sorted_kernel, count, args, self.device, grain=PIXELS_PER_SLICE)
        args = [canvas, self.rule_of(step), total, row, primitives, tally]
        if self.device.is_cuda:
            return Task(look_fragments_kernel, UNKNOWN_COUNT, args, self.device)
        return Task(look_pixels_kernel, count, args, self.device, grain=PIXELS_PER_SLICE)

    def _make_room(self) -> None:
        device, pixels = self.device, self.pixels
        rows = whole_blocks(-(-pixels // self.band_count))
        bands = [(first, min(first + rows, pixels)) for first in range(0, pixels, rows)]
        pixel_count = rows * whole_blocks(pixels)
        on_cuda = self.item_room if device.is_cuda else 0
        try:
            self._counts = wp.zeros(pixel_count, dtype=wp.int32, device=device)
            self._owners = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._starts = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._stops = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._fragments = wp.empty(self.fragment_room, dtype=wp.vec4f, device=device)
            self._items = wp.empty(on_cuda, dtype=wp.int64, device=device)
            faces = self.soup.face_count if device.is_cuda else 0
            self._large = wp.empty(faces, dtype=wp.int64, device=device)
            self._small = wp.empty(faces, dtype=wp.int64, device=device)
        except Exception as error:
            raise CapacityError(
                f"{self.fragment_room} fragments do not fit on {device}; ask for fewer pixels."
            ) from error
        self.parts = [self._canvas(band) for band in bands]

    def _canvas(self, band: tuple[int, int]) -> Any:
        canvas = Canvas()
        width = whole_blocks(self.pixels)
        count = whole_blocks(band[1] - band[0]) * width
        canvas.shown, canvas.fragments = self.shown(band), self._fragments
        canvas.counts, canvas.starts = self._counts[:count], self._starts[:count]
        canvas.owners, canvas.stops = self._owners[:count], self._stops[:count]
        canvas.tiles = width // BLOCK
        canvas.within = self.settings.within
        return canvas


def whole_blocks(pixels: int) -> int:
    """At least so many pixels, in whole blocks."""
    return -(-pixels // BLOCK) * BLOCK
