"""Points and segments as faces of zero area: with a padding they are balls and capsules."""

from typing import Any

import numpy as np

from abut.cases.shape import Shape
from abut.errors import OptionError


def point_cloud(points: Any) -> Shape:
    """A face at each of (n, 3) points, such as the points of a depth camera."""
    return _faces_at(points, (3,), [0, 0, 0])


def segments(ends: Any) -> Shape:
    """A face along each of (n, 2, 3) segments; the axis of a capsule is one."""
    return _faces_at(ends, (2, 3), [0, 1, 1])


def _faces_at(given: Any, shape: tuple[int, ...], corners: list[int]) -> Shape:
    rows = np.asarray(given, np.float64)
    if rows.shape[1:] != shape or not len(rows):
        raise OptionError(
            f"an array of shape (n, {', '.join(map(str, shape))}) was expected, not {rows.shape}."
        )
    vertices = rows.reshape(-1, 3)
    each = len(vertices) // len(rows)
    faces = np.arange(len(rows))[:, None] * each + np.array(corners)
    return Shape(vertices.copy(), faces.astype(np.int32))
