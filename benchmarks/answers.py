"""Answers in one form, and how two of them differ."""

from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.cases import Case

SAME_DISTANCE = 1e-9  # relative
LEAST_DISTANCE = 1e-12  # libraries that do not tell touching from overlapping
FRAME_BITS = 32  # pairs of frame k have k above these bits of both faces


def sorted_pairs(pairs: Any, *, unordered: bool = False) -> np.ndarray:
    """Rows (n, 2) int64 in lexicographic order; ``unordered``: each row (low, high)."""
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if unordered:
        pairs = np.sort(pairs, axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def stacked(frames: list[np.ndarray]) -> np.ndarray:
    """The sorted pairs of several frames as one answer."""
    return np.concatenate([pairs + (k << FRAME_BITS) for k, pairs in enumerate(frames)])


def posed_pairs(pairs: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """The pairs of a batch as one answer, each with its pose above the bits of both faces."""
    return sorted_pairs(pairs.astype(np.int64) + (pose.astype(np.int64) << FRAME_BITS)[:, None])


def size_of(answer: Any) -> float:
    """Number of pairs, of poses with contact, or of leaves; a yes counts one.

    Of distances the least.
    """
    if np.asarray(answer).dtype.kind == "f":
        return float(np.min(answer))
    return len(answer) if np.ndim(answer) == 2 else int(np.sum(answer))


def difference(
    ours: Any, theirs: Any, tolerance: float | None = None, part: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that only they have, and rows that only we have.

    For yes and no and for distances the rows are poses; where they answered fewer, those are
    compared. ``tolerance``: of distances in float32, in shares of the largest; None for float64.
    ``part``: how many poses they answered with pairs, where not all.
    """
    if np.asarray(theirs).dtype.kind == "f":
        theirs = np.atleast_1d(theirs)
        ours = np.atleast_1d(ours)[: len(theirs)]
        size = np.abs(ours)
        allowed = SAME_DISTANCE * size if tolerance is None else tolerance * size.max()
        off = np.abs(theirs - ours) > allowed + LEAST_DISTANCE
        return np.flatnonzero(off & (theirs > ours)), np.flatnonzero(off & (theirs < ours))
    if np.ndim(theirs) < 2:
        theirs = np.atleast_1d(theirs)
        ours = np.atleast_1d(ours)[: len(theirs)]
        return np.flatnonzero(theirs > ours), np.flatnonzero(theirs < ours)
    if part is not None:
        ours = ours[(ours[:, 0] >> FRAME_BITS) < part]
    return _only(theirs, ours), _only(ours, theirs)


def _only(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Sorted rows that are not among others."""
    as_one = np.dtype([("a", np.int64), ("b", np.int64)])
    first, second = (np.ascontiguousarray(x, np.int64).view(as_one).ravel() for x in (rows, others))
    return np.setdiff1d(first, second).view(np.int64).reshape(-1, 2)


def without_excuse(case: Case, pairs: np.ndarray) -> np.ndarray:
    """Of pairs that exact libraries disagree about, those in which both faces have an area."""
    return np.array([p for p in pairs if all(_has_area(c) for c in _corners(case, p))], np.int64)


def _corners(case: Case, pair: np.ndarray) -> list[np.ndarray]:
    """Corners (3, 3) of both faces of a pair."""
    frame, (a, b) = int(pair[0]) >> FRAME_BITS, pair & ((1 << FRAME_BITS) - 1)
    if case.question.startswith("self"):
        vertices = case.frames[frame]
        return [vertices[case.faces[a]], vertices[case.faces[b]]]
    return [case.vertices[case.faces[a]], case.placed[case.faces[b]]]


def _has_area(corners: np.ndarray) -> bool:
    """Decided exactly."""
    p, q, r = ([Fraction(float(x)) for x in corner] for corner in corners)
    u, v = ([x - y for x, y in zip(end, p, strict=True)] for end in (q, r))
    return any(u[i] * v[j] != u[j] * v[i] for i, j in ((0, 1), (1, 2), (2, 0)))
