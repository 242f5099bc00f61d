"""The passes of a culling, seen by the graphics pipeline."""

import numpy as np

from abut.errors import OptionError
from abut.operands.soup import Soup
from abut.options import Level
from abut.visibility.gl.driver import driver
from abut.visibility.gl.order import DrawingOrder, Turns
from abut.visibility.gl.raster import Raster, Sight
from abut.visibility.gl.vertex_buffers import corners_of, half_size
from abut.visibility.passes import Pass, Seen
from abut.visibility.settings import Settings
from abut.visibility.view import View

ROUNDING = 1.001  # of distances: float32, and Raster's MOST_REACH


class Pipeline:
    """Answers ``See`` for one culling of a soup as it is now, on this thread.

    FAR draws fat boxes, the others plain triangles. Objects have an occlusion query each. Faces are
    told apart in the shader, where objects take turns. Within objects faces do: all in one draw
    where the driver keeps fragments in order, else every face has a query.

    Guarantee:
        FAR: Conservative, whatever the driver does within the rules of OpenGL.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        if settings.within and settings.conservative:
            raise OptionError(
                "backend 'gl' cannot tell neighbours from others, and fat neighbours always "
                "overlap; for 'far' within objects use backend='warp'."
            )
        self.driver = driver()
        self.within, self.conservative = settings.within, settings.conservative
        self.object_of = soup.object_of.numpy()
        self.turn = np.arange(soup.face_count) if self.within else self.object_of
        reach = 0.25 * settings.distance * ROUNDING / half_size(soup)
        with self.driver.current():
            self.raster = Raster(
                self.driver, corners_of(soup), settings.pixels, settings.conservative, reach
            )
        self._view: View | None = None
        self._known: dict[bool, Turns] = {}

    def __call__(self, asked: Pass) -> Seen:
        """Which primitives are fully visible."""
        tested, drawn = asked.tested, asked.drawn
        if asked.level is Level.OBJECT:
            tested, drawn = tested[self.object_of], drawn[self.object_of]
        order = self._turns(asked.forward).order(tested, drawn)
        with self.driver.current():
            if asked.view != self._view:
                self.raster.look(Sight(asked.view.axes[2], asked.view.flipped))
                self._view = asked.view
            hidden = self._hidden(asked, order)
        return Seen(~hidden, faces=len(order.codes))

    def _turns(self, forward: bool) -> Turns:
        """The turns of a pass, worked out once."""
        if forward not in self._known:
            self._known[forward] = Turns.of(self.turn if forward else self.turn[-1] - self.turn)
        return self._known[forward]

    def _hidden(self, asked: Pass, order: DrawingOrder) -> np.ndarray:
        free = self.within and not self.conservative
        in_shader = self.driver.interlock is not None or not self.within
        if asked.level is Level.FACE and in_shader:
            return self.raster.hidden_faces(order, touching_is_free=free)
        hidden = np.zeros(len(asked.tested), dtype=bool)
        turns = order.turns if asked.forward else self.turn[-1] - order.turns
        hidden[turns] = self.raster.hidden_turns(order, touching_is_free=free)
        return hidden
