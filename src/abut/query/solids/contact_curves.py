"""Closed curves in which the surfaces of two solids cross, b shifted by an infinitesimal."""

from dataclasses import dataclass

import numpy as np

from abut.narrow.shifted_crossings import CrossingRows


@dataclass(frozen=True)
class Segments:
    """Segments of pairs of faces at one pose, as arrays of the host; see ``CrossingSegment``.

    Attributes:
        pairs: (n, 2) faces of a and b.
        points: (n, 2, 3) start and stop.
        edges: (n, 2) edges that start and stop lie on; -1 where faces do not cross.
        shares: (n, 2) positions along these edges.
    """

    pairs: np.ndarray
    points: np.ndarray
    edges: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, rows: CrossingRows) -> "Segments":
        """Copy the rows of pairs of faces to the host."""
        return cls(rows.pairs.numpy(), rows.points.numpy(), rows.edges.numpy(), rows.shares.numpy())


@dataclass(frozen=True)
class EdgeCrossings:
    """Crossings of the edges of one mesh with faces of the other, once for each face at the edge.

    Attributes:
        row, end: Segment that ends there, and whether it is its start (0) or its stop (1).
        low, high: Vertices of the edge, the lower one first.
        other: Face of the other mesh.
        share: Position from ``low`` to ``high``.
        step: 1 if the edge enters the other solid on the way from ``low`` to ``high``, -1 if it
            leaves it.
        key: Equal for the same edge and face.
        edge: Equal for the same edge.
    """

    row: np.ndarray
    end: np.ndarray
    low: np.ndarray
    high: np.ndarray
    other: np.ndarray
    share: np.ndarray
    step: np.ndarray
    key: np.ndarray
    edge: np.ndarray


def edge_crossings(segments: Segments, faces: np.ndarray, side: int) -> EdgeCrossings:
    """Return the crossings on edges of one mesh.

    Args:
        segments: Segments of pairs of faces.
        faces: (m, 3) faces of the mesh, welded.
        side: 0 for a, 1 for b.
    """
    local = segments.edges - 3 * side
    row, end = np.nonzero((local >= 0) & (local < 3))
    k = local[row, end]
    face = faces[segments.pairs[row, side]]
    start, stop = face[np.arange(len(k)), k], face[np.arange(len(k)), (k + 1) % 3]
    share = segments.shares[row, end]
    forward = start < stop
    # a's edge leaves b at the start of a segment; b's edge enters a there
    step = np.where((end == 0) == (side == 0), -1, 1) * np.where(forward, 1, -1)
    low, high = np.minimum(start, stop).astype(np.int64), np.maximum(start, stop)
    _, edge = np.unique(low * (faces.max(initial=0) + 1) + high, return_inverse=True)
    other = segments.pairs[row, 1 - side]
    _, key = np.unique(edge * (other.max(initial=0) + 1) + other, return_inverse=True)
    return EdgeCrossings(
        row, end, low, high, other, np.where(forward, share, 1.0 - share), step, key, edge
    )


def closed_curves(
    segments: Segments, on_a: EdgeCrossings, on_b: EdgeCrossings
) -> list[tuple[int, np.ndarray]]:
    """Return closed curves: a segment of each, and its points (k, 3); the last is the first.

    A curve has the part of a inside b on its left, seen from outside a. Curves of no length are
    left out.
    """
    node = np.full(segments.edges.shape, -1)
    node[on_a.row, on_a.end] = on_a.key
    node[on_b.row, on_b.end] = on_b.key + on_a.key.max(initial=-1) + 1
    rows = np.flatnonzero(node[:, 0] >= 0)
    # as many segments start at a crossing as stop there
    starts = rows[np.argsort(node[rows, 0], kind="stable")]
    stops = rows[np.argsort(node[rows, 1], kind="stable")]
    following = np.full(len(node), -1)
    following[stops] = starts
    after = following.tolist()
    out = []
    for first in rows.tolist():
        if after[first] < 0:
            continue
        curve, row = [], first
        while after[row] >= 0:
            curve.append(row)
            after[row], row = -1, after[row]
        points = segments.points[curve, 0]
        points = points[(points != np.roll(points, 1, axis=0)).any(axis=1)]
        if len(points):
            out.append((first, np.concatenate([points, points[:1]])))
    return out
