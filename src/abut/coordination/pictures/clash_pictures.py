"""Pictures of clashes: both parts, their common interior in red, faint surroundings."""

import io
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from abut.coordination.clashes import Clashes, Verdict
from abut.coordination.parts.part_table import PartTable
from abut.coordination.pictures.clash_cameras import ClashView, clash_views, row_chunks
from abut.coordination.pictures.clash_frame import PART_COLORS, part_frames
from abut.coordination.pictures.picture_meshes import (
    PictureMeshes,
    PosedPictureMesh,
    merged_mesh,
    picture_parts,
)
from abut.coordination.pictures.picture_rays import (
    PictureViews,
    clash_picture_kernel,
    clash_sample_kernel,
)
from abut.core.device import resolve_device
from abut.core.launch import launch
from abut.view.body import Color
from abut.view.curves import draw_curves

log = logging.getLogger("abut")

SIZE = (440, 330)
LIMIT = 500  # pictures
CHUNK = 16  # pictures of one launch
SAMPLES = 3
GLASS = 0.32  # opacity of a part that hides the contact
LINE_COLOR = np.array([0.62, 0.0, 0.02])  # sRGB
LINE_RADIUS = 0.9  # pixels
DOT_RADIUS = 3.5
MOST_LINES = 20_000  # segments of one picture
NEIGHBOURS = 40  # parts around a clash
NEIGHBOUR_FACES = 40_000  # of one picture


def clash_pictures(
    clashes: Clashes,
    rows: Sequence[int] | np.ndarray | None = None,
    size: tuple[int, int] = SIZE,
    *,
    limit: int | None = LIMIT,
    device: Any = None,
) -> dict[str, bytes]:
    """Draw clashes: part a in teal, part b in amber, common interior and contact in red.

    A part that hides the contact is drawn as glass, others around the clash are faint. Red shows
    through everything.

    Args:
        clashes: The clashes.
        rows: Rows to draw; None: all.
        size: Width and height [pixels].
        limit: Most pictures; the severest and deepest are drawn, and the log says how many are
            left out. None draws all.
        device: None is the first CUDA device, else the CPU.

    Returns:
        PNG by id of the clash.
    """
    asked = np.arange(len(clashes)) if rows is None else np.asarray(rows, np.int64)
    drawn = severest(clashes, asked, limit)
    if len(drawn) < len(asked):
        log.warning("%d clashes have no picture; the limit is %d.", len(asked) - len(drawn), limit)
    made = resolve_device(device)
    meshes = PictureMeshes(clashes.parts, made)
    out = {}
    for some in row_chunks(drawn.tolist(), CHUNK):
        for row, pixels in zip(some, _draw(clashes, some, meshes, size), strict=True):
            out[str(clashes.id[row])] = _png(pixels)
        meshes.trim()
    return out


def severest(clashes: Clashes, rows: np.ndarray, limit: int | None) -> np.ndarray:
    """At most ``limit`` rows in ascending order: first the severest, of equal ones the deepest."""
    if limit is None or len(rows) <= limit:
        return np.sort(rows)
    rank = {str(verdict): k for k, verdict in enumerate(Verdict)}
    severity = np.array([rank[str(verdict)] for verdict in clashes.verdict[rows]])
    depth = np.nan_to_num(clashes.depth[rows], nan=0.0)
    order = np.lexsort((clashes.distance[rows], -depth, severity))
    return np.sort(rows[order[:limit]])


