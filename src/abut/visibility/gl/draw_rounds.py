"""Rounds of drawing: objects that cannot share a pixel of a view are tested and drawn together."""

import numpy as np

CELLS = 128  # along a side of the view
MARGIN = 2.01  # pixels around an object; half of one is needed, and a fraction of it for rounding


def draw_rounds(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the round of each rectangle, from 0.

    A rectangle comes in a later round than every rectangle before it that it overlaps. So rounds in
    ascending order keep the order of overlapping ones, and in descending order the opposite.

    Args:
        low: (n, 2) lower corners in the unit square; beyond it they count as on its border.
        high: (n, 2) upper corners.
    """
    first = np.clip(np.floor(low * CELLS), 0, CELLS - 1).astype(np.int32)
    last = np.clip(np.floor(high * CELLS), 0, CELLS - 1).astype(np.int32)
    free = np.zeros((CELLS, CELLS), np.int32)  # first round without a rectangle in a cell
    rounds = np.zeros(len(low), np.int32)
    for k, ((x, y), (u, v)) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        cells = free[x : u + 1, y : v + 1]
        rounds[k] = cells.max()
        cells[...] = rounds[k] + 1
    return rounds


def object_boxes(
    corners: np.ndarray, object_of: np.ndarray, margin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper corners (k, 3) of the objects that have faces, in order.

    Args:
        corners: (n, 9) corners of faces.
        object_of: (n,) objects of faces, ascending.
        margin: (3,) by which boxes are enlarged.
    """
    starts = np.flatnonzero(np.diff(object_of, prepend=-1))
    if not len(starts):
        return np.zeros((0, 3)), np.zeros((0, 3))
    each = corners.reshape(-1, 3, 3)
    low = np.minimum.reduceat(each.min(axis=1), starts)
    high = np.maximum.reduceat(each.max(axis=1), starts)
    return low - margin, high + margin
