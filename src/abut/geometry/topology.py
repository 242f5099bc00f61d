"""Topology of faces, with vertices at equal positions welded."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Topology:
    """Closedness and components of a mesh.

    Attributes:
        closed: There are faces, and every edge is shared by an even number of them.
        oriented: Closed, and each edge has as many faces in one direction as in the other.
        anchors: One vertex of every connected component.
        welded: (n,) The lowest vertex at the position of each vertex.
        boundary: (k, 2) Directed edges, of welded vertices, that have more faces in this direction
            than in the other; repeated by the difference.
    """

    closed: bool
    oriented: bool
    anchors: np.ndarray
    welded: np.ndarray
    boundary: np.ndarray


def topology_of(points: np.ndarray, faces: np.ndarray) -> Topology:
    """Return the topology of faces (m, 3) over points (n, 3)."""
    welded = weld_vertices(points)
    faces = welded[faces].astype(np.int64)
    ends = directed_edges(faces)
    anchors = np.unique(components(faces, len(points))[faces])
    if _all_edges_paired(ends, len(points)):
        return Topology(len(faces) > 0, len(faces) > 0, anchors, welded, np.empty((0, 2), np.int64))
    ends = ends[ends[:, 0] != ends[:, 1]]
    edges, which = np.unique(np.sort(ends, axis=1) @ [len(points), 1], return_inverse=True)
    use = np.bincount(which)
    balance = np.bincount(which, weights=np.where(ends[:, 0] < ends[:, 1], 1, -1)).astype(np.int64)
    closed = len(faces) > 0 and not (use % 2).any()
    boundary = _boundary(edges, balance, len(points))
    return Topology(closed, closed and not balance.any(), anchors, welded, boundary)


def is_balanced(faces: np.ndarray, vertex_count: int) -> bool:
    """Return whether each edge has as many faces in one direction as in the other, by index.

    Such a mesh is closed and oriented wherever its vertices are.
    """
    ends = directed_edges(faces.astype(np.int64))
    ends = ends[ends[:, 0] != ends[:, 1]]
    forwards, backwards = ends @ [vertex_count, 1], ends[:, ::-1] @ [vertex_count, 1]
    return len(faces) > 0 and np.array_equal(np.sort(forwards), np.sort(backwards))


def weld_vertices(points: np.ndarray) -> np.ndarray:
    """Return (n,) the first point at the position of each point."""
    order = np.lexsort(points.T)
    starts = np.ones(len(points), dtype=bool)
    starts[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    welded = np.empty(len(points), dtype=np.int64)
    welded[order] = order[starts][np.cumsum(starts) - 1]  # the sort is stable: the lowest
    return welded


def directed_edges(faces: np.ndarray) -> np.ndarray:
    """Return the (3 m, 2) directed edges of all faces."""
    return np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])


def _all_edges_paired(ends: np.ndarray, vertex_count: int) -> bool:
    """Return whether each directed edge occurs once, and so does its reverse."""
    there, back = (np.sort(ends @ way) for way in ([vertex_count, 1], [1, vertex_count]))
    once = bool((there[1:] != there[:-1]).all())
    return once and bool((there == back).all()) and not (ends[:, 0] == ends[:, 1]).any()


def components(groups: np.ndarray, vertex_count: int) -> np.ndarray:
    """Return for each vertex the lowest vertex connected to it by groups (m, k) of vertices."""
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


def _boundary(edges: np.ndarray, balance: np.ndarray, vertex_count: int) -> np.ndarray:
    """Return edges with unequal face counts in both directions, along the more frequent one."""
    loose = np.flatnonzero(balance)
    low, high = np.divmod(edges[loose], max(vertex_count, 1))
    ends = np.stack([low, high], axis=1)
    ends[balance[loose] < 0] = ends[balance[loose] < 0][:, ::-1]
    return np.repeat(ends, np.abs(balance[loose]), axis=0)
