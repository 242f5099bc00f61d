"""Parted boxes: pairs that at most touch, of which checks without touches have nothing to report.

Where the boxes of two parts at most touch, the parts at most touch. Most near pairs of a building
or a plant are of this kind: a wall on a slab, a flange on a flange. Neither all their contacts nor
an exact relation is needed.
"""

from collections.abc import Sequence

import numpy as np

from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.part_contacts import meeting_parts
from abut.coordination.parts.part_surfaces import PartSurfaces


def without_findings(
    surfaces: PartSurfaces, pairs: np.ndarray, checks: Sequence[Check]
) -> np.ndarray:
    """(k,) whether a pair surely has no finding that its check reports.

    Args:
        surfaces: Surfaces of the parts.
        pairs: (k, 2) rows of parts.
        checks: The check of each pair.

    Guarantee:
        Exact where True; any pair may be False.
    """
    boxes = surfaces.parts.boxes[pairs]
    tolerance = np.array([check.tolerance for check in checks], float)
    touch = np.array([check.touch for check in checks], bool)
    near = np.array([check.kind is CheckKind.CLEARANCE for check in checks], bool)
    sure = boxes_parted(boxes) & ~touch & (box_differences(boxes) > tolerance)
    asked = np.flatnonzero(sure & near)  # parts that meet are not too close to each other
    sure[asked] = meeting_parts(surfaces, pairs[asked])
    return sure


def boxes_parted(boxes: np.ndarray) -> np.ndarray:
    """(k,) whether a plane across an axis parts the true bounds of two parts, which may lie in it.

    Args:
        boxes: (k, 2, 2, 3) of pairs, each one step of float64 larger than the part.
    """
    low = np.nextafter(boxes[:, :, 0], np.inf)
    high = np.nextafter(boxes[:, :, 1], -np.inf)
    return np.any((high[:, 0] <= low[:, 1]) | (high[:, 1] <= low[:, 0]), axis=1)


def box_differences(boxes: np.ndarray) -> np.ndarray:
    """(k,) largest difference of two boxes (k, 2, 2, 3), less its rounding [m].

    Parts whose boxes differ by more than the tolerance are no duplicates.
    """
    ulps = 4.0 * np.spacing(np.abs(boxes).max(axis=(1, 2, 3), initial=0.0))
    return np.abs(boxes[:, 0] - boxes[:, 1]).max(axis=(1, 2), initial=0.0) - ulps
