"""GlVisibility: visibility queries answered by the graphics pipeline."""

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.errors import OptionError
from abut.operands.soup import Soup
from abut.options import Level
from abut.visibility.culler import VisibilityQuery
from abut.visibility.gl.draw_rounds import MARGIN, draw_rounds, object_boxes
from abut.visibility.gl.driver import driver
from abut.visibility.gl.raster import DrawBatches, DrawingOrder, Raster
from abut.visibility.settings import Settings, View

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROUNDING = 1.001  # of distances: covers float32 and MOST_REACH of Raster


@wp.kernel
def unit_corners_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    low: wp.vec3d,
    size: wp.vec3d,
    # out
    corners_out: wp.array2d[wp.float32],
):
    """Scale the corners of faces to the unit cube of the scene's box."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        f = faces[i]
        for k in range(3):
            p = wp.cw_div(points[f[k]] * wp.float64(0.5) - low, size)
            for axis in range(3):
                x = wp.clamp(p[axis], wp.float64(0.0), wp.float64(1.0))
                corners_out[i, 3 * k + axis] = wp.float32(x)


def unit_corners_of(soup: Soup) -> np.ndarray:
    """(m, 9) float32 corners of each face, from 0 to 1 within the scene's box."""
    corners = wp.empty((soup.face_count, 9), dtype=wp.float32, device=soup.device)
    low, size = wp.vec3d(*(soup.bounds[0] / 2)), wp.vec3d(*half_size(soup))
    args = [soup.points, soup.faces, low, size, corners]
    launch(unit_corners_kernel, soup.face_count, args, soup.device)
    return corners.numpy()


def half_size(soup: Soup) -> np.ndarray:
    """(3,) half the size of the scene; 1 where it is flat."""
    half = soup.bounds[1] / 2 - soup.bounds[0] / 2
    return np.where(half > 0, half, 1.0)


class GlVisibility:
    """Answers the visibility queries of one culling of a soup as it is now, on this thread.

    Conservative methods draw fat boxes, the others draw triangles. A batch is the faces of objects
    that share no pixel, see draw_rounds; or, within objects, one face. Objects have an occlusion
    query each. The shader tests faces: batch by batch, or in one draw where the driver keeps
    fragments in order; without that, within objects, every face has an occlusion query.

    Guarantee:
        FAR: Conservative on every driver that conforms to OpenGL.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        if settings.within and settings.conservative:
            raise OptionError(
                "backend 'gl' cannot exclude neighbours, and fat neighbours always "
                "overlap; for 'far' within objects use backend='warp'."
            )
        self.driver = driver()
        self.within, self.conservative = settings.within, settings.conservative
        self.object_of = soup.object_of.numpy()
        self.primitive_of = np.arange(soup.face_count) if self.within else self.object_of
        corners = unit_corners_of(soup)
        reach = 0.25 * settings.distance * ROUNDING / half_size(soup)
        with self.driver.current():
            self.raster = Raster(
                self.driver, corners, settings.pixels, settings.conservative, reach
            )
        self._boxes = object_boxes(corners, self.object_of, reach + MARGIN / settings.pixels)
        self._view: View | None = None
        self._batches: dict[tuple[View, bool], DrawBatches] = {}

    def __call__(self, asked: VisibilityQuery) -> tuple[np.ndarray, int]:
        """(Fully visible primitives, number of faces drawn) of a pass."""
        tested, drawn = asked.tested, asked.drawn
        if asked.level is Level.OBJECT:
            tested, drawn = tested[self.object_of], drawn[self.object_of]
        order = self._batches_of(asked.view, asked.forward).order(tested, drawn)
        with self.driver.current():
            if asked.view != self._view:
                self.raster.set_view(asked.view)
                self._view = asked.view
            occluded = self._occluded(asked, order)
        return ~occluded, len(order.codes)

    def _batches_of(self, view: View, forward: bool) -> DrawBatches:
        """The batches of all faces, in drawing order."""
        if (view, forward) not in self._batches:
            batch = self.primitive_of if self.within else self._rounds_of(view)
            batch = batch if forward else batch.max(initial=0) - batch
            self._batches[view, forward] = DrawBatches.of(batch)
        return self._batches[view, forward]

    def _rounds_of(self, view: View) -> np.ndarray:
        """(n,) the rounds of faces, those of their objects."""
        (low, high), axes = self._boxes, view.axes[:2]
        rounds = np.zeros(self.object_of.max(initial=-1) + 1, np.int32)
        rounds[np.unique(self.object_of)] = draw_rounds(low[:, axes], high[:, axes])
        return rounds[self.object_of]

    def _occluded(self, asked: VisibilityQuery, order: DrawingOrder) -> np.ndarray:
        strict = self.within and not self.conservative
        in_shader = self.driver.interlock is not None or not self.within
        if asked.level is Level.FACE and in_shader:
            return self.raster.occluded_faces(order, strict=strict)
        occluded = np.zeros(len(asked.tested), dtype=bool)
        found = self.raster.occluded_primitives(order, self.primitive_of, strict=strict)
        occluded[: len(found)] = found
        return occluded
