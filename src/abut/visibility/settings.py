"""Settings of a culling: its views, the map of each to pixels and depth, and its steps."""

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.errors import OptionError
from abut.geometry.common_corners import SHARED_BY_POSITION
from abut.operands.soup import Soup
from abut.options import Level, Method, Order
from abut.visibility.state import BOTH, FIRST, SECOND

COARSER = 8  # times, of the coarse first pass
LEAST_PIXELS = 16  # of the coarse first pass
MOST_PIXELS = 1 << 14
MARGIN = 2.0**-12  # of the scene's size, around it
PIXEL_ERROR = 2.0**-20  # of the viewport's width: float32 rounding, see design/visibility.md
DEPTH_ERROR = 2.0**-20  # of the scene's depth: float32 rounding
LEAST_SIZE = 2.0**-1000

Mapping = namedtuple("Mapping", "axes shrink base scale pixels reach slack")  # of a ViewMap
AXES = {"x": (1, 2, 0), "y": (2, 0, 1), "z": (0, 1, 2)}


@wp.struct
class ViewMap:
    """Maps a point x to (x * shrink - base) * scale along each of ``axes``.

    The first two axes are in pixels, depth is from 0 to 1. ``reach`` is half the size of the
    rectangle that a face must touch to cover a pixel; 0 where faces are sampled at pixel centres.
    ``slack`` is added to both ends of depth intervals.
    """

    axes: wp.vec3i
    shrink: wp.vec3d
    base: wp.vec3d
    scale: wp.vec3d
    pixels: wp.int32
    reach: wp.vec2f
    slack: wp.float32


@dataclass(frozen=True)
class View:
    """An orthographic view along an axis or, ``flipped``, against it."""

    name: str

    @property
    def flipped(self) -> bool:
        """Whether the view looks against the axis."""
        return self.name.isupper()

    @property
    def axes(self) -> tuple[int, int, int]:
        """Axes that point right, up, and into depth."""
        return AXES[self.name.lower()]


def checked_views(views: Any) -> tuple[View, ...]:
    """Parse views from letters: x, y, z look along an axis, X, Y, Z against it."""
    if not isinstance(views, str) or not views or not set(views) <= set("xyzXYZ"):
        raise OptionError(f"views must be some of the letters x, y, z, X, Y, Z, not {views!r}.")
    return tuple(View(name) for name in views)


def checked_pixels(pixels: Any) -> int:
    """Validate the width of the viewport."""
    if not isinstance(pixels, int | np.integer) or not 1 <= pixels <= MOST_PIXELS:
        raise OptionError(f"pixels must be a whole number from 1 to {MOST_PIXELS}, not {pixels!r}.")
    return int(pixels)


def map_of(
    view: View, bounds: np.ndarray, pixels: int, *, conservative: bool, distance: float = 0.0
) -> Mapping:
    """Fit a view to a scene within ``bounds``."""
    spans = [_span(*bounds[:, axis].tolist()) for axis in view.axes]
    shrink, base, size = ([span[part] for span in spans] for part in range(3))
    scale = [pixels / size[0], pixels / size[1], 1 / size[2]]
    around = [0.5 * distance * x * y * (1 + 2.0**-20) for x, y in zip(shrink, scale, strict=True)]
    if view.flipped:
        base[2], scale[2] = base[2] + size[2], -scale[2]
    reach, slack = (0.0, 0.0), 0.0
    if conservative:
        wide, tall = (min(0.5 + x, 4.0 * pixels) for x in around[:2])
        wide, tall = (x + (pixels + 2 + x) * PIXEL_ERROR for x in (wide, tall))
        reach, slack = (_up(wide), _up(tall)), _up(min(DEPTH_ERROR + around[2], 4.0))
    return Mapping(view.axes, tuple(shrink), tuple(base), tuple(scale), pixels, reach, slack)


def _span(low: float, high: float) -> tuple[float, float, float]:
    """(power of two that scales the span to about 1, scaled low end, scaled size)."""
    half = max(high / 2 - low / 2, (abs(low) / 2 + abs(high) / 2) * 2.0**-51, LEAST_SIZE)
    shrink = 2.0 ** -math.frexp(half)[1]
    low, high = low * shrink, high * shrink
    size = max(high - low, half * shrink)
    return shrink, low - MARGIN * size, size * (1 + 2 * MARGIN)


def _up(x: float) -> float:
    """Round x, from 2**-20 to 2**17, up to float32."""
    return float(np.float32(x)) + 2.0**-22 * x


@dataclass(frozen=True)
class CullStep:
    """Passes over one view. Pass 1 draws primitives in their order, pass 2 in the opposite one."""

    level: Level  # whether the primitives are objects or faces
    view: View
    pixels: int  # width and height of the viewport
    passes: int  # FIRST, SECOND, or BOTH at once
    keep: bool  # keep FFV and SFV for later steps; else only BFV counts


@dataclass(frozen=True)
class Settings:
    """A culling."""

    method: Method  # FAR, CULLIDE or Quick-CULLIDE
    pixels: int  # width and height of the viewport
    views: tuple[View, ...]  # in order
    level: Level  # cull objects only, or faces too
    distance: float  # faces at most this far apart survive too
    order: Order  # a face is occluded by faces drawn before it, or by any that overlap in depth
    within: bool  # faces of one object are tested against each other, unless they share a corner
    conservative: bool  # faces cover every pixel they touch, else where they contain its centre
    sharing: int = SHARED_BY_POSITION  # vertices that faces of one object may share

    def distance_in(self, soup: Soup) -> float:
        """Distance up to which faces of a soup survive.

        Faces of one object are judged in its frame, where rounded points may lie as far apart.
        """
        return self.distance + (2.0 * soup.rounding if self.within else 0.0)

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
