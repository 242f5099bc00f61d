"""GlCuller: the passes of a culling, drawn by the graphics pipeline."""

import time

import numpy as np
import warp as wp

from abut.options import Level
from abut.soup import Soup
from abut.visibility.gl.corners import corners_of, half_size
from abut.visibility.gl.driver import driver
from abut.visibility.gl.order import DrawingOrder
from abut.visibility.gl.raster import Raster, Sight
from abut.visibility.settings import Settings, Step
from abut.visibility.state import BOTH, COLUMNS, FIRST, NEITHER, SECOND

ROUNDING = 1 + 2.0**-20


class GlCuller:
    """A culling of a soup as it is now, on the graphics device.

    Attributes:
        face_state, object_state: What is known of each, see state; BOTH is pruned.
        counters: A row of numbers for each step, see state; fragments are not counted.
        milliseconds: Time of each step.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        self.soup, self.settings, self.steps = soup, settings, settings.steps
        self.counters = np.zeros((len(self.steps), COLUMNS), dtype=np.int64)
        self.milliseconds = [0.0] * len(self.steps)
        self._object_of = soup.object_of.numpy()
        self._states = {
            Level.OBJECT: np.zeros(soup.object_count, dtype=np.int32),
            Level.FACE: np.zeros(soup.face_count, dtype=np.int32),
        }

    @property
    def face_state(self) -> wp.array:
        """What is known of each face."""
        return wp.array(self._states[Level.FACE], dtype=wp.int32, device=self.soup.device)

    @property
    def object_state(self) -> wp.array:
        """What is known of each object."""
        return wp.array(self._states[Level.OBJECT], dtype=wp.int32, device=self.soup.device)

    def run(self) -> None:
        """Draw all passes."""
        self.driver = driver()
        with self.driver.context:
            raster = self._raster()
            for row, step in enumerate(self.steps):
                start = time.perf_counter()
                if row and self.steps[row - 1].level is not step.level:
                    pruned = self._states[Level.OBJECT][self._object_of] == BOTH
                    self._states[Level.FACE][:] = np.where(pruned, BOTH, NEITHER)
                self._take(row, step, raster)
                self.milliseconds[row] = 1e3 * (time.perf_counter() - start)

    def _raster(self) -> Raster:
        reach = 0.25 * self.settings.distance * ROUNDING / half_size(self.soup)
        corners, pixels = corners_of(self.soup), self.settings.pixels
        return Raster(self.driver, corners, pixels, self.settings.conservative, reach)

    def _take(self, row: int, step: Step, raster: Raster) -> None:
        """One step: its passes, and what they show."""
        raster.look(Sight(step.view.axes[2], step.view.flipped))
        state = self._states[step.level]
        seen, asked = np.zeros_like(state), np.zeros(len(state), dtype=bool)
        for number in (FIRST, SECOND):
            if step.passes & number:
                tested = (state & number) == 0
                if self.settings.conservative and number == SECOND:
                    tested &= seen == FIRST  # FAR §4.2.1: the others stay in any case
                drawn = (state & (SECOND if number == FIRST else FIRST)) == 0
                hidden = self._hidden(step.level, raster, number, tested, drawn)
                seen[tested & ~hidden] |= number
                asked |= tested
        found = state | seen
        sizes = [np.count_nonzero(found == which) for which in (BOTH, FIRST, SECOND, NEITHER)]
        left = state != BOTH
        faces = np.count_nonzero(left if step.level is Level.FACE else left[self._object_of])
        self.counters[row] = np.count_nonzero(asked), faces, 0, *sizes
        state[:] = found if step.keep else np.where(found == BOTH, BOTH, NEITHER)

    def _hidden(
        self, level: Level, raster: Raster, number: int, tested: np.ndarray, drawn: np.ndarray
    ) -> np.ndarray:
        """Which primitives have something of what was drawn before them in front."""
        by_face, within = level is Level.FACE, self.settings.within
        turn = np.arange(self.soup.face_count) if by_face and within else self._object_of
        if not by_face:
            tested, drawn = tested[turn], drawn[turn]
        last = max(self.soup.object_count, self.soup.face_count)
        order = DrawingOrder.of(turn if number == FIRST else last - turn, tested, drawn)
        free = within and not self.settings.conservative
        if by_face and (self.driver.interlock is not None or not within):
            return raster.hidden_faces(order, touching_is_free=free)
        hidden = raster.hidden_turns(order, touching_is_free=free)
        out = np.zeros(self.soup.face_count if by_face else self.soup.object_count, dtype=bool)
        out[order.turns if number == FIRST else last - order.turns] = hidden
        return out
