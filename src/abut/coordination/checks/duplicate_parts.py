"""Duplicates: parts with the same surface, up to the tolerance."""

import numpy as np

from abut.coordination.checks.pair_relations import CODES
from abut.coordination.checks.parted_boxes import box_differences
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.mesh import Mesh
from abut.query.closest_point import closest_point
from abut.query.solids.relation import Relation

EQUAL = CODES[Relation.EQUAL]


def duplicates(
    surfaces: PartSurfaces, pairs: np.ndarray, relation: np.ndarray, tolerance: np.ndarray
) -> np.ndarray:
    """(k,) whether two parts have the same surface up to the tolerance.

    Equal solids are duplicates. So are parts with the same faces whose vertices are at most the
    tolerance apart; and parts whose vertices, edge middles and face centroids are all at most the
    tolerance from the other surface, with areas that differ by no more than such a shift explains.

    Args:
        surfaces: Surfaces of the parts.
        pairs: (k, 2) rows of parts.
        relation: (k,) indices into RELATIONS.
        tolerance: (k,) [m].
    """
    out = relation == EQUAL
    alike = box_differences(surfaces.parts.boxes[pairs]) <= tolerance
    for k in np.flatnonzero(~out & alike).tolist():
        i, j = pairs[k].tolist()
        out[k] = _are_duplicates(surfaces, i, j, float(tolerance[k]))
    return out


def _are_duplicates(surfaces: PartSurfaces, i: int, j: int, tolerance: float) -> bool:
    parts = surfaces.parts
    faces = [parts.part_meshes[parts.mesh[row]].faces for row in (i, j)]
    points = [parts.world_points(row) for row in (i, j)]
    if len(faces[0]) == len(faces[1]) and np.array_equal(faces[0], faces[1]):
        used = np.unique(faces[0])
        far = np.linalg.norm(points[0][used] - points[1][used], axis=1)
        if far.max(initial=0.0) <= tolerance:
            return True
    corners = [p[f] for p, f in zip(points, faces, strict=True)]
    if np.array_equal(_sorted_faces(corners[0]), _sorted_faces(corners[1])):
        return True
    areas = [_area(c) for c in corners]
    edge = sum(np.linalg.norm(c - np.roll(c, 1, axis=1), axis=2).sum() for c in corners)
    if tolerance == 0.0 or abs(areas[0] - areas[1]) > 2.0 * tolerance * edge:
        return False
    return all(_near(corners[k], corners[1 - k], tolerance) for k in range(2))


def _sorted_faces(corners: np.ndarray) -> np.ndarray:
    """Faces as sets of corners, in an order of their own."""
    rows = corners.reshape(len(corners), 3, 3)
    order = np.lexsort((rows[..., 2], rows[..., 1], rows[..., 0]), axis=1)
    flat = np.take_along_axis(rows, order[..., None], axis=1).reshape(-1, 9)
    return flat[np.lexsort(flat.T[::-1])]


def _area(corners: np.ndarray) -> float:
    sides = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return float(np.linalg.norm(np.cross(*sides), axis=1).sum() / 2)


def _near(corners: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether samples of faces are at most the tolerance from other faces."""
    middles = (corners + np.roll(corners, 1, axis=1)) / 2
    samples = np.concatenate([*corners, *middles, corners.mean(axis=1)])
    count = len(other)
    mesh = Mesh(other.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3), "cpu")
    return bool((closest_point(mesh, samples).distance.numpy() <= tolerance).all())
