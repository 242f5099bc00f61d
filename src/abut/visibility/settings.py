"""Settings of a culling, and its Steps: passes over one view."""

from dataclasses import dataclass

from abut.geometry.common_corners import SHARED_BY_POSITION
from abut.options import Level, Method, Order
from abut.visibility.state import BOTH, FIRST, SECOND
from abut.visibility.view import View

COARSER = 8  # times, of the coarse first pass
LEAST_PIXELS = 16  # of the coarse first pass


@dataclass(frozen=True)
class CullStep:
    """Passes over one view. Pass 1 draws primitives in their order, pass 2 in the opposite one.

    Attributes:
        level: Whether the primitives are objects or faces.
        view: The view to draw.
        pixels: Width and height of the viewport.
        passes: FIRST, SECOND, or BOTH at once.
        keep: Keep FFV and SFV for later steps; else only BFV counts.
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
        method: FAR, CULLIDE or Quick-CULLIDE.
        pixels: Width and height of the viewport.
        views: Views, in order.
        level: Whether to cull objects only, or faces too.
        distance: Faces at most this far apart survive too.
        order: Whether a face is occluded by faces drawn before it, or by any that overlap in depth.
        within: Faces of one object are tested against each other, unless they share a corner.
        sharing: Vertices that faces of one object may share, see common_corners.
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
        """Faces cover every pixel they touch, not only pixels whose centre they contain."""
        return self.method is Method.FAR

    @property
    def free(self) -> bool:
        """Occlusion does not depend on the drawing order."""
        return self.order is Order.FREE

    @property
    def steps(self) -> list[CullStep]:
        """All passes, in order.

        Without a drawing order, and within objects, passes over objects prune nothing that passes
        over faces do not, and are left out. FAR without a drawing order begins with a coarse pass
        along the first view: it loses nothing at any resolution.
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
            CullStep(level, view, pixels, number, quick)
            for level in levels
            for view, pixels in shown
            for number in passes
        ]
