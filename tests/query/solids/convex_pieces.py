"""Solids as unions of convex pieces, and an exact check whether their interiors meet."""

from fractions import Fraction

import numpy as np
from scipy.spatial import Delaunay

CLEAR = 1e-9  # a gap or overlap along an axis, times the size, that rounding cannot make


def tets_and_surface(points, tets):
    """(k, 4) tetrahedra with positive volume, and the faces of the union, outward."""
    corners = points[tets]
    flip = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0
    tets = np.where(flip[:, None], tets[:, [1, 0, 2, 3]], tets)
    faces = tets[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
    _, which, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return tets, faces[count[which.reshape(-1)] == 1]


def random_solid(rng, point_count, share):
    """Points, tetrahedra and faces of a connected set of Delaunay tetrahedra of random points."""
    while True:
        points = rng.uniform(-1.0, 1.0, (point_count, 3))
        mesh = Delaunay(points)
        corners = points[mesh.simplices]
        volume = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1]))
        good = volume > 0.02
        if not good.any():
            continue
        chosen = {int(rng.choice(np.flatnonzero(good)))}
        wanted = max(1, int(share * good.sum()))
        while len(chosen) < wanted:
            beside = {int(n) for c in chosen for n in mesh.neighbors[c] if n >= 0 and good[n]}
            beside -= chosen
            if not beside:
                break
            chosen.add(int(rng.choice(sorted(beside))))
        return points, *tets_and_surface(points, mesh.simplices[sorted(chosen)])


def interiors_meet(pieces_a, pieces_b):
    """Whether tetrahedra (n, 4, 3) and (m, 4, 3) have common interior, exactly."""
    low_a, high_a = pieces_a.min(axis=1)[:, None], pieces_a.max(axis=1)[:, None]
    low_b, high_b = pieces_b.min(axis=1)[None], pieces_b.max(axis=1)[None]
    close = ((low_a < high_b) & (low_b < high_a)).all(axis=2)
    return any(_tets_meet(pieces_a[i], pieces_b[j]) for i, j in np.argwhere(close))


EDGES = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
FACES = np.array([(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)])


def _axes(a, b):
    """(44, 3) normals of faces, and products of edges, of two tetrahedra; of any number type."""
    edges = [p[EDGES[:, 1]] - p[EDGES[:, 0]] for p in (a, b)]
    faces = [
        _cross(p[FACES[:, 1]] - p[FACES[:, 0]], p[FACES[:, 2]] - p[FACES[:, 0]]) for p in (a, b)
    ]
    both = _cross(np.repeat(edges[0], 6, axis=0), np.tile(edges[1], (6, 1)))
    return np.concatenate([*faces, both])


def _cross(u, v):
    x, y, z = u.T
    p, q, r = v.T
    return np.stack([y * r - z * q, z * p - x * r, x * q - y * p], axis=1)


def _gaps(axes, a, b):
    """The gap between two point sets along each axis, negative if they overlap."""
    on_a, on_b = axes @ a.T, axes @ b.T
    return np.maximum(on_b.min(axis=1) - on_a.max(axis=1), on_a.min(axis=1) - on_b.max(axis=1))


def _tets_meet(a, b):
    axes = _axes(a, b)
    length = np.linalg.norm(axes, axis=1)
    gaps = np.where(length > 1e-12, _gaps(axes, a, b) / np.maximum(length, 1e-12), -np.inf)
    if gaps.max() > CLEAR:
        return False
    exact = [np.array([[Fraction(float(x)) for x in p] for p in tet], object) for tet in (a, b)]
    axes = _axes(*exact)
    for row in np.argsort(-gaps):
        if any(axes[row]) and _gaps(axes[row : row + 1], *exact)[0] >= 0:
            return False
    return True


def first_free_along(pieces_a, pieces_b, direction):
    """The first t >= 0 at which tetrahedra b, moved by t along a direction, have left all of a.

    Two tetrahedra overlap in an open interval of t, between slabs of the 44 axes; the answer is the
    first point that no interval covers.
    """
    spans = []
    for a in pieces_a:
        for b in pieces_b:
            axes = _axes(a, b)
            axes = axes[np.linalg.norm(axes, axis=1) > 1e-12]
            on_a, on_b, rate = axes @ a.T, axes @ b.T, axes @ direction
            ends = np.stack(
                [on_a.min(axis=1) - on_b.max(axis=1), on_a.max(axis=1) - on_b.min(axis=1)]
            )
            ends = np.sort(ends / rate, axis=0)
            spans.append((ends[0].max(), ends[1].min()))
    t = 0.0
    for start, stop in sorted(span for span in spans if span[0] < span[1]):
        if start < t + 1e-12 and stop > t:
            t = stop
    return t
