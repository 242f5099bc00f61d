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
    """

    closed: bool
    oriented: bool
    anchors: np.ndarray


def topology_of(points: np.ndarray, faces: np.ndarray) -> Topology:
    """The topology of faces (m, 3) over points (n, 3)."""
    _, first, weld = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    faces = weld.reshape(-1)[faces].astype(np.int64)
    ends = directed_edges(faces)
    ends = ends[ends[:, 0] != ends[:, 1]]
    _, which = np.unique(np.sort(ends, axis=1) @ [len(first), 1], return_inverse=True)
    use = np.bincount(which)
    balance = np.bincount(which, weights=np.where(ends[:, 0] < ends[:, 1], 1, -1))
    closed = len(faces) > 0 and not (use % 2).any()
    labels = _components(faces, len(first))
    return Topology(closed, closed and not balance.any(), first[np.unique(labels[faces])])


def directed_edges(faces: np.ndarray) -> np.ndarray:
    """The edges of all faces, (3 m, 2), as they run around them."""
    return np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])


def _components(faces: np.ndarray, vertex_count: int) -> np.ndarray:
    """For each vertex the lowest vertex it is connected to."""
    labels = np.arange(vertex_count)
    while True:
        lowest = labels[faces].min(axis=1)
        merged = labels.copy()
        np.minimum.at(merged, faces, lowest[:, None])
        merged = merged[merged]
        if (merged == labels).all():
            return labels
        labels = merged
