"""Meshes that are grown outwards by a small length."""

import numpy as np

from abut.mesh import Mesh

ROUNDS = 64
LEAST_LACKING = 1e-3  # of the growth
BASES = [[0], [0, 1], [0, 2], [0, 3], [0, 1, 2], [0, 1, 3], [0, 2, 3]]  # with the new normal
LONGEST = 8.0  # of a vertex's shift, in units of the growth


def grown_mesh(mesh: Mesh, length: float) -> Mesh:
    """Move every face of a closed mesh outwards by at least ``length``; cached.

    Faces at sharp tips move out by less, as no vertex moves by more than eight times the length.
    Some faces may stay at vertices from which no direction leaves the planes of all.

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
    """(n, 3) shortest shifts of vertices by which the planes of their faces move out by 1.

    Longer ones than LONGEST are cut to that: the planes move less, but all move out. Vertices that
    no direction moves off all planes take a compromise.
    """
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0)
    flat = np.repeat(lengths[:, 0] == 0, 3)
    vertex, normal = faces.ravel()[~flat], np.repeat(normals, 3, axis=0)[~flat]
    shifts, bases = np.zeros_like(points), np.zeros((len(points), 3, 3))
    open_ = np.ones(len(vertex), bool)
    for _ in range(ROUNDS):
        lacking = np.where(open_, 1.0 - (shifts[vertex] * normal).sum(axis=1), 0.0)
        order = np.lexsort((-lacking, vertex))
        worst = order[np.unique(vertex[order], return_index=True)[1]]
        worst = worst[lacking[worst] > LEAST_LACKING]
        if not len(worst):
            break
        at = vertex[worst]
        shifts[at], bases[at] = _shortest_shifts(normal[worst], bases[at])
        open_ &= ~np.isin(vertex, at[~shifts[at].any(axis=1)])
    shifts += _compromises(vertex[~open_], normal[~open_], len(points))
    size = np.linalg.norm(shifts, axis=1, keepdims=True)
    return shifts * np.minimum(1.0, LONGEST / np.maximum(size, LONGEST))


def _compromises(vertex: np.ndarray, normal: np.ndarray, count: int) -> np.ndarray:
    """(count, 3) shifts of vertices: least squares of what different planes lack."""
    shifts = np.zeros((count, 3))
    if not len(vertex):
        return shifts
    rows = np.unique(np.column_stack([vertex, np.round(normal, 9)]), axis=0)
    at, normal = rows[:, 0].astype(int), rows[:, 1:]
    for _ in range(ROUNDS):
        lacking = np.maximum(1.0 - (shifts[at] * normal).sum(axis=1), 0.0)
        step = np.zeros_like(shifts)
        np.add.at(step, at, lacking[:, None] * normal)
        shifts += step / np.maximum(np.bincount(at, minlength=count), 1)[:, None]
    return shifts


def _shortest_shifts(normal: np.ndarray, bases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k, 3) shortest shifts that leave the planes of a normal and a basis each, and new bases.

    A basis has up to three normals, then zeros; it says which planes a shift leaves by no more
    than 1. That of the new normal is one of them. A shift is 0 where none leaves all planes.
    """
    every = np.concatenate([normal[:, None], bases], axis=1)
    needed = np.where(every.any(axis=2), 1.0 - 1e-6, -np.inf)
    shifts, chosen = np.zeros_like(normal), np.zeros_like(bases)
    least = np.full(len(normal), np.inf)
    for some in BASES:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shift = _common_shift(every[:, some])
            size = (shift * shift).sum(axis=1)
            leaves = (np.einsum("kij,kj->ki", every, shift) >= needed).all(axis=1)
        is_given = np.all(every[:, some].any(axis=2), axis=1)
        shorter = leaves & (size < least) & is_given
        shifts[shorter], least[shorter] = shift[shorter], size[shorter]
        chosen[shorter] = 0.0
        chosen[shorter, : len(some)] = every[shorter][:, some]
    return shifts, chosen


def _common_shift(normals: np.ndarray) -> np.ndarray:
    """(k, 3) shortest shifts along which (k, 1 to 3) unit normals rise by 1."""
    a, b, c = (normals[:, min(i, normals.shape[1] - 1)] for i in range(3))
    if normals.shape[1] == 1:
        return a
    if normals.shape[1] == 2:
        return (a + b) / (1.0 + (a * b).sum(axis=1))[:, None]
    across = np.cross(b, c)
    return (across + np.cross(c, a) + np.cross(a, b)) / (a * across).sum(axis=1)[:, None]
