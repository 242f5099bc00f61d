"""Raster: draws the faces of a scene along an axis and tests their visibility in order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from abut.visibility.gl.driver import Driver
from abut.visibility.gl.shaders import box_program, flag_program, query_program
from abut.visibility.settings import View

CORNERS = {True: 6, False: 3}  # indices of a box, vertices of a triangle
BOX_BYTES = 144
MOST_REACH = 64.0  # viewports; the whole scene lies in one
GROUP = 64  # threads of the compute shader
IMAGE_ACCESS = 0x20  # GL_SHADER_IMAGE_ACCESS_BARRIER_BIT
MOST_BATCHES = 1024  # drawn one by one; ordered fragments are slower for fewer
R32UI = 0x8236


@dataclass(frozen=True)
class DrawingOrder:
    """The faces of a pass in drawing order: of each batch the tested faces, then the drawn ones."""

    codes: np.ndarray  # (n,) uint32, face << 1 | drawn
    stops: np.ndarray  # (k, 3) first tested face, first drawn face, end of each batch in ``codes``

    def tests(self, primitive_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The primitives of tested faces, and (k + 1,) where each begins among these faces."""
        tested = primitive_of[self.codes[self.codes & 1 == 0] >> 1]
        starts = np.flatnonzero(np.diff(tested, prepend=-1))
        return tested[starts], np.append(starts, len(tested))


@dataclass(frozen=True)
class DrawBatches:
    """The order of a pass that tests and draws every face."""

    codes: np.ndarray  # (2 n,) uint32, face << 1 | drawn
    stops: np.ndarray  # (k, 3) of all batches, see DrawingOrder

    @staticmethod
    def of(batch: np.ndarray) -> "DrawBatches":
        """Draw batches in ascending order; ``batch``: (n,) that of each face, from 0."""
        faces = np.argsort(batch, kind="stable").astype(np.uint32)
        sizes = np.bincount(batch, minlength=1)
        ends = np.cumsum(sizes)
        codes = np.empty(2 * len(batch), dtype=np.uint32)
        place = np.arange(len(batch)) + np.repeat(ends - sizes, sizes)
        codes[place] = faces << 1
        codes[place + np.repeat(sizes, sizes)] = faces << 1 | 1
        starts = ends - sizes
        return DrawBatches(codes, np.stack([2 * starts, starts + ends, 2 * ends], axis=1))

    def order(self, tested: np.ndarray, drawn: np.ndarray) -> DrawingOrder:
        """The pass that tests and draws the faces of (n,) masks."""
        wanted = np.stack([tested, drawn], axis=1).ravel()
        kept = np.flatnonzero(wanted.take(self.codes))
        stops = np.searchsorted(kept, self.stops)
        return DrawingOrder(self.codes.take(kept), stops[stops[:, 2] > stops[:, 0]])


class DepthTarget:
    """Off-screen depth buffers of one tile, for the fixed pipeline and for shaders."""

    def __init__(self, driver: Driver, side: int) -> None:
        self.context, self.size = driver.context, (side, side)

    @cached_property
    def depth(self) -> Any:
        """A framebuffer with nothing but depth."""
        buffer = self.context.depth_renderbuffer(self.size)
        return self.context.framebuffer(depth_attachment=buffer)

    @cached_property
    def _nearest(self) -> tuple[Any, Any, Any]:
        """The image in which shaders keep the nearest depth, a framebuffer of it, an empty one."""
        image = self.context.texture(self.size, 1, dtype="f4")
        target = self.context.framebuffer(color_attachments=[image])
        return image, target, self.context.empty_framebuffer(self.size)

    def clear_depth(self) -> None:
        """Clear the depth buffer."""
        self.depth.depth_mask = True
        self.depth.clear(depth=1.0)

    def clear_nearest(self) -> None:
        """Clear and bind the image in which shaders keep the nearest depth."""
        image, target, nothing = self._nearest
        target.clear(1.0)  # as bits, greater than any depth below 1
        nothing.use()
        image.bind_to_image(0, read=True, write=True, format=R32UI)


def target_of(driver: Driver, side: int) -> DepthTarget:
    """The driver's depth target of a size; the last one used is cached."""
    if side not in driver.targets:
        driver.targets.clear()
        driver.targets[side] = DepthTarget(driver, side)
    return driver.targets[side]


