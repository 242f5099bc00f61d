"""TileTarget: faces binned to tiles, whose tile fragments are tested against each other."""

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, Task
from abut.operands.soup import Soup
from abut.visibility.coverage import BLOCK
from abut.visibility.raster_target import (
    BLOCKS,
    GROWTH,
    LARGE,
    STORED,
    Draw,
    RasterTarget,
    Run,
    SetupBuffers,
    whole_blocks,
)
from abut.visibility.settings import Settings
from abut.visibility.tiles import (
    TEAM,
    TileBins,
    bin_kernel,
    bin_large_kernel,
    drop_uncontested_kernel,
    test_tiles_kernel,
    tile_fragments_kernel,
)

# Pixels of the viewport per face, below which fragment lists are faster. Without a drawing order
# more tile fragments overlap in depth, and on CUDA one thread compares them pixel by pixel.
LEAST_PIXELS, LEAST_PIXELS_FREE_CUDA = 4, 128
MOST_FRAGMENTS_BINNED = 1 << 26  # tile fragments; one and a half gigabytes


class TileTarget(RasterTarget):
    """Tile fragments per tile of 8 by 8 pixels.

    Attributes:
        overfull: One tile, or all together, have too many faces.
        capacity: Tile fragments that the bins can hold.
    """

    def __init__(self, soup: Soup, settings: Settings, pixels: int, setup: SetupBuffers) -> None:
        super().__init__(soup, settings, pixels, setup)
        self.tile_count = (whole_blocks(pixels) // BLOCK) ** 2
        self.capacity = 8 * soup.face_count + self.tile_count
        self._allocate()

    @staticmethod
    def suits(soup: Soup, settings: Settings, pixels: int) -> bool:
        """Whether faces are large enough for tiles."""
        least = LEAST_PIXELS
        if settings.free and soup.device.is_cuda:
            least = LEAST_PIXELS_FREE_CUDA
        return pixels * pixels >= least * soup.face_count

    def grow(self, counts: np.ndarray) -> bool:
        """Grow the bins if (draws, DRAW_COUNTS) counts exceed them; False when all fitted."""
        most = counts.max(axis=0, initial=0).tolist()
        if most[BLOCKS] or most[STORED] > MOST_FRAGMENTS_BINNED:
            self.overfull = True
            return True
        if most[STORED] <= self.capacity:
            return False
        self.capacity = int(GROWTH * most[STORED])
        self._allocate()
        return True

    def rasterise(self, draw: Draw) -> list[Run]:
        """The launches that bin the faces and store their tile fragments."""
        bins, device, view = draw.part, self.device, self.view_map(draw.step)
        faces, owners = self.soup.face_count, self.soup.object_of
        large, entries = draw.queue(self._large, LARGE), draw.queue(self._entries, STORED)
        teams, most = TEAM * faces, self.capacity
        if device.is_cuda:
            teams = most = UNKNOWN_COUNT
        return [
            self.set_up_faces(draw),
            self._per_tile.zero_,
            Task(bin_kernel, faces, [view, owners, bins, entries, large], device).run,
            Task(bin_large_kernel, teams, [view, owners, large, bins, entries], device).run,
            Task(drop_uncontested_kernel, self.tile_count, [bins], device).run,
            partial(wp.utils.array_scan, bins.counts, bins.starts, inclusive=False),
            Task(tile_fragments_kernel, most, [view, entries, bins], device).run,
        ]

    def test_occlusion(self, draw: Draw) -> Run:
        """The launch that marks occluded primitives."""
        args = [self.view_map(draw.step), draw.part, self.occlusion_test(draw.step)]
        args += [draw.count(STORED), draw.row, draw.primitives, draw.counters, draw.count(BLOCKS)]
        count = UNKNOWN_COUNT if self.device.is_cuda else self.capacity
        return Task(test_tiles_kernel, count, args, self.device).run

    def _allocate(self) -> None:
        device, count = self.device, self.tile_count + 1
        self._large = wp.empty(self.soup.face_count, dtype=wp.int64, device=device)
        self._entries = wp.empty(self.capacity, dtype=wp.int64, device=device)
        self._per_tile = wp.empty(2 * count, dtype=wp.int32, device=device)
        bins: Any = TileBins()
        bins.screen = self.screen_faces((0, self.pixels))
        bins.counts, bins.owners = self._per_tile[:count], self._per_tile[count:]
        bins.starts = wp.empty(count, dtype=wp.int32, device=device)
        bins.masks = wp.empty(self.capacity, dtype=wp.uint64, device=device)
        bins.depths = wp.empty(self.capacity, dtype=wp.vec2f, device=device)
        bins.places = wp.empty(self.capacity, dtype=wp.vec2i, device=device)
        bins.row_tiles = whole_blocks(self.pixels) // BLOCK
        bins.within = self.settings.within
        self.parts = [bins]
