"""TileScreen: faces binned to tiles, whose patches are compared with each other."""

from typing import Any

import numpy as np
import warp as wp

from abut.pairs import PairQueue
from abut.runtime import EVERYTHING, Task
from abut.soup import Soup
from abut.visibility.cover import BLOCK
from abut.visibility.look_tiles import look_tiles_kernel
from abut.visibility.screen import GROWTH, Clear, FaceRoom, Screen, whole_blocks
from abut.visibility.settings import Settings, Step
from abut.visibility.tiles import TEAM, Tiles, bin_kernel, bin_large_kernel, contested_kernel

PIXELS_PER_FACE = 4  # of the viewport; where there are fewer, fragments are better listed
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
        self.patch_room = 8 * soup.face_count + self.tile_count
        self._make_room()

    @property
    def tile_count(self) -> int:
        """Number of tiles."""
        return (whole_blocks(self.pixels) // BLOCK) ** 2

    @staticmethod
    def suits(soup: Soup, pixels: int) -> bool:
        """Whether faces are large enough."""
        return pixels * pixels >= PIXELS_PER_FACE * soup.face_count

    def lacks_room(self, tally: np.ndarray) -> bool:
        """Make room where there was too little: (crowded tiles, large faces, area, patches)."""
        crowds, _, _, patches, _ = (int(n) for n in tally.max(axis=0, initial=0))
        if crowds or patches > MOST_PATCHES:
            self.crowded = True
            return True
        if patches <= self.patch_room:
            return False
        self.patch_room = int(GROWTH * patches)
        self._make_room()
        return True

    def expose(
        self, tiles: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> list[Any]:
        """Bin the faces of a view."""
        device, faces, view = self.device, self.soup.face_count, self.view_of(step)
        total = tally[slot + 3 : slot + 4]
        large = PairQueue()
        large.keys, large.count = self._large, tally[slot + 1 : slot + 2]
        teams = EVERYTHING if device.is_cuda else TEAM * faces
        tasks: list[Any] = [
            self.setup(tiles, primitives, row, step, tally, slot),
            Clear(tiles),
        ]
        for filling in (False, True):
            args = [*view, self.soup.object_of, filling]
            tasks.append(Task(bin_kernel, faces, [*args, tiles, large], device))
            tasks.append(Task(bin_large_kernel, teams, [*args, large, tiles], device))
            if not filling:
                tasks.append(Task(contested_kernel, self.tile_count, [tiles, total], device))
                tasks.append(Scan(tiles))
        return tasks

    def look(
        self, tiles: Any, primitives: Any, row: int, step: Step, tally: Any, slot: int
    ) -> Task:
        """Find out what is hidden."""
        args = [*self.view_of(step), tiles, self.rule_of(step), tally[slot + 3 : slot + 4]]
        args += [row, primitives, tally, tally[slot : slot + 1]]
        return Task(look_tiles_kernel, self.patch_room, args, self.device)

    def _make_room(self) -> None:
        device, count = self.device, self.tile_count + 1
        tiles = Tiles()
        tiles.shown = self.shown((0, self.pixels))
        tiles.counts = wp.zeros(count, dtype=wp.int32, device=device)
        tiles.owners = wp.empty(count, dtype=wp.int32, device=device)
        tiles.starts = wp.empty(count, dtype=wp.int32, device=device)
        tiles.masks = wp.empty(self.patch_room, dtype=wp.uint64, device=device)
        tiles.depths = wp.empty(self.patch_room, dtype=wp.vec2f, device=device)
        tiles.places = wp.empty(self.patch_room, dtype=wp.vec2i, device=device)
        tiles.wide = whole_blocks(self.pixels) // BLOCK
        tiles.within = self.settings.within
        self.parts = [tiles]
        self._large = wp.empty(self.soup.face_count, dtype=wp.int64, device=device)
