"""How the faces of a mesh hang together, with vertices at equal positions taken as one."""

from dataclasses import dataclass

import numpy as np

from abut.mesh import Mesh


@dataclass(frozen=True)
class Topology:
    """Closedness and components of a mesh.

    Attributes:
        closed: Every edge is shared by an even number of faces.
        oriented: Closed, and each edge is run through as often one way as the other.
        anchors: One vertex of every connected component.
    """

    closed: bool
    oriented: bool
    anchors: np.ndarray


def topology_of(mesh: Mesh) -> Topology:
    """The topology of a mesh in its present shape."""
    held = mesh.held.get("topology")
    if held is None or held[0] != mesh.version:
        held = (mesh.version, _topology(mesh.points.numpy(), mesh.faces.numpy()))
        mesh.held["topology"] = held
    return held[1]


def _topology(points: np.ndarray, faces: np.ndarray) -> Topology:
    _, first, weld = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    faces = weld.reshape(-1)[faces].astype(np.int64)
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ends = ends[ends[:, 0] != ends[:, 1]]
    _, which = np.unique(ends.min(axis=1) * len(first) + ends.max(axis=1), return_inverse=True)
    use = np.bincount(which)
    balance = np.bincount(which, weights=np.where(ends[:, 0] < ends[:, 1], 1, -1))
    closed = len(faces) > 0 and not (use % 2).any()
    labels = _components(faces, len(first))
    return Topology(closed, closed and not balance.any(), first[np.unique(labels[faces])])


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
