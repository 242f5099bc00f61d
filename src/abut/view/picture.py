"""Off-screen pictures of meshes and curves: Warp casts the rays, Pillow writes the file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from abut.cases.shape import Shape
from abut.cases.shapes import plane, tube
from abut.core.device import resolve_device
from abut.errors import FileError
from abut.io.write import replacing
from abut.view.body import GLOW, GOLD, INK, SHADOW, Body, Color
from abut.view.camera import Camera
from abut.view.rays import Lens, trace_picture
from abut.view.render_scene import light_scene

GROUND_SIDE = 96
TUBE_SIDES = 10
FEW, MANY = 3, 12  # samples of a uniform pixel, and of one whose samples differ


def render(
    bodies: Sequence[Body],
    curves: Sequence[np.ndarray] = (),
    *,
    camera: Camera | None = None,
    size: tuple[int, int] = (1200, 800),
    curve_color: Color = GOLD,
    curve_radius: float = 0.006,
    wire: float = 0.15,
    around: np.ndarray | None = None,
    quality: float = 1.0,
    device: Any = None,
) -> np.ndarray:
    """Draw surfaces above a soft ground, and curves as bright tubes.

    Args:
        bodies: Surfaces, at least one.
        curves: Polylines (k, 3); one that ends in its first point is closed.
        camera: None views all bodies from the front right.
        size: Width and height [pixels].
        curve_color: sRGB, each in [0, 1].
        curve_radius: Radius of the tubes over the extent of the bodies.
        wire: Darkness of the edges of faces, in [0, 1].
        around: Points (n, 3) that determine camera, ground and scale, for steady films; None
            takes the vertices of the bodies.
        quality: Share of the rays taken, in (0, 1]; fewer is faster and coarser.
        device: None is the first CUDA device, else the CPU.

    Returns:
        (height, width, 3) uint8.
    """
    points = np.concatenate([b.shape.vertices for b in bodies]) if around is None else around
    extent = float(np.ptp(points, axis=0).max())
    camera = camera or Camera.around(points, aspect=size[0] / size[1])
    radius = curve_radius * extent
    curves = [curve for curve in curves if _arc_lengths(curve)[-1] > 0.1 * radius]
    tubes = [Body(_along(curve, radius), curve_color, finish=GLOW) for curve in curves]
    ground = Body(_ground(points, extent), INK, finish=SHADOW)
    options = (camera, extent, wire, quality, resolve_device(device))
    scene = light_scene(bodies, [*tubes, ground], *options)
    return trace_picture(scene.view, _lens(camera, size, quality))


def save_picture(path: Any, pixels: np.ndarray) -> Path:
    """Write a picture, in the format of the file name; creates folders.

    Raises:
        FileError: The file cannot be written, or its name says no format.
    """
    from PIL import Image

    if Path(path).suffix.lower() not in Image.registered_extensions():
        raise FileError(f"{path} should end in .png or another format of pictures.")
    with replacing(path, folders=True) as new:
        Image.fromarray(pixels).save(new, compress_level=7)
    return Path(path)


def _lens(camera: Camera, size: tuple[int, int], quality: float) -> Any:
    lens = Lens()
    lens.eye, lens.right = wp.vec3f(*camera.eye), wp.vec3f(*camera.right)
    lens.up, lens.ahead = wp.vec3f(*camera.up), wp.vec3f(*camera.ahead)
    lens.tangent = camera.tangent
    lens.width, lens.height = size
    lens.few, lens.many = max(2, round(FEW * quality)), max(2, round(MANY * quality))
    return lens


def _ground(points: np.ndarray, extent: float) -> Shape:
    """A plane just below all points, wide enough for their shadow."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    sheet = plane(GROUND_SIDE, GROUND_SIDE, 4.0 * extent)
    return sheet.moved((middle[0], middle[1], low[2] - 0.02 * extent))


def _along(curve: np.ndarray, radius: float) -> Shape:
    """A tube along a curve, resampled to steps of about the radius."""
    closed = len(curve) > 3 and bool((curve[0] == curve[-1]).all())
    lengths = _arc_lengths(curve)
    steps = max(int(lengths[-1] / (0.7 * radius)), 3)
    at = np.linspace(0, lengths[-1], steps + 1)
    line = np.stack([np.interp(at, lengths, axis) for axis in curve.T], axis=1)
    return tube(line[:-1] if closed else line, radius, TUBE_SIDES, closed=closed)


def _arc_lengths(curve: np.ndarray) -> np.ndarray:
    """Arc length from the first point of the curve to each of its points."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