class Raster:
    """Faces on the graphics device, as triangles or as fat boxes.

    Args:
        driver: Whose context is current.
        corners: (n, 3, 3) or (n, 9) float32 in [0, 1].
        pixels: Width and height of the viewport.
        fat: Draw boxes that bound all points within half a pixel of a face (FAR), not triangles.
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
        self._view = View("z")

    def set_view(self, view: View) -> None:
        """Choose the view to draw."""
        self._view = view
        if not self.fat:
            return
        program = box_program(self.driver)
        self._set_uniforms(program)
        program["coverage"] = self._coverage
        program["reach"] = tuple(self.reach[list(view.axes)])
        program["face_count"] = self.face_count
        self._corners.bind_to_storage_buffer(0)
        self._boxes.bind_to_storage_buffer(1)
        program.run(-(-self.face_count // GROUP))
        self.driver.context.memory_barrier()

    def occluded_primitives(
        self, order: DrawingOrder, primitive_of: np.ndarray, *, strict: bool = False
    ) -> np.ndarray:
        """(k,) bool: primitives that have a fragment behind a batch drawn before theirs.

        Issues an occlusion query per primitive, then reads all results. The faces of a primitive
        are in one batch. ``strict``: equal depths do not occlude.
        """
        occluded = np.zeros(primitive_of.max(initial=-1) + 1, dtype=bool)
        tested, starts = order.tests(primitive_of)
        program, vertices = query_program(self.driver, self.fat)
        self._prepare(program, order)
        for origin in self._tiles():
            target = self._target()
            target.clear_depth()
            self._set_tile(program, origin)
            self._issue(vertices, order, starts, target, ">" if strict else ">=")
            asked = self.driver.queries[: len(tested)]
            occluded[tested] |= np.array([query.samples > 0 for query in asked], dtype=bool)
        return occluded

    def occluded_faces(self, order: DrawingOrder, *, strict: bool = False) -> np.ndarray:
        """(n,) bool: tested faces that have a fragment behind a batch drawn before theirs.

        Two draws per batch; or one for all, where there are many batches and the driver keeps
        fragments in order.
        """
        program, vertices = flag_program(self.driver, self.fat, _in_order(self.driver, order))
        self._prepare(program, order)
        program["strict"] = strict
        self._flags.write(bytes(self._flags.size))
        self._flags.bind_to_storage_buffer(3)
        for origin in self._tiles():
            self._target().clear_nearest()
            self._set_tile(program, origin)
            self._draw_flags(vertices, order)
            self.driver.context.memory_barrier()  # before the next clear or read
        return np.frombuffer(self._flags.read(), dtype=np.uint32) != 0

    def _issue(
        self,
        vertices: Any,
        order: DrawingOrder,
        starts: np.ndarray,
        target: DepthTarget,
        test: str,
    ) -> None:
        """Batch by batch, test each primitive, then draw all faces at once."""
        context, held = self.driver.context, self._queries(len(starts) - 1)
        target.depth.use()
        context.enable_only(context.DEPTH_TEST)
        query = 0
        with self._rasterised():
            for first, middle, last in order.stops.tolist():
                context.depth_func, target.depth.depth_mask = test, False
                at = first
                while at < middle:
                    size = int(starts[query + 1] - starts[query])
                    with held[query]:
                        self._draw(vertices, at, at + size)
                    at, query = at + size, query + 1
                if last > middle:
                    context.depth_func, target.depth.depth_mask = "<=", True
                    self._draw(vertices, middle, last)

    def _draw_flags(self, vertices: Any, order: DrawingOrder) -> None:
        context = self.driver.context
        context.enable_only(context.NOTHING)
        if _in_order(self.driver, order):
            with self._rasterised():
                self._draw(vertices, 0, len(order.codes))
            return
        with self._rasterised():
            for first, middle, last in order.stops.tolist():
                if middle > first:
                    self._draw(vertices, first, middle)
                if last > middle:
                    context.memory_barrier(IMAGE_ACCESS)
                    self._draw(vertices, middle, last)
                    context.memory_barrier(IMAGE_ACCESS)

    def _draw(self, vertices: Any, first: int, last: int) -> None:
        """Draw faces of the order."""
        corners = CORNERS[self.fat]
        vertices.render(vertices=corners * (last - first), first=corners * first)

    def _prepare(self, program: Any, order: DrawingOrder) -> None:
        self._set_uniforms(program)
        self._codes = self.driver.context.buffer(np.append(order.codes, np.uint32(0)))
        self._corners.bind_to_storage_buffer(0)
        self._boxes.bind_to_storage_buffer(1)
        self._codes.bind_to_storage_buffer(2)

    def _set_uniforms(self, program: Any) -> None:
        program["pixels"] = float(self.pixels)
        _set(program, "axes", self._view.axes)
        _set(program, "flipped", float(self._view.flipped))

    def _set_tile(self, program: Any, origin: tuple[int, int]) -> None:
        _set(program, "origin", origin)
        program["side"] = float(self._side)

    @property
    def _coverage(self) -> float:
        """Margin to draw around a face [pixels], to reach the centre of every pixel it touches.

        The margin covers snapping and float32 rounding; without conservative rasterisation, also
        half a pixel.
        """
        margin = 2.0 ** (1 - self.driver.subpixel_bits)
        margin += 2.0**-18 * (self.pixels + float(self.reach.max()))
        return margin + (0.5 if self.driver.conservative is None else 0.0)

    @property
    def _side(self) -> int:
        return min(self.pixels, self.driver.most_side)

    def _target(self) -> DepthTarget:
        return target_of(self.driver, self._side)

    def _tiles(self) -> list[tuple[int, int]]:
        """Lower left corners of the tiles of the viewport."""
        starts = range(0, self.pixels, self._side)
        return [(x, y) for y in starts for x in starts]

    def _queries(self, count: int) -> list[Any]:
        held = self.driver.queries
        while len(held) < count:
            held.append(self.driver.context.query(samples=True))
        return held

    @contextmanager
    def _rasterised(self) -> Iterator[None]:
        """Enable conservative rasterisation, where boxes are drawn and the driver supports it."""
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
    """Whether one draw does a whole pass, with fragments kept in order by the driver."""
    return driver.interlock is not None and len(order.stops) > MOST_BATCHES


def _set(program: Any, name: str, value: Any) -> None:
    """Set a uniform, unless the compiler has removed it."""
    if name in program:
        program[name] = value
