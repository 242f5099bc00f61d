"""Candidates: the pairs of parts that the rules check and whose boxes are close enough."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from abut.broad.overlaps import overlapping_boxes
from abut.coordination.checks.check import Check
from abut.coordination.parts.part_table import PartTable
from abut.coordination.rules import CheckMatrix, Rules, excluded_by
from abut.core.device import resolve_device

ULPS = 8.0  # rounding of boxes and of distances, in units of the largest coordinate


@dataclass(frozen=True, eq=False)
class PartCandidates:
    """Pairs of parts to check, ascending.

    Attributes:
        pairs: (k, 2) int64 rows of parts, the lower first.
        which: (k,) int64 index of the check of each pair.
        checks: The checks.
        excluded: Number of close pairs that the rules leave out, by reason.
        problems: Lines about rules without effect.
    """

    pairs: np.ndarray
    which: np.ndarray
    checks: list[Check]
    excluded: dict[str, int]
    problems: list[str]

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.pairs)


def part_candidates(
    parts: PartTable,
    rules: Rules,
    device: Any = None,
    keep: Callable[[np.ndarray], np.ndarray] | None = None,
) -> PartCandidates:
    """List the pairs of parts that the rules check and that may have a verdict.

    Args:
        parts: The parts.
        rules: The rules.
        device: Where to search; None: the first CUDA device, else the CPU.
        keep: Returns which of close pairs (k, 2) are asked about; None: all.

    Guarantee:
        Complete: the boxes of any other pair are farther apart than its check reaches, with the
        deviations of both meshes, or the rules leave it out.
    """
    matrix = CheckMatrix(rules, parts)
    close = close_pairs(parts, matrix, device)
    if keep is not None:
        close = close[keep(close)]
    which = matrix.of(close)
    excluded = Counter({"sets": int((which < 0).sum())})
    close, which = close[which >= 0], which[which >= 0]
    reasons = excluded_by(rules.exclusions, parts, close)
    excluded.update(reasons[reasons != ""].tolist())
    kept = reasons == ""
    counts = {reason: count for reason, count in sorted(excluded.items()) if count}
    return PartCandidates(close[kept], which[kept], rules.check_list, counts, matrix.problems)


def close_pairs(parts: PartTable, matrix: CheckMatrix, device: Any = None) -> np.ndarray:
    """(k, 2) pairs of parts, ascending, whose boxes are within the reach of a check.

    Each box is widened by half the largest reach of its part and by the deviation of its mesh, and
    pairs of boxes that overlap are kept where the gap is within the reach of their own check.
    Pairs that the exclusions of sets leave out are listed if their check reaches them.
    """
    reach = matrix.reach
    widest = reach.max(axis=1, initial=-np.inf)[matrix.part_class]
    grown = parts.boxes.copy()
    wide = np.where(widest >= 0, widest / 2 + parts.deviation, 0.0) + box_rounding(parts.boxes)
    grown[:, 0] -= wide[:, None]
    grown[:, 1] += wide[:, None]
    idle = widest < 0  # of no check: an empty box overlaps none
    grown[idle, 0], grown[idle, 1] = np.inf, -np.inf
    pairs = overlapping_boxes(grown[:, 0], grown[:, 1], resolve_device(device))
    classes = matrix.part_class[pairs]
    far = reach[classes[:, 0], classes[:, 1]] + parts.deviation[pairs].sum(axis=1)
    return pairs[box_gaps(parts.boxes, pairs) <= far + box_rounding(parts.boxes)[pairs].sum(axis=1)]


def box_gaps(boxes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(k,) distances of pairs of boxes (n, 2, 3) [m]; 0 where they overlap."""
    a, b = boxes[pairs[:, 0]], boxes[pairs[:, 1]]
    gaps = np.maximum(a[:, 0] - b[:, 1], b[:, 0] - a[:, 1]).clip(min=0.0)
    return np.linalg.norm(gaps, axis=1)


def box_rounding(boxes: np.ndarray) -> np.ndarray:
    """(n,) rounding of each box [m]."""
    return ULPS * np.spacing(np.abs(boxes).max(axis=(1, 2), initial=0.0))