def _draw(
    clashes: Clashes, rows: Sequence[int], meshes: PictureMeshes, size: tuple[int, int]
) -> np.ndarray:
    """(rows, height, width, 3) uint8."""
    parts = clashes.parts
    ends = [parts.rows_of(side[list(rows)].tolist()) for side in (clashes.a, clashes.b)]
    pairs = list(zip(ends[0].tolist(), ends[1].tolist(), strict=True))
    frames = part_frames(clashes.box[list(rows)], parts, np.stack(ends, axis=1))
    points = np.stack([clashes.point_a[list(rows)], clashes.point_b[list(rows)]], axis=1)
    views = clash_views(meshes, pairs, frames, points, size[0] / size[1])
    groups = []
    for pair, frame in zip(pairs, frames, strict=True):
        group = [meshes.placed(row) for row in pair]
        around = [meshes.placed(row) for row in parts_around(parts, pair, frame)]
        if around:
            group.append(merged_mesh(around, frame.mean(axis=0), meshes.device))
        groups.append(group)
    pixels = _cast(meshes, groups, views, size)
    marked = (clashes.distance[list(rows)] > 0) | (clashes.verdict[list(rows)] == Verdict.TOUCH)
    for k, view in enumerate(views):
        dots = points[k] if marked[k] else points[k, :0]
        pixels[k] = _with_lines(pixels[k], view, dots, size)
    return pixels


def parts_around(
    parts: PartTable, pair: tuple[int, int], frame: np.ndarray, most: int = NEIGHBOURS
) -> list[int]:
    """Parts around a clash, those of the fewest faces first, as many as the limits allow."""
    near = (parts.boxes[:, 0] <= frame[1]).all(axis=1) & (parts.boxes[:, 1] >= frame[0]).all(axis=1)
    near[list(pair)] = False
    rows = np.flatnonzero(near)
    counts = np.array([len(parts.part_meshes[k].faces) for k in parts.mesh[rows]], np.int64)
    order = np.argsort(counts, kind="stable")
    fits = (np.cumsum(counts[order]) <= NEIGHBOUR_FACES) & (counts[order] > 0)
    return np.sort(rows[order][fits][:most]).tolist()


def _cast(
    meshes: PictureMeshes,
    groups: list[list[PosedPictureMesh]],
    views: list[ClashView],
    size: tuple[int, int],
) -> np.ndarray:
    """Cast all rays of some pictures."""
    device, cameras = meshes.device, [view.camera for view in views]
    parts = picture_parts(groups, [camera.eye for camera in cameras], device)
    seen = PictureViews()
    for name in ("right", "up", "ahead"):
        rows = np.array([getattr(camera, name) for camera in cameras], np.float32)
        setattr(seen, name, wp.array(rows, dtype=wp.vec3f, device=device))
    opacity = np.array([[GLASS if g else 1.0 for g in view.glass] for view in views], np.float32)
    seen.opacity = wp.array(opacity, dtype=wp.float32, device=device)
    paint = np.array([_linear(PART_COLORS[side]) for side in "ab"], np.float32)
    seen.paint = wp.array(paint, dtype=wp.vec3f, device=device)
    seen.tangent, seen.samples = cameras[0].tangent, SAMPLES
    seen.width, seen.height = size
    seen.world_up = wp.vec3f(0.0, 0.0, 1.0)
    count = len(views) * size[0] * size[1]
    colors = wp.empty(count, dtype=wp.vec3f, device=device)
    pixels = wp.empty((count, 3), dtype=wp.uint8, device=device)
    launch(clash_sample_kernel, count, [parts, seen, colors], device, grain=size[0])
    launch(clash_picture_kernel, count, [parts, seen, colors, pixels], device, grain=size[0])
    return pixels.numpy().reshape(len(views), size[1], size[0], 3).copy()


def _with_lines(
    pixels: np.ndarray, view: ClashView, ends: np.ndarray, size: tuple[int, int]
) -> np.ndarray:
    """The picture with the curves of contact, or with the line between two nearest points."""
    curves = list(view.lines[:: max(1, -(-len(view.lines) // MOST_LINES))])
    dots = [] if curves else [ends[:1], ends[1:]]
    cover = draw_curves(curves or [ends], view.camera, size, LINE_RADIUS)[:, 0]
    cover = np.maximum(cover, draw_curves(dots, view.camera, size, DOT_RADIUS)[:, 0])
    share = cover.reshape(size[1], size[0], 1)
    return (pixels * (1 - share) + 255 * LINE_COLOR * share + 0.5).astype(np.uint8)


def _linear(color: Color) -> np.ndarray:
    srgb = np.asarray(color)
    return np.where(srgb < 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _png(pixels: np.ndarray) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png", compress_level=5)
    return out.getvalue()
