"""Raster: faces of a scene seen along an axis, drawn and tested in order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from abut.visibility.gl.driver import Driver
from abut.visibility.gl.framebuffer import Screen, screen_of
from abut.visibility.gl.order import DrawingOrder
from abut.visibility.gl.programs import box_program, flag_program, query_program

BOX_VERTICES, TRIANGLE_VERTICES = 6, 3
BOX_BYTES = 144
MOST_REACH = 64.0  # pictures; what is at stake lies in one
GROUP = 64  # threads of the compute shader
IMAGE_ACCESS = 0x20  # GL_SHADER_IMAGE_ACCESS_BARRIER_BIT
MOST_TURNS = 1024  # drawn one by one, where one draw could do: fragments in order take their time


@dataclass(frozen=True)
class Sight:
    """The direction of a view: along an axis, from its low end or (``turned``) its high end."""

    axis: int
    turned: bool = False

    @property
    def axes(self) -> tuple[int, int, int]:
        """The scene's axes that run right, up and away."""
        return (self.axis + 1) % 3, (self.axis + 2) % 3, self.axis


class Raster:
    """Faces on the graphics device, as triangles or as fat boxes.

    Args:
        driver: Whose context is current.
        corners: (n, 3, 3) or (n, 9) float32 in [0, 1].
        pixels: Width and height of the picture.
        fat: Draw boxes that bound all a face may touch in a pixel (FAR), not triangles.
        reach: (3,) half axes of the ball around every point, in units of the corners.
    """

    def __init__(
        self,
        driver: Driver,
        corners: np.ndarray,
        pixels: int,
        fat: bool,
        reach: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
    ) -> None:
        self.driver, self.pixels, self.fat = driver, pixels, fat
        self.face_count = len(corners)
        self.reach = np.minimum(np.array(reach) * pixels, MOST_REACH * pixels)
        context = driver.context
        self._corners = context.buffer(np.ascontiguousarray(corners, dtype=np.float32))
        self._boxes = context.buffer(reserve=BOX_BYTES * self.face_count if fat else 16)
        self._flags = context.buffer(reserve=4 * self.face_count)
        self._sight = Sight(2)

    def look(self, sight: Sight) -> None:
        """Take another view."""
        self._sight = sight
        if not self.fat:
            return
        program = box_program(self.driver)
        self._set_view(program)
        program["coverage"] = self._coverage
        program["reach"] = tuple(self.reach[list(sight.axes)])
        program["face_count"] = self.face_count
        self._corners.bind_to_storage_buffer(0)
        self._boxes.bind_to_storage_buffer(1)
        program.run(-(-self.face_count // GROUP))
        self.driver.context.memory_barrier()

    def hidden_turns(self, order: DrawingOrder, *, touching_is_free: bool = False) -> np.ndarray:
        """(k,) bool: turns that have a fragment behind what was drawn before them.

        An occlusion query for each turn; results are read when all have been issued.
        """
        hidden = np.zeros(len(order.turns), dtype=bool)
        program, vertices = query_program(self.driver, self.fat)
        self._prepare(program, order)
        for origin in self._tiles():
            screen = self._screen()
            screen.clear_depth()
            self._set_tile(program, origin)
            tested = self._issue(vertices, order, screen, ">" if touching_is_free else ">=")
            asked = self.driver.queries[: len(tested)]
            hidden[tested] |= np.array([query.samples > 0 for query in asked], dtype=bool)
        return hidden

    def hidden_faces(self, order: DrawingOrder, *, touching_is_free: bool = False) -> np.ndarray:
        """(n,) bool: tested faces that have a fragment behind what was drawn before their turn.

        Two draws a turn; one for all where turns are many and the driver keeps fragments in order.
        """
        program, vertices = flag_program(self.driver, self.fat, _in_order(self.driver, order))
        self._prepare(program, order)
        program["touching_is_free"] = touching_is_free
        self._flags.write(bytes(self._flags.size))
        self._flags.bind_to_storage_buffer(3)
        for origin in self._tiles():
            self._screen().clear_nearest()
            self._set_tile(program, origin)
            self._draw_flags(vertices, order)
            self.driver.context.memory_barrier()  # before the next tile is cleared, or flags read
        return np.frombuffer(self._flags.read(), dtype=np.uint32) != 0

    def _issue(self, vertices: Any, order: DrawingOrder, screen: Screen, test: str) -> np.ndarray:
        """Draw and test turn by turn; the turns that were given a query, in order."""
        context, corner_count = self.driver.context, self._corner_count
        stops = (order.stops * corner_count).tolist()
        asked = np.flatnonzero(order.stops[:, 1] > order.stops[:, 0])
        queries = self._queries(len(asked))
        screen.depth.use()
        context.enable_only(context.DEPTH_TEST)
        with self._rasterised():
            for first, middle, last in stops:
                if middle > first:
                    context.depth_func, screen.depth.depth_mask = test, False
                    with next(queries):
                        vertices.render(vertices=middle - first, first=first)
                if last > middle:
                    context.depth_func, screen.depth.depth_mask = "<=", True
                    vertices.render(vertices=last - middle, first=middle)
        return asked

    def _draw_flags(self, vertices: Any, order: DrawingOrder) -> None:
        context, corner_count = self.driver.context, self._corner_count
        context.enable_only(context.NOTHING)
        if _in_order(self.driver, order):
            with self._rasterised():
                vertices.render(vertices=corner_count * len(order.codes))
            return
        with self._rasterised():
            for first, middle, last in (order.stops * corner_count).tolist():
                if middle > first:
                    vertices.render(vertices=middle - first, first=first)
                if last > middle:
                    context.memory_barrier(IMAGE_ACCESS)
                    vertices.render(vertices=last - middle, first=middle)
                    context.memory_barrier(IMAGE_ACCESS)

    def _prepare(self, program: Any, order: DrawingOrder) -> None:
        self._set_view(program)
        self._codes = self.driver.context.buffer(np.append(order.codes, np.uint32(0)))
        self._corners.bind_to_storage_buffer(0)
        self._boxes.bind_to_storage_buffer(1)
        self._codes.bind_to_storage_buffer(2)

    def _set_view(self, program: Any) -> None:
        program["pixels"] = float(self.pixels)
        _set(program, "axes", self._sight.axes)
        _set(program, "turned", float(self._sight.turned))

    def _set_tile(self, program: Any, origin: tuple[int, int]) -> None:
        _set(program, "origin", origin)
        program["side"] = float(self._side)

    @property
    def _corner_count(self) -> int:
        return BOX_VERTICES if self.fat else TRIANGLE_VERTICES

    @property
    def _coverage(self) -> float:
        """How far around a face to draw [pixels]: to the middle of every pixel that it touches.

        To that comes what snapping and float32 may take away. Where a primitive has a fragment in
        every pixel that it touches, that alone.
        """
        lost = 2.0 ** (1 - self.driver.subpixel_bits)
        lost += 2.0**-18 * (self.pixels + float(self.reach.max()))
        return lost + (0.5 if self.driver.conservative is None else 0.0)

    @property
    def _side(self) -> int:
        return min(self.pixels, self.driver.most_side)

    def _screen(self) -> Screen:
        return screen_of(self.driver, self._side)

    def _tiles(self) -> list[tuple[int, int]]:
        """Lower left corners of the tiles of the picture."""
        starts = range(0, self.pixels, self._side)
        return [(x, y) for y in starts for x in starts]

    def _queries(self, count: int) -> Iterator[Any]:
        held = self.driver.queries
        while len(held) < count:
            held.append(self.driver.context.query(samples=True))
        return iter(held)

    @contextmanager
    def _rasterised(self) -> Iterator[None]:
        """Conservatively, where boxes are drawn and the driver can."""
        way = self.driver.conservative if self.fat else None
        if way is None:
            yield
            return
        self.driver.context.enable_direct(way)
        try:
            yield
        finally:
            self.driver.context.disable_direct(way)


def _in_order(driver: Driver, order: DrawingOrder) -> bool:
    """Whether the driver is to keep all fragments of a pass in order."""
    return driver.interlock is not None and len(order.turns) > MOST_TURNS


def _set(program: Any, name: str, value: Any) -> None:
    """Set a uniform, unless the compiler found it to be of no use."""
    if name in program:
        program[name] = value
