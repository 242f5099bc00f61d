"""Frames of clashes: the part of the world that a view of a clash shows."""

from itertools import product
from typing import Any

import numpy as np

from abut.coordination.part_table import PartTable
from abut.coordination.report_columns import Columns
from abut.view.camera import Camera

VIEW_ANGLE = 45.0  # vertical [degrees]; BCF 2.1 allows 45 to 60
AROUND = 0.8  # margin of a frame, over the size of the region of contact
OF_PARTS = 0.35  # margin, over the size of the smaller part
LEAST = 1e-3  # margin [m]
CORNERS = np.array(list(product((0, 1), repeat=3)))


def clash_frames(columns: Columns, parts: PartTable | None) -> np.ndarray:
    """(n, 2, 3) [m] boxes around the clashes of a report that show what is around them.

    Rows without a known region are NaN.

    Args:
        columns: Rows of a report, also of clashes that are gone.
        parts: Parts of the present files; the sizes of known parts determine the margin.
    """
    boxes = box_rows(columns)
    size = np.ptp(boxes, axis=1).max(axis=1)
    margin = np.maximum(AROUND * size, LEAST)
    smaller = np.minimum(*(_part_sizes(parts, columns[side]) for side in "ab"))
    np.maximum(margin, OF_PARTS * smaller, out=margin, where=np.isfinite(smaller))
    return boxes + margin[:, None, None] * np.array([[-1.0], [1.0]])


def box_rows(columns: Columns) -> np.ndarray:
    """(n, 2, 3) the region of contact of each row; else the box of its two points, else NaN."""
    boxes = _triples(columns, "low_", "high_")
    points = _triples(columns, "a_", "b_")
    ends = np.stack([points.min(axis=1), points.max(axis=1)], axis=1)
    boxes = np.where(_known(boxes), boxes, ends)
    return np.where(_known(boxes), boxes, np.nan)


def _known(boxes: np.ndarray) -> np.ndarray:
    """(n, 1, 1) whether all numbers of a box are finite."""
    return np.isfinite(boxes).reshape(-1, 6).all(axis=1).reshape(-1, 1, 1)


def frame_corners(frame: np.ndarray) -> np.ndarray:
    """(8, 3) corners of a box (2, 3)."""
    return np.where(CORNERS, frame[1], frame[0])


def default_camera(frame: np.ndarray, **options: Any) -> Camera:
    """A camera that sees a frame from the front right, above."""
    return Camera.around(frame_corners(frame), view_angle=VIEW_ANGLE, margin=1.0, **options)


def _part_sizes(parts: PartTable | None, keys: np.ndarray) -> np.ndarray:
    """Largest extent of each part; infinity for one that is not known."""
    out = np.full(len(keys), np.inf)
    if parts is not None and len(parts):
        rows = parts.rows_of(keys.tolist())
        out = np.where(rows < 0, np.inf, np.ptp(parts.boxes[rows], axis=1).max(axis=1))
    return out


def _triples(columns: Columns, first: str, second: str) -> np.ndarray:
    """(n, 2, 3) of six columns."""
    rows = [[columns[start + axis] for axis in "xyz"] for start in (first, second)]
    return np.moveaxis(np.array(rows, np.float64), 2, 0)
