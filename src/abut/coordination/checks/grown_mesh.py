"""Meshes that are grown outwards by a small length."""

import numpy as np

from abut.mesh import Mesh

ROUNDS = 64
LONGEST = 8.0  # of a vertex's shift, in units of the growth


def grown_mesh(mesh: Mesh, length: float) -> Mesh:
    """Move every face of a closed mesh outwards by at least ``length``; cached.

    A vertex moves so that it leaves the planes of all its faces, where a direction leaves all of
    them, and by at most eight times the length.

    Args:
        mesh: Closed, oriented outward.
        length: Growth, small against the features of the mesh.
    """

    def make() -> Mesh:
        points = mesh.points.numpy()
        faces = mesh.topology.welded[mesh.faces.numpy()]
        return Mesh(points + length * vertex_shifts(points, faces), faces, mesh.device)

    return mesh.per_shape("grown_mesh", make, length)


def vertex_shifts(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(n, 3) shifts of vertices by which the planes of their faces move out by 1 or more."""
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0)
    vertex, normal = faces.ravel(), np.repeat(normals, 3, axis=0)
    shifts = np.zeros_like(points)
    for _ in range(ROUNDS):
        lacking = 1.0 - (shifts[vertex] * normal).sum(axis=1)
        order = np.lexsort((-lacking, vertex))
        worst = order[np.unique(vertex[order], return_index=True)[1]]
        worst = worst[lacking[worst] > 1e-3]
        if not len(worst):
            break
        shifts[vertex[worst]] += (1.01 * lacking[worst])[:, None] * normal[worst]
        size = np.linalg.norm(shifts, axis=1, keepdims=True)
        shifts *= np.minimum(1.0, LONGEST / np.maximum(size, LONGEST))
    return shifts
