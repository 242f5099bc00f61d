"""Raster targets: where views are drawn, the buffers of each, and the launches that fill them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import PairQueue
from abut.errors import CapacityError
from abut.operands.soup import Soup
from abut.visibility.adjacency import neighbours_of
from abut.visibility.coverage import BLOCK
from abut.visibility.fragment_lists import (
    FragmentLists,
    allocate_fragments_kernel,
    draw_faces_kernel,
)
from abut.visibility.fragment_occlusion import test_fragments_kernel, test_pixels_kernel_for
from abut.visibility.raster_queues import (
    RasterQueues,
    count_blocks_kernel,
    fill_queues_kernel,
    list_large_kernel,
    setup_queues_kernel,
)
from abut.visibility.screen_faces import ROWS, ScreenFaces, setup_kernel
from abut.visibility.settings import CullStep, Settings, ViewMap, map_of
from abut.visibility.state import OcclusionTest

MOST_PIXELS_AT_ONCE = 1 << 24
MOST_FRAGMENTS = {True: 1 << 29, False: 1 << 27}  # at once, on CUDA and on the CPU
GROWTH = 1.25
FACES_PER_SLICE = 1024
PIXELS_PER_SLICE = 1 << 14

# Counts of a draw. BLOCKS of a tile target counts tile fragments of overfull tiles, STORED counts
# entries of its bins.
BLOCKS, LARGE, AREA, STORED, SMALL = range(5)
DRAW_COUNTS = 5

Run = Callable[[], Any]


class SetupBuffers:
    """Maps of all views, and screen-space faces of the view that is being drawn.

    Attributes:
        keys: View and pixels of each map.
        maps: ViewMap of each.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        device = soup.device
        self.soup, self.settings = soup, settings
        self.keys = list(dict.fromkeys((step.view, step.pixels) for step in settings.steps))
        self.maps = self._maps_host = wp.zeros(len(self.keys), dtype=ViewMap, device=device)
        if device.is_cuda:
            self._maps_host = wp.zeros_like(self.maps, device="cpu", pinned=True)
        self._fitted: tuple[bytes, float] | None = None
        self.rows = wp.empty(ROWS * soup.face_count, dtype=wp.vec4f, device=device)
        self.boxes = wp.empty(soup.face_count, dtype=wp.vec4i, device=device)

    def update_views(self) -> None:
        """Fit the maps to the bounds of the soup, if these have changed."""
        s, host = self.settings, self._maps_host.numpy()
        distance = s.distance_in(self.soup)
        if self._fitted == (self.soup.bounds.tobytes(), distance):
            return
        self._fitted = self.soup.bounds.tobytes(), distance
        options = {"conservative": s.conservative, "distance": distance}
        for i, (view, pixels) in enumerate(self.keys):
            host[i] = map_of(view, self.soup.bounds, pixels, **options)
        if self._maps_host is not self.maps:
            wp.copy(self.maps, self._maps_host)


@dataclass(frozen=True)
class Draw:
    """One draw of a view."""

    part: Any  # struct of the target, one of its ``parts``
    primitives: Any  # struct
    row: int  # of the counters
    step: CullStep  # the pass
    counters: wp.array  # of all passes
    counts: wp.array  # (DRAW_COUNTS,) of this draw

    def count(self, which: int) -> wp.array:
        """One of the counts, for kernels."""
        return self.counts[which : which + 1]

    def queue(self, keys: wp.array, which: int) -> Any:
        """A PairQueue with one of the counts."""
        queue = PairQueue()
        queue.keys, queue.count = keys, self.count(which)
        return queue


class RasterTarget:
    """A square viewport; subclasses say how its fragments are stored.

    Attributes:
        parts: Structs for kernels, one per band of rows.
        overfull: A target of another kind is faster.
    """

    overfull = False

    def __init__(self, soup: Soup, settings: Settings, pixels: int, setup: SetupBuffers) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.pixels, self._setup = pixels, setup
        self.parts: list[Any] = []

    def view_map(self, step: CullStep) -> wp.array:
        """The map of a step's view, an array of one for kernels."""
        place = self._setup.keys.index((step.view, step.pixels))
        return self._setup.maps[place : place + 1]

    def screen_faces(self, band: tuple[int, int]) -> Any:
        """The struct of screen-space faces in a band."""
        screen = ScreenFaces()
        screen.rows, screen.boxes = self._setup.rows, self._setup.boxes
        screen.band = wp.vec2i(*band)
        return screen

    def set_up_faces(self, draw: Draw) -> Run:
        """The launch that maps the faces to screen space."""
        args = [self.soup.points, self.soup.faces, draw.primitives, self.view_map(draw.step)]
        args += [draw.row, draw.part.screen, draw.counters, draw.count(AREA)]
        count = self.soup.face_count
        return Task(setup_kernel, count, args, self.device, grain=FACES_PER_SLICE).run

    def occlusion_test(self, step: CullStep) -> Any:
        """The struct for kernels."""
        test = OcclusionTest()
        test.passes, test.free, test.within = step.passes, self.settings.free, self.settings.within
        test.strict = self.settings.within and not self.settings.conservative
        if self.settings.within:
            test.corner_ids = neighbours_of(self.soup).corner_ids
        return test


