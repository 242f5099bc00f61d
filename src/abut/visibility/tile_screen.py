"""TileScreen: faces binned to tiles, whose pixels keep their fragments to themselves."""

from typing import Any

import numpy as np
import warp as wp

from abut.pairs import PairQueue
from abut.runtime import EVERYTHING, Task
from abut.soup import Soup
from abut.visibility.raster import AREA, BLOCK, Canvas
from abut.visibility.screen import GROWTH, Clear, FaceRoom, Screen, whole_blocks
from abut.visibility.settings import Settings, Step
from abut.visibility.tiles import (
    Tiles,
    bin_kernel,
    bin_large_kernel,
    crowded_tiles_kernel,
    look_tiles_kernel,
)

PIXELS_PER_FACE = 128  # of the viewport; where there are fewer, fragments are better listed


class Scan:
    """Where each tile's faces start."""

    def __init__(self, tiles: Any) -> None:
        self.tiles = tiles

    def run(self) -> None:
        """Sum the counts."""
        wp.utils.array_scan(self.tiles.counts, self.tiles.starts, inclusive=False)


class TileScreen(Screen):
    """A screen of tiles."""

    def __init__(self, soup: Soup, settings: Settings, pixels: int, faces: FaceRoom) -> None:
        super().__init__(soup, settings, pixels, faces)
        self.crowded = False  # some tile has too many faces: another screen is better
        self.face_room = 8 * soup.face_count + self.tile_count
        self.large_room = soup.face_count
        self._make_room()

    @property
    def tile_count(self) -> int:
        """Number of tiles."""
        return (whole_blocks(self.pixels) // BLOCK) ** 2

    @staticmethod
    def suits(soup: Soup, pixels: int) -> bool:
        """Whether faces are large enough, on a device with many threads."""
        return soup.device.is_cuda and pixels * pixels >= PIXELS_PER_FACE * soup.face_count

    def lacks_room(self, tally: np.ndarray) -> bool:
        """Make room where there was too little: (crowded tiles, large faces, area, faces)."""
        crowds, _, _, faces, _ = (int(n) for n in tally.max(axis=0, initial=0))
        if crowds:
            self.crowded = True
        elif faces > self.face_room:
            self.face_room = int(GROWTH * faces)
        else:
            return False
        self._make_room()
        return True

    def expose(
        self, tiles: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> list[Any]:
        """Bin the faces of a view."""
        device, faces, view = self.device, self.soup.face_count, self.view_of(step)
        large = PairQueue()
        large.keys, large.count = self._large, tally[slot + 1 : slot + 2]
        tasks: list[Any] = [
            self.setup(self._canvas, primitives, row, step, tally, slot),
            Clear(tiles),
        ]
        for filling in (False, True):
            args = [*view, self.soup.object_of, filling]
            tasks.append(Task(bin_kernel, faces, [*args, tiles, large], device))
            tasks.append(Task(bin_large_kernel, EVERYTHING, [*args, large, tiles], device))
            if not filling:
                tasks.append(Task(crowded_tiles_kernel, self.tile_count, [tiles], device))
                tasks.append(Scan(tiles))
        return tasks

    def look(
        self, tiles: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> Task:
        """Find out what is hidden."""
        args = [*self.view_of(step), tiles, self.rule_of(step), row, primitives, tally]
        args += [tally[slot : slot + 1], tally[slot + 3 : slot + 4]]
        count = EVERYTHING if self.device.is_cuda else self.tile_count * AREA
        return Task(look_tiles_kernel, count, args, self.device)

    def _make_room(self) -> None:
        device, count = self.device, self.tile_count + 1
        tiles = Tiles()
        tiles.rows, tiles.boxes = self.rows, self.boxes
        tiles.counts = wp.zeros(count, dtype=wp.int32, device=device)
        tiles.owners = wp.empty(count, dtype=wp.int32, device=device)
        tiles.starts = wp.empty(count, dtype=wp.int32, device=device)
        tiles.faces = wp.empty(self.face_room, dtype=wp.int32, device=device)
        tiles.wide = whole_blocks(self.pixels) // BLOCK
        tiles.within = self.settings.within
        self.parts = [tiles]
        self._large = wp.empty(self.large_room, dtype=wp.int64, device=device)
        self._canvas = Canvas()  # of which only the faces are used
        self._canvas.rows, self._canvas.boxes = self.rows, self.boxes
        self._canvas.band = wp.vec2i(0, self.pixels)
