"""Settings: what a culling is to do; Step: one pass of it."""

from dataclasses import dataclass

from abut.geometry.common_corners import SHARED_BY_POSITION
from abut.options import Level, Method, Order
from abut.visibility.state import BOTH, FIRST, SECOND
from abut.visibility.view import View

COARSER = 8  # times, of a first look
LEAST_PIXELS = 16  # of it


@dataclass(frozen=True)
class Step:
    """Passes over one view. Pass 1 draws primitives in their order, pass 2 in the opposite one.

    Attributes:
        level: What the primitives are.
        view: Where they are looked at from.
        pixels: Width and height of the viewport.
        passes: FIRST, SECOND, or BOTH at once.
        keep: What one pass shows counts in later steps; else only what both together show.
    """

    level: Level
    view: View
    pixels: int
    passes: int
    keep: bool


@dataclass(frozen=True)
class Settings:
    """A culling.

    Attributes:
        method: Which of the three.
        pixels: Width and height of the viewport.
        views: Views, in order.
        level: Down to what it goes.
        distance: Faces at most so far apart are kept too.
        order: What hides a face.
        within: Faces of one object are kept apart as well, unless they share a corner.
        relation: What faces of one object share, see common_corners.
    """

    method: Method
    pixels: int
    views: tuple[View, ...]
    level: Level
    distance: float
    order: Order
    within: bool
    sharing: int = SHARED_BY_POSITION

    @property
    def conservative(self) -> bool:
        """Faces have a fragment at every pixel they touch; else where they hold its centre."""
        return self.method is Method.FAR

    @property
    def free(self) -> bool:
        """The order of drawing does not matter."""
        return self.order is Order.FREE

    @property
    def steps(self) -> list[Step]:
        """All passes, in order.

        Faces alone are looked at where objects would tell nothing more: where order does not
        matter, an object that is free has free faces; and within objects. Where nothing is lost at
        any resolution and in any order, a coarse look along the first view comes before.
        """
        levels = [Level.OBJECT, Level.FACE]
        if self.level is Level.OBJECT:
            levels = [Level.OBJECT]
        elif self.free or self.within:
            levels = [Level.FACE]
        quick = self.method is Method.QUICK_CULLIDE and not self.free
        passes = (FIRST, SECOND) if quick else (BOTH,)
        shown = [(view, self.pixels) for view in self.views]
        if self.conservative and self.free and self.pixels >= COARSER * LEAST_PIXELS:
            shown.insert(0, (self.views[0], self.pixels // COARSER))
        return [
            Step(level, view, pixels, number, quick)
            for level in levels
            for view, pixels in shown
            for number in passes
        ]
