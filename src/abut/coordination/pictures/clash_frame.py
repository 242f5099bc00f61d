"""Frames of clashes: the part of the world that a view of a clash shows."""

from itertools import product

import numpy as np

from abut.coordination.parts.part_table import PartTable
from abut.coordination.report.report_columns import Columns
from abut.view.body import TEAL, Color
from abut.view.camera import Camera

VIEW_ANGLE = 45.0  # vertical [degrees]; BCF 2.1 allows 45 to 60
BESIDE = 0.125  # margin of a frame, over the largest extent of the region of contact
AROUND = 1.0  # margin, over its middle extent
OF_PARTS = 3.5  # size of a frame, over the middle extent of the smaller part
LEAST = 1e-3  # margin [m]
PART_COLORS: dict[str, Color] = {"a": TEAL, "b": (0.95, 0.70, 0.30)}  # red is the clash
CORNERS = np.array(list(product((0, 1), repeat=3)))


def clash_frames(columns: Columns, parts: PartTable | None) -> np.ndarray:
    """(n, 2, 3) [m] boxes around the clashes of a report, with some of their surroundings.

    Rows without a known region are NaN.

    Args:
        columns: Rows of a report, also of clashes that are gone.
        parts: Parts of the present files; the sizes of known parts determine the margin.
    """
    boxes = box_rows(columns)
    if parts is None:
        return part_frames(boxes, None, np.full((len(boxes), 2), -1))
    pairs = np.stack([parts.rows_of(columns[side].tolist()) for side in "ab"], axis=1)
    return part_frames(boxes, parts, pairs)


def part_frames(boxes: np.ndarray, parts: PartTable | None, pairs: np.ndarray) -> np.ndarray:
    """(n, 2, 3) boxes around regions of contact (n, 2, 3) of pairs of parts; -1 is unknown."""
    _, middle, largest = np.sort(np.ptp(boxes, axis=1), axis=1).T
    margin = np.maximum.reduce([BESIDE * largest, AROUND * middle, np.full(len(boxes), LEAST)])
    if parts is not None and len(parts):
        extents = np.median(np.ptp(parts.boxes[pairs], axis=2), axis=2)
        wide = OF_PARTS * np.where(pairs < 0, np.inf, extents).min(axis=1) - largest
        np.maximum(margin, wide / 2, out=margin, where=np.isfinite(wide))
    return boxes + margin[:, None, None] * np.array([[-1.0], [1.0]])


def box_rows(columns: Columns) -> np.ndarray:
    """(n, 2, 3) the region of contact of each row; else the box of its two points, else NaN."""
    boxes = triples(columns, "low_", "high_")
    points = triples(columns, "a_", "b_")
    ends = np.stack([points.min(axis=1), points.max(axis=1)], axis=1)
    boxes = np.where(_known(boxes), boxes, ends)
    return np.where(_known(boxes), boxes, np.nan)


def _known(boxes: np.ndarray) -> np.ndarray:
    """(n, 1, 1) whether all numbers of a box are finite."""
    return np.isfinite(boxes).reshape(-1, 6).all(axis=1).reshape(-1, 1, 1)


def frame_corners(frame: np.ndarray) -> np.ndarray:
    """(8, 3) corners of a box (2, 3)."""
    return np.where(CORNERS, frame[1], frame[0])


def frame_camera(
    frame: np.ndarray, aspect: float, *, azimuth: float = -60.0, elevation: float = 28.0
) -> Camera:
    """A camera that sees a frame, by custom from the front right, above."""
    direction = {"azimuth": azimuth, "elevation": elevation}
    look = {"view_angle": VIEW_ANGLE, "aspect": aspect, "margin": 1.0}
    return Camera.around(frame_corners(frame), vertical="z", **direction, **look)


def triples(columns: Columns, first: str, second: str) -> np.ndarray:
    """(n, 2, 3) of six columns."""
    rows = [[columns[start + axis] for axis in "xyz"] for start in (first, second)]
    return np.moveaxis(np.array(rows, np.float64), 2, 0)
