"""Clashes: one row for each pair of parts with a verdict."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np


class Verdict(StrEnum):
    """Kind of a clash, in order of severity.

    Touching parts are no clash unless a rule asks for them.
    """

    DUPLICATE = "duplicate"  # the same solid twice
    ENVELOPE = "envelope"  # one is wholly inside the other
    PIERCE = "pierce"  # one passes through the other and comes out again
    PROTRUDE = "protrude"  # common interior, and none of the above
    TOUCH = "touch"  # common points, no common interior deeper than the tolerance
    ENCROACH = "encroach"  # apart, but closer than the clearance


@dataclass(frozen=True, eq=False)
class Clashes:
    """Rows of verdicts, sorted by (part a, part b); a column is an array with one entry a row.

    A part is named by its key, "file stem/part id", which is unique among all files. The part with
    the lower key is a.

    Attributes:
        id: (n,) str: stable name of the clash, a hash of the two part keys and the check.
        a, b: (n,) str: keys of the parts.
        verdict: (n,) str: a ``Verdict``.
        check: (n,) str: name of the rule that asked.
        depth: (n,) float64 [m]: largest distance of a common point to either surface; no shorter
            translation parts the two. 0 where no interior is common, NaN where a mesh is open.
        depth_error: (n,) float64 [m]: the true depth is at most this much larger.
        distance: (n,) float64 [m]: 0 where the parts meet.
        point_a, point_b: (n, 3) float64 [m]: the nearest points where the parts are apart, else
            the deepest common points in a and in b, or a common point twice.
        box: (n, 2, 3) float64 [m]: the region of contact, or the box of the two nearest points.
        region_count: (n,) int32: connected regions of contact.
        solid: (n,) bool: both parts are closed, so that interior, depth and containment are known.
        note: (n,) str: a reason to look twice, such as "0.4 mm deep, below the tolerance".
        group: (n,) int32: cluster of clashes with one cause, numbered from 0.
    """

    id: np.ndarray
    a: np.ndarray
    b: np.ndarray
    verdict: np.ndarray
    check: np.ndarray
    depth: np.ndarray
    depth_error: np.ndarray
    distance: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray
    box: np.ndarray
    region_count: np.ndarray
    solid: np.ndarray
    note: np.ndarray
    group: np.ndarray

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.id)
