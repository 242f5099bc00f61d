"""Overlapping pairs of boxes given as arrays."""

from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import BEYOND_ALL, FARTHEST, LIMIT, Boxes, Filters, empty_boxes
from abut.broad.phase import BroadPhase, object_layout
from abut.core.pair_queue import PairQueues
from abut.core.plan import Plan, Stage
from abut.options import BroadMethod


def overlapping_boxes(
    lower: Any,
    upper: Any,
    device: wp.Device,
    filters: Any = None,
    method: BroadMethod | None = None,
) -> np.ndarray:
    """All pairs (low, high) of closed boxes that overlap, (m, 2) int64, ascending.

    Args:
        lower, upper: (n, 3) corners, float32 (rounded outwards by the caller) or wider, which are
            rounded outwards here; a box whose lower corner is above its upper one overlaps none.
        device: Where to search.
        filters: Exclude pairs; None excludes none.
        method: None chooses.
    """
    count = len(lower)
    if count < 2:
        return np.empty((0, 2), np.int64)
    boxes = _boxes_of(_rounded(lower, -np.inf), _rounded(upper, np.inf), device)
    queues = PairQueues(device, objects=4 * count, found=4 * count)

    def record() -> list[Stage]:
        return [("broad", BroadPhase(boxes, filters or Filters(), queues, 1, method).run)]

    counts = Plan(queues, record).run()
    assert counts is not None
    keys = np.sort(queues["objects"].keys[: counts["objects"]].numpy())
    return np.stack(object_layout(count, 1).split(keys), axis=1)


def _boxes_of(lower: np.ndarray, upper: np.ndarray, device: wp.Device) -> Boxes:
    """Boxes of float32 corners (n, 3), in the layout of the broad phase."""
    boxes = empty_boxes(len(lower), 1, device)
    used = lower[:, :1] <= upper[:, :1]
    farthest, beyond, limit = float(FARTHEST), float(BEYOND_ALL), float(LIMIT)
    bounded = np.maximum(-lower, upper) < farthest
    lower, upper = np.where(bounded, lower, -farthest), np.where(bounded, upper, farthest)
    corners = np.where(used, lower, beyond), np.where(used, upper, -beyond)
    for array, rows in zip((boxes.lower, boxes.upper), corners, strict=True):
        array.assign(np.pad(rows, ((0, 0), (0, 1))).astype(np.float32))
    if used.any():
        sides = np.concatenate([-lower, upper], axis=1)[used[:, 0]].clip(-limit, limit)
        bits = sides.max(axis=0).astype(np.float32).view(np.int32)
        boxes.extent.assign(bits ^ ((bits >> 31) & 0x7FFFFFFF))  # sortable floats
    return boxes


def posed_boxes(boxes: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """(n, 2, 3) lower and upper corners around boxes (n, 2, 3) at poses, without rounding."""
    middle, half = boxes.mean(axis=1), (boxes[:, 1] - boxes[:, 0]) / 2
    centre = np.einsum("nij,nj->ni", poses[:, :3, :3], middle) + poses[:, :3, 3]
    reach = np.einsum("nij,nj->ni", np.abs(poses[:, :3, :3]), half)
    return np.stack([centre - reach, centre + reach], axis=1)


def _rounded(values: Any, towards: float) -> np.ndarray:
    """Round values to float32, towards minus or plus infinity."""
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
    wrong = near > values if towards < 0 else near < values
    return np.where(wrong, np.nextafter(near, np.float32(towards)), near)
