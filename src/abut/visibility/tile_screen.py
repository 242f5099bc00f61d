"""TileScreen: faces binned to tiles, whose patches are compared with each other."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import PairQueue
from abut.operands.soup import Soup
from abut.visibility.cover import BLOCK
from abut.visibility.look_tiles import look_tiles_kernel
from abut.visibility.screen import GROWTH, Clear, FaceRoom, Screen, whole_blocks
from abut.visibility.settings import Settings, Step
from abut.visibility.tiles import (
    TEAM,
    Tiles,
    bin_kernel,
    bin_large_kernel,
    contested_kernel,
    patch_kernel,
)

# Pixels of the viewport for each face, below which fragments are better listed. Order-free, more
# patches overlap in depth, and on CUDA one thread compares them pixel by pixel.
LEAST_PIXELS, LEAST_PIXELS_FREE_CUDA = 4, 128
MOST_PATCHES = 1 << 26  # at once; one and a half gigabytes


class Scan:
    """Where each tile's faces start."""

    def __init__(self, tiles: Any) -> None:
        self.tiles = tiles

    def run(self) -> None:
        """Sum the counts."""
        wp.utils.array_scan(self.tiles.counts, self.tiles.starts, inclusive=False)


class TileScreen(Screen):
    """A screen of tiles.

    Attributes:
        crowded: Some tile has too many faces, or all together: another screen is better.
    """

    def __init__(self, soup: Soup, settings: Settings, pixels: int, faces: FaceRoom) -> None:
        super().__init__(soup, settings, pixels, faces)
        self.crowded = False
        self.room = 8 * soup.face_count + self.tile_count
        self._make_room()

    @property
    def tile_count(self) -> int:
        """Number of tiles."""
        return (whole_blocks(self.pixels) // BLOCK) ** 2

    @staticmethod
    def suits(soup: Soup, settings: Settings, pixels: int) -> bool:
        """Whether faces are large enough."""
        least = LEAST_PIXELS
        if settings.free and soup.device.is_cuda:
            least = LEAST_PIXELS_FREE_CUDA
        return pixels * pixels >= least * soup.face_count

    def lacks_room(self, tally: np.ndarray) -> bool:
        """Make room where there was too little: (crowded tiles, large faces, area, visits)."""
        crowds, _, _, visits, _ = (int(n) for n in tally.max(axis=0, initial=0))
        if crowds or visits > MOST_PATCHES:
            self.crowded = True
            return True
        if visits <= self.room:
            return False
        self.room = int(GROWTH * visits)
        self._make_room()
        return True

    def expose(
        self, tiles: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> list[Any]:
        """Bin the faces of a view."""
        device, faces, view = self.device, self.soup.face_count, self.view_of(step)
        large, visits = PairQueue(), PairQueue()
        large.keys, large.count = self._large, tally[slot + 1 : slot + 2]
        visits.keys, visits.count = self._visits, tally[slot + 3 : slot + 4]
        owners = self.soup.object_of
        teams, all_visits = TEAM * faces, self.room
        if device.is_cuda:
            teams = all_visits = UNKNOWN_COUNT
        return [
            self.setup(tiles, primitives, row, step, tally, slot),
            Clear(self._comers),
            Task(bin_kernel, faces, [*view, owners, tiles, visits, large], device),
            Task(bin_large_kernel, teams, [*view, owners, large, tiles, visits], device),
            Task(contested_kernel, self.tile_count, [tiles], device),
            Scan(tiles),
            Task(patch_kernel, all_visits, [*view, visits, tiles], device),
        ]

    def look(
        self, tiles: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> Task:
        """Find out what is hidden."""
        args = [*self.view_of(step), tiles, self.rule_of(step), tally[slot + 3 : slot + 4]]
        args += [row, primitives, tally, tally[slot : slot + 1]]
        count = UNKNOWN_COUNT if self.device.is_cuda else self.room
        return Task(look_tiles_kernel, count, args, self.device)

    def _make_room(self) -> None:
        device, count = self.device, self.tile_count + 1
        self._large = wp.empty(self.soup.face_count, dtype=wp.int64, device=device)
        self._visits = wp.empty(self.room, dtype=wp.int64, device=device)
        self._comers = wp.empty(2 * count, dtype=wp.int32, device=device)
        tiles = Tiles()
        tiles.shown = self.shown((0, self.pixels))
        tiles.counts, tiles.owners = self._comers[:count], self._comers[count:]
        tiles.starts = wp.empty(count, dtype=wp.int32, device=device)
        tiles.masks = wp.empty(self.room, dtype=wp.uint64, device=device)
        tiles.depths = wp.empty(self.room, dtype=wp.vec2f, device=device)
        tiles.places = wp.empty(self.room, dtype=wp.vec2i, device=device)
        tiles.wide = whole_blocks(self.pixels) // BLOCK
        tiles.within = self.settings.within
        self.parts = [tiles]
