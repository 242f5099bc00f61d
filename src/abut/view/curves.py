"""Curves of a picture: antialiased lines, as the coverage and depth of each pixel."""

from collections.abc import Sequence

import numpy as np

from abut.view.camera import Camera

SPACING = 0.5  # of the discs that make a line [pixels]
SLOPE = 4.0  # lines lie on surfaces; those steeper than this may cover a rim of them
LONGEST = 20_000.0  # pixels of a segment that passes the camera


def draw_curves(
    curves: Sequence[np.ndarray], camera: Camera, size: tuple[int, int], radius: float
) -> np.ndarray:
    """Draw polylines (k, 3), also single points, as lines of half the width ``radius`` [pixels].

    Returns:
        (pixels, 2) float32: the share of each pixel that a line covers, and the distance of the
        line from the eye. Of several lines, the largest share and the least distance.
    """
    width, height = size
    pixel = 2 * camera.tangent / height
    cover = np.zeros(width * height, np.float32)
    depth = np.full(width * height, np.inf, np.float32)
    points = _resampled(curves, camera, pixel)
    offset = points - camera.eye
    ahead = offset @ camera.ahead
    seen = ahead > 0
    offset, ahead = offset[seen], ahead[seen] * pixel
    x = width / 2 + offset @ camera.right / ahead
    y = height / 2 - offset @ camera.up / ahead
    near = np.linalg.norm(offset, axis=1) * (1 - SLOPE * radius * pixel)
    reach = int(np.ceil(radius + 0.5))
    for dx in range(-reach, reach + 1):
        for dy in range(-reach, reach + 1):
            column, row = np.floor(x) + dx, np.floor(y) + dy
            share = np.clip(radius + 0.5 - np.hypot(column + 0.5 - x, row + 0.5 - y), 0, 1)
            hit = (share > 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
            at = (row[hit] * width + column[hit]).astype(np.int64)
            np.maximum.at(cover, at, share[hit].astype(np.float32) * min(1.0, 2 * radius))
            np.minimum.at(depth, at, near[hit].astype(np.float32))
    return np.column_stack([cover, depth])


def _resampled(curves: Sequence[np.ndarray], camera: Camera, pixel: float) -> np.ndarray:
    """Points of all curves about SPACING pixels apart; at least one of each curve."""
    curves = [curve for curve in curves if len(curve)]
    if not curves:
        return np.empty((0, 3))
    points = np.concatenate(curves)
    starts = np.cumsum([0] + [len(curve) for curve in curves[:-1]])
    ahead = (points - camera.eye) @ camera.ahead * pixel
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    nearest = np.minimum(ahead[1:], ahead[:-1])
    steps = np.minimum(lengths / np.maximum(nearest, lengths / LONGEST + 1e-300), LONGEST)
    steps[starts[1:] - 1] = 0.0  # from one curve to the next
    along = np.concatenate([[0.0], np.cumsum(steps)])
    at = np.arange(0.0, along[-1], SPACING)
    line = np.stack([np.interp(at, along, axis) for axis in points.T], axis=1)
    return np.concatenate([line, points[starts]])
