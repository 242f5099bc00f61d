"""Off-screen pictures of meshes and curves: Warp casts the rays, Pillow writes the file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from abut.cases.shape import Shape
from abut.cases.shapes import plane
from abut.core.device import resolve_device
from abut.errors import FileError, MeshError, OptionError
from abut.io.write import replacing, require_writable
from abut.view.body import GOLD, INK, SHADOW, Body, Color, bodies_of
from abut.view.camera import Camera, turn_of
from abut.view.curves import draw_curves
from abut.view.rays import Lens, trace_picture
from abut.view.render_scene import light_scene

MOST_PIXELS = 1 << 26
GROUND_SIDE = 96
SAMPLES = 5  # of a pixel that differs from its neighbours


def render(
    bodies: Sequence[Any],
    curves: Sequence[np.ndarray] = (),
    *,
    camera: Camera | None = None,
    size: tuple[int, int] = (1200, 800),
    curve_color: Color = GOLD,
    curve_width: float = 2.5,
    curve_radius: float | None = None,
    wire: float = 0.15,
    around: np.ndarray | None = None,
    vertical: str = "z",
    quality: float = 1.0,
    device: Any = None,
) -> np.ndarray:
    """Draw surfaces above a soft ground, and curves as bright lines.

    Args:
        bodies: Surfaces, at least one. A mesh, a trimesh or (vertices, faces) takes the next
            colour of the palette.
        curves: Polylines (k, 3); one point is a dot.
        camera: None views all bodies from the front right.
        size: Width and height [pixels].
        curve_color: sRGB, each in [0, 1].
        curve_width: Width of the lines [pixels].
        curve_radius: Half their width over the extent of the bodies instead.
        wire: Darkness of the edges of faces, in [0, 1].
        around: Points (n, 3) that determine camera, ground and scale, for steady films; None
            takes the vertices of the bodies.
        vertical: The axis that points upwards, ``"z"`` or ``"y"``; a camera has its own.
        quality: Share of the rays taken, in (0, 1]; fewer is faster and coarser.
        device: None is the first CUDA device, else the CPU.

    Returns:
        (height, width, 3) uint8.

    Raises:
        MeshError: The bodies have no face.
        OptionError: The picture has no pixel, or too many.
    """
    _require_size(size)
    bodies = [body for body in bodies_of(bodies) if len(body.shape.faces)]
    if not bodies:
        raise MeshError("a picture takes a body with at least one face.")
    points = np.concatenate([b.shape.vertices for b in bodies]) if around is None else around
    camera = camera or Camera.around(points, aspect=size[0] / size[1], vertical=vertical)
    origin = (points.min(axis=0) + points.max(axis=0)) / 2
    turn = turn_of(camera.vertical).T
    camera = camera.in_studio(origin)
    points = (points - origin) @ turn
    extent = float(np.ptp(points, axis=0).max()) or 1.0
    bodies = [replace(b, shape=((b.shape.vertices - origin) @ turn, b.shape.faces)) for b in bodies]
    lines = np.empty((0, 2), np.float32)
    if len(curves):
        radius = curve_width / 2
        if curve_radius is not None:
            pixel = 2 * camera.tangent / size[1]
            radius = float(curve_radius * extent / (pixel * np.linalg.norm(camera.eye)))
        lines = draw_curves([(c - origin) @ turn for c in curves], camera, size, radius)
    ground = [Body(_ground(points, extent), INK, finish=SHADOW)]
    above = camera.eye[2] > ground[0].shape.vertices[0, 2]
    options = (camera, extent, wire, quality, resolve_device(device))
    scene = light_scene(bodies, ground if above else [], *options)
    return trace_picture(scene.view, _lens(camera, size, quality, curve_color), lines)


def save_picture(path: Any, pixels: np.ndarray) -> Path:
    """Write a picture, in the format of the file name; creates folders.

    Raises:
        FileError: The file cannot be written, or its name has no known suffix.
    """
    from PIL import Image

    _require_format(path)
    with replacing(path, folders=True) as new:
        Image.fromarray(pixels).save(new, compress_level=7)
    return Path(path)


def require_picture(path: Any, size: tuple[int, int]) -> None:
    """Refuse a picture that is too large or cannot be written, before any work is done for it."""
    _require_size(size)
    _require_format(path)
    require_writable(path, folders=True)


def _require_size(size: tuple[int, int]) -> None:
    if min(size) < 1 or size[0] * size[1] > MOST_PIXELS:
        raise OptionError(
            f"a picture has from 1 to at most {MOST_PIXELS:,} pixels, not {size[0]} x {size[1]}."
        )


def _require_format(path: Any) -> None:
    from PIL import Image

    if Path(path).suffix.lower() not in Image.registered_extensions():
        raise FileError(f"{path} should end in .png or another format of pictures.")


def _lens(camera: Camera, size: tuple[int, int], quality: float, line_color: Color) -> Any:
    lens = Lens()
    lens.eye, lens.right = wp.vec3f(*camera.eye), wp.vec3f(*camera.right)
    lens.up, lens.ahead = wp.vec3f(*camera.up), wp.vec3f(*camera.ahead)
    lens.tangent = camera.tangent
    lens.width, lens.height = size
    lens.samples = max(2, round(SAMPLES * quality))
    lens.line_color = wp.vec3f(*line_color)
    return lens


def _ground(points: np.ndarray, extent: float) -> Shape:
    """A plane just below all points, wide enough for their shadow."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    sheet = plane(GROUND_SIDE, GROUND_SIDE, 4.0 * extent)
    return sheet.moved((middle[0], middle[1], low[2] - 0.02 * extent))
