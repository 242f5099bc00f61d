"""HostCuller: a culling whose passes are drawn elsewhere, one after the other, seen by the host.

The sets are those of Quick-CULLIDE §4.1; a backend has to answer one question, ``See``.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.errors import OptionError
from abut.operands.soup import Soup
from abut.options import Level
from abut.visibility.settings import Settings, Step
from abut.visibility.state import BOTH, COLUMNS, FIRST, SECOND
from abut.visibility.survivors import Survivors, primitives_of
from abut.visibility.view import View


@dataclass(frozen=True)
class Pass:
    """One pass: which primitives are fully visible, each against those drawn before it?

    Faces of one object are drawn together after all of them were tested, unless ``within``: then
    each face is drawn by itself.

    Attributes:
        soup: The scene; its objects and faces are in drawing order.
        settings: The whole culling: pixels, distance, ``conservative``, ``within``.
        level: What the primitives are.
        view: Where to look from.
        forward: In ascending order, else in descending order.
        tested: (primitives,) bool, whose visibility is asked for.
        drawn: (primitives,) bool, which are drawn.
    """

    soup: Soup
    settings: Settings
    level: Level
    view: View
    forward: bool
    tested: np.ndarray
    drawn: np.ndarray


@dataclass(frozen=True)
class Seen:
    """Answer to a pass: (primitives,) bool fully visible; and how much was rasterised."""

    visible: np.ndarray
    faces: int = 0
    fragments: int = 0


See = Callable[[Pass], Seen]


class HostCuller:
    """Like Culler, with passes seen by ``see``."""

    def __init__(self, soup: Soup, settings: Settings, see: See) -> None:
        if settings.free:
            raise OptionError("passes are drawn in some order; use order='drawn'.")
        self.soup, self.settings, self.see = soup, settings, see
        self.steps = settings.steps
        self.remains = Survivors(soup, settings)
        self.counters = np.zeros((len(self.steps), COLUMNS), dtype=np.int64)
        self.milliseconds = [0.0] * len(self.steps)
        self.face_state = self.object_state = wp.zeros(0, dtype=wp.int32, device=soup.device)

    def run(self) -> None:
        """Look at the soup as it is now."""
        objects = np.zeros(self.soup.object_count, dtype=np.int32)
        faces = np.zeros(self.soup.face_count, dtype=np.int32)
        object_of = self.soup.object_of.numpy()
        for row, step in enumerate(self.steps):
            start = time.perf_counter()
            if step.level is Level.FACE and row and self.steps[row - 1].level is Level.OBJECT:
                faces[objects[object_of] == BOTH] = BOTH
            state = faces if step.level is Level.FACE else objects
            self.counters[row] = self._step(step, state)
            self.milliseconds[row] = 1e3 * (time.perf_counter() - start)
        device = self.soup.device
        self.object_state = wp.array(objects, device=device)
        self.face_state = wp.array(faces, device=device)
        states, none = (
            (self.object_state, self.face_state),
            wp.zeros(0, dtype=wp.int32, device=device),
        )
        self.remains.start(primitives_of(self.soup, self.settings.level, states, (none, none)))
        wp.synchronize_device(device)
        if not self.remains.read():
            self.run()

    def _step(self, step: Step, state: np.ndarray) -> list[int]:
        """Passes of one step; updates the states and returns a row of counters."""
        before = state.copy()
        asked = np.zeros(len(state), dtype=bool)
        rasterised = np.zeros(2, dtype=np.int64)
        for number, hidden_by in ((FIRST, SECOND), (SECOND, FIRST)):
            if not step.passes & number:
                continue
            # All the same as before this step, where both passes are one.
            tested = (before & number == 0) & (before != BOTH)
            drawn = (before & hidden_by == 0) & (before != BOTH)
            if self.settings.conservative and step.passes == BOTH and number == SECOND:
                tested &= state == FIRST  # FAR §4.2.1: the others stay whatever this pass shows
            seen = self._see(step, number == FIRST, tested, drawn)
            state[tested & seen.visible] |= number
            rasterised += (seen.faces, seen.fragments)
            asked |= tested
        sizes = [int((state == s).sum()) for s in (BOTH, FIRST, SECOND, 0)]
        if not step.keep:
            state[state != BOTH] = 0
        return [int(asked.sum()), *rasterised.tolist(), *sizes]

    def _see(self, step: Step, forward: bool, tested: np.ndarray, drawn: np.ndarray) -> Seen:
        question = Pass(self.soup, self.settings, step.level, step.view, forward, tested, drawn)
        return self.see(question)
