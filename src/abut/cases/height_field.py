"""Height fields: closed solids below a grid of heights."""

from typing import Any

import numpy as np

from abut.cases.shape import Shape, grid_faces


def height_field(heights: Any, size: tuple[float, float], depth: float) -> Shape:
    """The closed solid between a grid of heights and the plane z = -depth.

    A cell is two triangles with the diagonal from its first row and column to its last ones, as in
    MuJoCo.

    Args:
        heights: (m, n), rows along y and columns along x, above -depth.
        size: Extents along x and y; the middle is the origin.
        depth: Of the plane below.
    """
    heights = np.asarray(heights, np.float64)
    rows, columns = heights.shape
    x, y = (s * (np.arange(n) / (n - 1) - 0.5) for s, n in zip(size, (columns, rows), strict=True))
    top = np.stack([*np.meshgrid(x, y), heights], axis=-1).reshape(-1, 3)
    index = np.arange(rows * columns).reshape(rows, columns)
    loop = np.concatenate([index[0, :-1], index[:-1, -1], index[-1, :0:-1], index[:0:-1, 0]])
    below = top[loop] * [1, 1, 0] - [0, 0, depth]
    centre = np.array([[0.0, 0.0, -depth]])
    low = len(top) + np.arange(len(loop))
    after, low_after = np.roll(loop, -1), np.roll(low, -1)
    faces = [
        grid_faces(rows, columns, wrap=(False, False)),
        np.column_stack([loop, low, low_after]),
        np.column_stack([loop, low_after, after]),
        np.column_stack([low_after, low, np.full(len(loop), len(top) + len(loop))]),
    ]
    return Shape(np.concatenate([top, below, centre]), np.concatenate(faces).astype(np.int32))
