"""FieldSlice: the distance field of an object on a plane of the page, with isolines."""

from typing import Any

import numpy as np

from abut.sdf.distance_field import DistanceField
from abut.view.body import CORAL, INK, TEAL
from abut.view.page.live_scene import LiveScene
from abut.view.page.page_frame import PageFrame
from abut.view.page.section import Plane

RESOLUTION = 96  # samples of the field along its longest side
PIXELS = 320  # along the longest side of the picture
REACH = 0.35  # of the picture around the object, over the object's extent
LEVELS = 24  # isolines over the picture, about
LINE = 0.06  # half the width of an isoline, over their spacing
OPACITY = 235


class FieldSlice:
    """A picture of signed distances: inside coral, outside teal, isolines dark, zero darkest.

    Attributes:
        wanted: Whether the slice is shown where there is a section.
    """

    def __init__(self, server: Any, live: LiveScene, frame: PageFrame) -> None:
        self.scene, self.live, self.frame = server.scene, live, frame
        self.wanted = False
        self.handle: Any = None
        self._shown: Any = None
        self._fields: dict[int, tuple[Any, DistanceField]] = {}

    def show(self, row: int | None, plane: Plane | None) -> None:
        """Show the field of an object on a plane, or nothing."""
        shown = None
        if self.wanted and plane is not None and row is not None:
            shown = (row, plane, self.live.poses[row].tobytes(), id(self.live.given.get(row)))
        if shown == self._shown:
            return
        if self.handle is not None:
            self.handle.remove()
        self.handle = None if shown is None else self._add(shown[0], shown[1])
        self._shown = shown

    def _add(self, row: int, plane: Plane) -> Any:
        axis, offset = plane.axis, plane.offset
        pose = self.live.poses[row]
        points = self.live.points(row) @ pose[:3, :3].T + pose[:3, 3]
        low, high = points.min(axis=0), points.max(axis=0)
        low, high = low - REACH * (high - low).max(), high + REACH * (high - low).max()
        values = slice_distances(self._field(row), pose, plane, low, high)
        u, v = (axis + 1) % 3, (axis + 2) % 3
        middle = (low + high) / 2
        middle[axis] = offset
        size = self.frame.scale * (high - low)
        place: Any = {"wxyz": _turn(axis), "position": self.frame.points(middle)}
        place |= {"cast_shadow": False, "receive_shadow": False, "format": "png"}
        sides = float(size[u]), float(size[v])
        return self.scene.add_image("/field", paint_distances(values), *sides, **place)

    def _field(self, row: int) -> DistanceField:
        mesh = self.live.meshes[row]
        held = self._fields.get(row)
        if held is None or held[0] is not mesh.vertices:
            self._fields[row] = held = mesh.vertices, DistanceField(mesh, resolution=RESOLUTION)
        return held[1]


def slice_distances(
    field: DistanceField,
    pose: np.ndarray,
    plane: Plane,
    low: np.ndarray,
    high: np.ndarray,
    pixels: int = PIXELS,
) -> np.ndarray:
    """Signed distances (rows, columns) at pixels of a plane, of an object that is posed.

    Columns run along the axis after the plane's, rows along the next one.
    """
    axis, offset = plane.axis, plane.offset
    u, v = (axis + 1) % 3, (axis + 2) % 3
    step = max(high[u] - low[u], high[v] - low[v]) / pixels
    across, down = (np.arange(low[k] + step / 2, high[k], step) for k in (u, v))
    points = np.empty((len(down), len(across), 3))
    points[..., u], points[..., v], points[..., axis] = across, down[:, None], offset
    local = (points.reshape(-1, 3) - pose[:3, 3]) @ pose[:3, :3]
    return field.sample(local).distance.numpy().reshape(points.shape[:2])


def paint_distances(values: np.ndarray) -> np.ndarray:
    """(rows, columns, 4) uint8: colours by sign, paler near the surface, and isolines."""
    most = float(np.abs(values).max()) or 1.0
    spacing = isoline_spacing(float(np.ptp(values)) or most)
    share = 0.25 + 0.6 * np.abs(values)[..., None] / most
    color = np.where(values[..., None] < 0, CORAL, TEAL)
    picture = 1 - share * (1 - color)
    off = np.abs(values / spacing - np.round(values / spacing))
    line = (off < LINE)[..., None]
    picture = np.where(line, 0.55 * picture, picture)
    picture = np.where((np.abs(values) < 2 * LINE * spacing)[..., None], INK, picture)
    opaque = np.full((*values.shape, 1), OPACITY)
    return np.concatenate([np.round(255 * picture), opaque], axis=2).astype(np.uint8)


def isoline_spacing(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that about LEVELS isolines fit into ``span``."""
    power = 10.0 ** np.floor(np.log10(span / LEVELS))
    return float(power * next(k for k in (1, 2, 5, 10) if k * power >= span / LEVELS * 0.999))


def _turn(axis: int) -> np.ndarray:
    """Quaternion that takes columns, rows and the normal of a picture to their axes."""
    from viser.transforms import SO3

    return SO3.from_matrix(np.roll(np.eye(3), axis + 1, axis=0)).wxyz
