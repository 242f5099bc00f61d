"""How faces hang together, with vertices at equal positions taken as one."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Topology:
    """Closedness and components of a mesh.

    Attributes:
        closed: There are faces, and every edge is shared by an even number of them.
        oriented: Closed, and each edge is run through as often one way as the other.
        anchors: One vertex of every connected component.
        joined: (n,) The lowest vertex at the position of each vertex.
        rim: (k, 2) Directed edges, of joined vertices, that faces run through more often than
            they run back; as many times as that.
    """

    closed: bool
    oriented: bool
    anchors: np.ndarray
    joined: np.ndarray
    rim: np.ndarray


def topology_of(points: np.ndarray, faces: np.ndarray) -> Topology:
    """The topology of faces (m, 3) over points (n, 3)."""
    joined = join_equal(points)
    faces = joined[faces].astype(np.int64)
    ends = directed_edges(faces)
    ends = ends[ends[:, 0] != ends[:, 1]]
    edges, which = np.unique(np.sort(ends, axis=1) @ [len(points), 1], return_inverse=True)
    use = np.bincount(which)
    balance = np.bincount(which, weights=np.where(ends[:, 0] < ends[:, 1], 1, -1)).astype(np.int64)
    closed = len(faces) > 0 and not (use % 2).any()
    anchors = np.unique(components(faces, len(points))[faces])
    rim = _rim(edges, balance, len(points))
    return Topology(closed, closed and not balance.any(), anchors, joined, rim)


def join_equal(points: np.ndarray) -> np.ndarray:
    """(n,) For each point the first one at its position."""
    order = np.lexsort(points.T)
    starts = np.ones(len(points), dtype=bool)
    starts[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    joined = np.empty(len(points), dtype=np.int64)
    joined[order] = order[starts][np.cumsum(starts) - 1]  # the sort is stable: the lowest
    return joined


def directed_edges(faces: np.ndarray) -> np.ndarray:
    """The edges of all faces, (3 m, 2), as they run around them."""
    return np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])


def components(groups: np.ndarray, vertex_count: int) -> np.ndarray:
    """For each vertex the lowest vertex it is connected to by groups (m, k) of vertices."""
    labels = np.arange(vertex_count)
    ends = np.concatenate([groups[:, k : k + 2] for k in range(groups.shape[1] - 1)])
    while True:
        low, high = np.sort(labels[ends], axis=1).T
        apart = low != high
        if not apart.any():
            return labels
        ends = ends[apart]
        np.minimum.at(labels, high[apart], low[apart])  # of a root: labels are all roots here
        above = labels[labels]
        while (above != labels).any():
            labels, above = above, above[above]


def _rim(edges: np.ndarray, balance: np.ndarray, vertex_count: int) -> np.ndarray:
    """Edges whose two directions do not balance, along the one that is run through more often."""
    loose = np.flatnonzero(balance)
    low, high = np.divmod(edges[loose], max(vertex_count, 1))
    ends = np.stack([low, high], axis=1)
    ends[balance[loose] < 0] = ends[balance[loose] < 0][:, ::-1]
    return np.repeat(ends, np.abs(balance[loose]), axis=0)