class FragmentTarget(RasterTarget):
    """Fragment lists per pixel, drawn in as many bands of rows as memory requires."""

    def __init__(self, soup: Soup, settings: Settings, pixels: int, setup: SetupBuffers) -> None:
        super().__init__(soup, settings, pixels, setup)
        self.band_count = -(-pixels * pixels // MOST_PIXELS_AT_ONCE)
        self.fragment_capacity = 4 * soup.face_count + pixels * pixels // 4
        self.block_capacity = 4 * soup.face_count + pixels * pixels // 64
        self.allocate()

    def grow(self, counts: np.ndarray) -> bool:
        """Grow buffers that (draws, DRAW_COUNTS) counts exceed; False when all fitted."""
        most = counts.max(axis=0, initial=0).tolist()
        blocks, area, fragments = most[BLOCKS], most[AREA], most[STORED]
        too_many = area > UNKNOWN_COUNT or fragments > MOST_FRAGMENTS[self.device.is_cuda]
        if too_many and self.band_count < self.pixels:
            self.band_count = min(2 * self.band_count, self.pixels)
        elif area > UNKNOWN_COUNT:
            raise CapacityError(f"a row of pixels has {area} fragments; ask for fewer pixels.")
        elif blocks > self.block_capacity:
            self.block_capacity = int(GROWTH * blocks)
        elif fragments > self.fragment_capacity:
            self.fragment_capacity = int(GROWTH * fragments)
        else:
            return False
        self.allocate()
        return True

    def rasterise(self, draw: Draw) -> list[Run]:
        """The launches that fill the fragment lists."""
        lists, device, view = draw.part, self.device, self.view_map(draw.step)
        faces, owners, grain = self.soup.face_count, self.soup.object_of, FACES_PER_SLICE
        pixels, args = lists.starts.shape[0], [lists, draw.count(STORED)]
        allocate = Task(allocate_fragments_kernel, pixels, args, device, grain=PIXELS_PER_SLICE)
        if device.is_cpu:
            count, fill = (
                Task(draw_faces_kernel, faces, [view, owners, counting, lists], device, grain=grain)
                for counting in (True, False)
            )
            set_up = self.set_up_faces(draw)
            return [set_up, lists.owners.zero_, count.run, allocate.run, fill.run]
        queues = RasterQueues()
        queues.blocks = blocks = draw.queue(self._blocks, BLOCKS)
        queues.large = draw.queue(self._large, LARGE)
        queues.small = draw.queue(self._small, SMALL)
        args = [self.soup.points, self.soup.faces, draw.primitives, view, draw.row]
        args += [lists, draw.counters, draw.count(AREA), queues]
        every = UNKNOWN_COUNT
        tasks = [
            Task(setup_queues_kernel, faces, args, device),
            Task(list_large_kernel, every, [view, lists, queues.large, blocks], device),
            Task(count_blocks_kernel, every, [view, blocks, owners, lists], device),
            allocate,
            Task(fill_queues_kernel, every, [view, queues, lists], device),
        ]
        return [lists.owners.zero_, *(task.run for task in tasks)]

    def test_occlusion(self, draw: Draw) -> Run:
        """The launch that marks occluded primitives."""
        args = [self.occlusion_test(draw.step), draw.count(STORED), draw.row]
        args += [draw.part, draw.primitives, draw.counters]
        if self.device.is_cuda:
            return Task(test_fragments_kernel, UNKNOWN_COUNT, args, self.device).run
        kernel = test_pixels_kernel_for(self.settings.free and not self.settings.within)
        count = draw.part.starts.shape[0]
        return Task(kernel, count, args, self.device, grain=PIXELS_PER_SLICE).run

    def allocate(self) -> None:
        """Allocate all buffers for the capacities and the number of bands."""
        device, pixels = self.device, self.pixels
        rows = whole_blocks(-(-pixels // self.band_count))
        bands = [(first, min(first + rows, pixels)) for first in range(0, pixels, rows)]
        pixel_count = rows * whole_blocks(pixels)
        faces, blocks = (self.soup.face_count, self.block_capacity) if device.is_cuda else (0, 0)
        try:
            self._counts = wp.zeros(pixel_count, dtype=wp.int32, device=device)
            self._owners = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._starts = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._stops = wp.empty(pixel_count, dtype=wp.int32, device=device)
            self._fragments = wp.empty(self.fragment_capacity, dtype=wp.vec4f, device=device)
            self._blocks = wp.empty(blocks, dtype=wp.int64, device=device)
            self._large = wp.empty(faces, dtype=wp.int64, device=device)
            self._small = wp.empty(faces, dtype=wp.int64, device=device)
        except Exception as error:
            raise CapacityError(
                f"{self.fragment_capacity} fragments do not fit on {device}; ask for fewer pixels."
            ) from error
        self.parts = [self._lists(band) for band in bands]

    def _lists(self, band: tuple[int, int]) -> Any:
        lists = FragmentLists()
        width = whole_blocks(self.pixels)
        count = whole_blocks(band[1] - band[0]) * width
        lists.screen, lists.fragments = self.screen_faces(band), self._fragments
        lists.counts, lists.starts = self._counts[:count], self._starts[:count]
        lists.owners, lists.stops = self._owners[:count], self._stops[:count]
        lists.tiles = width // BLOCK
        lists.within = self.settings.within
        return lists


def whole_blocks(pixels: int) -> int:
    """The number of pixels rounded up to whole blocks."""
    return -(-pixels // BLOCK) * BLOCK
