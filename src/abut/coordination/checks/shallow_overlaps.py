"""Shallow overlaps: pairs of solids that a translation no longer than the tolerance parts.

No common point of two solids lies deeper in either than the length of a translation that parts
them, so one exact relation proves what a search for the depth may take long to, or cannot: that of
parts which touch but for rounding, or whose surfaces intersect themselves.
"""

from itertools import combinations

import numpy as np

from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.mesh import Mesh
from abut.query.point_signs import signed_distance
from abut.query.solids.relation import RELATIONS, Relation, relations

APART = RELATIONS.index(Relation.APART)
TOUCHING = RELATIONS.index(Relation.TOUCHING)
MOST_DIRECTIONS = 6  # of the largest contacts
LEAST_SUM = 0.5  # of unit vectors that do not cancel
MOST_SAMPLES = 64  # points below faces of a solid
ROUNDING = 2.0**-48  # of the largest coordinate: moved corners are rounded


def parting_length(
    surfaces: PartSurfaces, i: int, j: int, faces: np.ndarray, length: float
) -> float:
    """Length of a translation that parts two solids, rounded up; infinite if none was found.

    Directions are normals of faces that meet, and sums of them for edges and corners.

    Args:
        surfaces: Surfaces of the parts, both closed.
        i, j: Rows of the parts.
        faces: (n, 2) their faces that meet.
        length: That of the translations to try [m].

    Guarantee:
        The solids have no common interior after the translation, so no common point of both lies
        deeper in either.
    """
    if not (length > 0.0 and len(faces)) or _lie_deeper(surfaces, i, j, length):
        return np.inf
    normals = [
        _normals(surfaces[row].mesh, faces[:, side], surfaces.pose(row)[0])
        for side, row in enumerate((i, j))
    ]
    directions = _directions(np.concatenate([normals[0], -normals[1]]))
    moved = np.repeat(surfaces.pose(j), len(directions), axis=0)
    moved[:, :3, 3] += length * directions
    codes = relations(surfaces[i].mesh, surfaces[j].mesh, surfaces.pose(i), moved)
    parted = codes == APART
    if not (surfaces[i].meets_itself or surfaces[j].meets_itself):
        parted |= codes == TOUCHING  # exact only for surfaces that do not intersect themselves
    steps = np.linalg.norm(moved[:, :3, 3] - surfaces.pose(j)[:, :3, 3], axis=1)
    rounding = ROUNDING * float(np.abs(surfaces.parts.boxes[[i, j]]).max())
    return float(steps[parted].min(initial=np.inf)) + rounding


def _lie_deeper(surfaces: PartSurfaces, i: int, j: int, length: float) -> bool:
    """Whether a sample of common points, just below faces, lies deeper than a length in a solid."""
    points = np.concatenate([_below_faces(surfaces, row, 2.0 * length) for row in (i, j)])
    inside = [
        -signed_distance(surfaces[row].mesh, points, pose=surfaces.pose(row)[0]).numpy()
        for row in (i, j)
    ]
    return bool((np.maximum(*inside)[np.minimum(*inside) >= 0.0] > length).any())


def _below_faces(surfaces: PartSurfaces, row: int, depth: float) -> np.ndarray:
    """(k, 3) centroids of some faces, moved inwards."""
    mesh, pose = surfaces[row].mesh, surfaces.pose(row)[0]
    step = -(-mesh.face_count // MOST_SAMPLES)
    corners = mesh.points.numpy()[mesh.faces.numpy()[::step]]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    size = np.linalg.norm(across, axis=1, keepdims=True)
    points = corners.mean(axis=1) - depth * across / np.where(size > 0.0, size, 1.0)
    return points @ pose[:3, :3].T + pose[:3, 3]


def _normals(mesh: Mesh, faces: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(k, 3) area vectors of faces in the world, each face once."""
    corners = mesh.points.numpy()[mesh.faces.numpy()[np.unique(faces)]]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return across @ pose[:3, :3].T


def _directions(areas: np.ndarray) -> np.ndarray:
    """(k, 3) unit vectors: the directions of the largest areas, and sums of two and three."""
    length = np.linalg.norm(areas, axis=1)
    areas = areas[length > 0.0]
    units = areas / length[length > 0.0, None]
    names, which = np.unique(np.round(units, 6), axis=0, return_inverse=True)
    totals = np.zeros((len(names), 3))
    np.add.at(totals, which.reshape(-1), areas)
    sizes = np.linalg.norm(totals, axis=1)
    order = np.lexsort((*names.T, -sizes))[:MOST_DIRECTIONS]
    units = totals[order] / sizes[order, None]
    sums = [
        units[list(some)].sum(axis=0) for n in (2, 3) for some in combinations(range(len(units)), n)
    ]
    every = np.concatenate([units, np.reshape(sums, (-1, 3))])
    length = np.linalg.norm(every, axis=1)
    return every[length > LEAST_SUM] / length[length > LEAST_SUM, None]
