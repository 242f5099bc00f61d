"""Overlapping pairs of boxes given as arrays."""

from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import Boxes, Filters, empty_boxes, store_box, store_empty
from abut.broad.phase import BroadPhase, object_layout
from abut.core.launch import launch
from abut.core.pair_queue import PairQueues
from abut.core.plan import Plan, Stage
from abut.options import BroadMethod

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def take_kernel(
    # in
    span: wp.vec3i,
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
    # out
    boxes_out: Boxes,
):
    """Store boxes in the layout of the broad phase."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if lower[i][0] <= upper[i][0]:
            store_box(boxes_out, i, lower[i], upper[i])
        else:
            store_empty(boxes_out, i)


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
    corners = [
        wp.array(_rounded(x, way), dtype=wp.vec3f, device=device)
        for x, way in ((lower, -np.inf), (upper, np.inf))
    ]
    boxes = empty_boxes(count, 1, device)
    launch(take_kernel, count, [*corners, boxes], device)
    queues = PairQueues(device, objects=4 * count, found=4 * count)

    def record() -> list[Stage]:
        return [("broad", BroadPhase(boxes, filters or Filters(), queues, 1, method).run)]

    counts = Plan(queues, record).run()
    assert counts is not None
    keys = np.sort(queues["objects"].keys[: counts["objects"]].numpy())
    return np.stack(object_layout(count, 1).split(keys), axis=1)


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
