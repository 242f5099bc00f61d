"""First impacts of a moving mesh: points and features."""

from typing import NamedTuple

import numpy as np

from abut.mesh import Mesh
from abut.results import ImpactKind, Impacts

SAME_TIME = 1e-6  # impacts this much later count as first, too


class Step(NamedTuple):
    """A step of a mesh, whose vertices go straight from ``start`` to ``end``, and its impacts."""

    mesh: Mesh
    start: np.ndarray
    end: np.ndarray
    hits: Impacts | None

    def vertices(self) -> np.ndarray:
        """(n, 3) at the first impact, or at the end without one."""
        time = self.hits.safe_step if self.hits else 1.0
        return self.start + time * (self.end - self.start)

    def points(self) -> np.ndarray:
        """(k, 3) points of the first impacts."""
        vertices = self.vertices()
        corners, ends = self._features()
        crossings = [_crossing(*vertices[pair]) for pair in ends]
        return np.concatenate([vertices[corners[:, 0]], np.reshape(crossings, (-1, 3))])

    def outlines(self) -> list[np.ndarray]:
        """The faces and edges that touch first, as polylines."""
        vertices, (corners, ends) = self.vertices(), self._features()
        faces = [vertices[face[[1, 2, 3, 1]]] for face in corners]
        return faces + [vertices[edge] for pair in ends for edge in pair.reshape(2, 2)]

    def _features(self) -> tuple[np.ndarray, np.ndarray]:
        """A vertex and the corners of its face (k, 4), and the ends of two edges (k, 4)."""
        if not self.hits:
            return np.empty((0, 4), int), np.empty((0, 4), int)
        rows = self.hits.numpy()
        first = rows["time"] <= self.hits.first + SAME_TIME
        kind, features = rows["kind"][first], rows["features"][first]
        corner = features[kind == ImpactKind.VERTEX_FACE]
        crossing = features[kind == ImpactKind.EDGE_EDGE]
        faces, edges = self.mesh.faces.numpy(), self.mesh.edges.numpy()
        return (
            np.column_stack([corner[:, 0], faces[corner[:, 1]]]),
            edges[crossing].reshape(-1, 4),
        )


def _crossing(a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> np.ndarray:
    """The point of one edge that is nearest to the line of another."""
    along = np.stack([a1 - a0, b0 - b1], axis=1)
    share = np.linalg.lstsq(along, b0 - a0, rcond=None)[0][0]
    return a0 + np.clip(share, 0, 1) * (a1 - a0)
