"""HostCuller: a culling whose visibility queries are answered by another backend, pass by pass.

The sets are those of Quick-CULLIDE §4.1.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.core.plan import Plan
from abut.errors import OptionError
from abut.operands.soup import Soup
from abut.options import Level
from abut.visibility.settings import CullStep, Settings
from abut.visibility.state import BOTH, COLUMNS, FIRST, SECOND, make_primitives
from abut.visibility.survivors import Survivors
from abut.visibility.view import View


@dataclass(frozen=True)
class VisibilityQuery:
    """One pass: which primitives are fully visible against the primitives drawn before them?

    All faces of one object are tested, then drawn, unless ``settings.within``: then each face is
    drawn by itself.

    Attributes:
        level: Whether the primitives are objects or faces.
        view: The view to draw.
        forward: In ascending order, else in descending order.
        tested: (primitives,) bool, primitives to test.
        drawn: (primitives,) bool, primitives to draw.
    """

    level: Level
    view: View
    forward: bool
    tested: np.ndarray
    drawn: np.ndarray


Backend = Callable[[VisibilityQuery], tuple[np.ndarray, int]]


class HostCuller:
    """Culls like Culler, with passes answered by ``backend``.

    The backend returns (primitives,) bool, fully visible, and the number of faces rasterised.
    """

    def __init__(self, soup: Soup, settings: Settings, backend: Backend) -> None:
        if settings.free:
            raise OptionError("passes are drawn in some order; use order='drawn'.")
        self.soup, self.settings, self.backend = soup, settings, backend
        self.steps = settings.steps
        self.survivors = Survivors(soup, settings)
        self.counters = np.zeros((len(self.steps), COLUMNS), dtype=np.int64)
        self.milliseconds = [0.0] * len(self.steps)

    def run(self) -> None:
        """Cull the soup as it is now."""
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
        states = [wp.array(state, device=device) for state in (objects, faces)]
        none = wp.zeros(0, dtype=wp.int32, device=device)
        primitives = make_primitives(self.soup, self.settings.level, states, (none, none))
        Plan(
            self.survivors.queues,
            lambda: self.survivors.stages(primitives),
            clear=self.survivors.clear,
            read=self.survivors.read,
        ).run()

    def _step(self, step: CullStep, state: np.ndarray) -> list[int]:
        """Passes of one step; updates the states and returns a row of counters."""
        before = state.copy()
        queried = np.zeros(len(state), dtype=bool)
        face_count = 0
        for number, occluding in ((FIRST, SECOND), (SECOND, FIRST)):
            if not step.passes & number:
                continue
            # Both passes of one step start from the states before it.
            tested = (before & number == 0) & (before != BOTH)
            drawn = (before & occluding == 0) & (before != BOTH)
            if self.settings.conservative and step.passes == BOTH and number == SECOND:
                tested &= state == FIRST  # FAR §4.2.1: all others stay, whatever this pass shows
            query = VisibilityQuery(step.level, step.view, number == FIRST, tested, drawn)
            visible, drawn_count = self.backend(query)
            state[tested & visible] |= number
            face_count += drawn_count
            queried |= tested
        sizes = [int((state == s).sum()) for s in (BOTH, FIRST, SECOND, 0)]
        if not step.keep:
            state[state != BOTH] = 0
        return [int(queried.sum()), face_count, 0, *sizes]
