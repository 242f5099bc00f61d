"""The shortest translation beside a set of blocked cones: the local model of a contact.

Near a translation s at which solids touch, the blocked translations are, up to their boundary, the
union of the polytopes of face pairs (``face_differences``) that have s on their boundary, and each
of those is a cone there. A translation is free beside a cone if it is beyond any of its facets.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from abut.query.solids.face_differences import FaceDifferences

SAME = 1e-9  # normals that differ by less are one
MOST_FOR_CORNERS = 12  # facets; with more, corners of three facets are not looked at
CHUNK = 64  # candidates that are looked at together


class Cones(NamedTuple):
    """Convex cones of blocked translations over common facets.

    Attributes:
        normals: (f, 3) outward unit normals of the facets.
        offsets: (f,) ``normals @ x < offsets`` is below a facet.
        bounds: (c, f) bool, facets that bound each cone.
    """

    normals: np.ndarray
    offsets: np.ndarray
    bounds: np.ndarray


def cones_at(polytopes: FaceDifferences, s: np.ndarray, near: float, flat: float) -> Cones:
    """Return the cones of polytopes at s, a point at most ``near`` off each of them.

    A cone keeps the facets at most ``near`` off s, and those that s is beyond: within that distance
    of s it is the polytope. Polytopes thinner than ``flat`` block nothing.
    """
    normals, offsets = polytopes.normals, polytopes.offsets
    half = offsets.shape[1] // 2
    thin = np.any(offsets[:, :half] + offsets[:, half:] <= flat, axis=1)
    tight = (offsets - normals @ s <= near) & ~thin[:, None]
    rows, columns = np.nonzero(tight)
    found = np.column_stack([normals[rows, columns], offsets[rows, columns]])
    key = np.round(found / [SAME, SAME, SAME, 0.01 * flat])
    _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
    bounds = np.zeros((len(tight), len(first)), bool)
    bounds[rows, which.reshape(-1)] = True
    bounds = np.unique(bounds[tight.any(axis=1)], axis=0)
    return Cones(found[first, :3], found[first, 3], bounds)


def cuts_at(polytopes: FaceDifferences, s: np.ndarray, blocked: np.ndarray, most: int) -> Cones:
    """Return half-spaces that separate s from a blocked translation.

    Of the polytopes that hold the blocked translation the deepest are taken, each by the facet that
    s is farthest beyond.
    """
    normals, offsets = polytopes
    depth = (offsets - normals @ blocked).min(axis=1)
    rows = np.argsort(-depth, kind="stable")[:most]
    facets = np.argmin(offsets[rows] - normals[rows] @ s, axis=1)
    return Cones(normals[rows, facets], offsets[rows, facets], np.eye(len(rows), dtype=bool))


def beside(cones: Cones, s: np.ndarray, near: float) -> Cones:
    """Return the cones that s is beside, or at most ``near`` in."""
    clear = cones.bounds[:, cones.normals @ s >= cones.offsets - near].any(axis=1)
    return Cones(cones.normals, cones.offsets, cones.bounds[clear])


def joined_cones(parts: list[Cones]) -> Cones:
    """Return all cones of several sets."""
    counts = [len(part.offsets) for part in parts]
    bounds = [
        np.pad(part.bounds, ((0, 0), (sum(counts[:i]), sum(counts[i + 1 :]))))
        for i, part in enumerate(parts)
    ]
    return Cones(
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate(bounds),
    )


def shortest_beside(cones: Cones, clearance: float, limit: float) -> np.ndarray | None:
    """Return the shortest translation that clears all cones, None if not below ``limit``.

    A clearance above rounding excludes the common boundary of cones that only together block.
    The translation is zero, or nearest to zero of a facet, a line of two or a corner of three.
    """
    offsets = cones.offsets + clearance
    points = vertices_and_feet(cones.normals, offsets)
    length = np.linalg.norm(points, axis=1)
    order = np.argsort(length, kind="stable")
    order = order[length[order] < limit]
    for start in range(0, len(order), CHUNK):
        rows = points[order[start : start + CHUNK]]
        beyond = rows @ cones.normals.T >= offsets - 1e-3 * clearance
        free = np.all(np.any(beyond[:, None] & cones.bounds, axis=2), axis=1)
        if free.any():
            return rows[np.argmax(free)]
    return None


def vertices_and_feet(normals: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return (k, 3) zero, and the nearest points to it of planes, of lines of two, and corners.

    The planes are ``normals @ x == offsets``.
    """
    count = len(offsets)
    found = [np.zeros((1, 3)), offsets[:, None] * normals]
    if count > 1:
        i, j = np.triu_indices(count, 1)
        cosine = np.einsum("kd,kd->k", normals[i], normals[j])
        sine = 1.0 - cosine**2
        real = sine > 1e-12
        i, j, cosine, sine = i[real], j[real], cosine[real], sine[real]
        x = (offsets[i] - cosine * offsets[j]) / sine
        y = (offsets[j] - cosine * offsets[i]) / sine
        found.append(x[:, None] * normals[i] + y[:, None] * normals[j])
    if 2 < count <= MOST_FOR_CORNERS:
        rows = np.array(list(combinations(range(count), 3)))
        matrices = normals[rows]
        real = np.abs(np.linalg.det(matrices)) > 1e-9
        found.append(np.linalg.solve(matrices[real], offsets[rows[real]][:, :, None])[:, :, 0])
    return np.concatenate(found)
