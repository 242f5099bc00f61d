"""Solids made of tetrahedra of one grid, whose relation is a matter of sets."""

from itertools import permutations

import numpy as np

ORDERS = [np.eye(3, dtype=int)[list(order)] for order in permutations(range(3))]


def kuhn_tets(cells):
    """(6 n, 4, 3) corners of the tetrahedra of unit cubes at integer cells (Freudenthal)."""
    paths = np.array([np.vstack([np.zeros(3, int), np.cumsum(o, axis=0)]) for o in ORDERS])
    return (np.asarray(cells)[:, None, None, :] + paths).reshape(-1, 4, 3)


def refined(tets, scale):
    """The tetrahedra of the unit grid that fill tetrahedra of the grid ``scale`` as coarse."""
    low = tets.min(axis=1)
    fine = kuhn_tets(
        np.unique([p + d for p in low for d in np.ndindex(scale, scale, scale)], axis=0)
    )
    centres = fine.sum(axis=1)  # four times
    kept = [fine[inside_tet(centres, 4 * tet)] for tet in tets]
    assert all(len(k) == scale**3 for k in kept)
    return np.concatenate(kept)


def inside_tet(points, tet):
    """Which integer points are inside a tetrahedron."""
    out = np.ones(len(points), bool)
    for k in range(4):
        p, q, r = np.delete(tet, k, axis=0)
        n = np.cross(q - p, r - p)
        out &= ((points - p) @ n) * ((tet[k] - p) @ n) > 0
    return out


def surface(tets):
    """(points, faces) of the boundary of a set of tetrahedra, oriented outward."""
    faces = []
    for tet in tets:
        for k in range(4):
            p, q, r = np.delete(tet, k, axis=0)
            if np.cross(q - p, r - p) @ (tet[k] - p) > 0:
                q, r = r, q
            faces.append((tuple(p), tuple(q), tuple(r)))
    count = {}
    for face in faces:
        key = tuple(sorted(face))
        count[key] = count.get(key, 0) + 1
    kept = [face for face in faces if count[tuple(sorted(face))] == 1]
    points = sorted({p for face in kept for p in face})
    index = {p: i for i, p in enumerate(points)}
    return np.array(points, float), np.array([[index[p] for p in face] for face in kept])


def keys(tets):
    """The set of tetrahedra."""
    return {tuple(sorted(map(tuple, tet))) for tet in tets.tolist()}


def relation_of(a, b):
    """The relation of two sets of tetrahedra of one grid."""
    common = a & b
    if not common:
        corners_a, corners_b = ({p for tet in side for p in tet} for side in (a, b))
        return "touching" if corners_a & corners_b else "apart"
    if a == b:
        return "equal"
    return "a_in_b" if a <= b else "b_in_a" if b <= a else "crossing"


def random_tets(rng, size, share):
    """A random set of tetrahedra of a grid of ``size`` cubes a side, at least one."""
    tets = kuhn_tets(list(np.ndindex(size, size, size)))
    if rng.random() < 0.5:  # whole cubes
        kept = np.repeat(rng.random(size**3) < share, 6)
    else:
        kept = rng.random(len(tets)) < share
    kept[rng.integers(len(tets))] = True
    return tets[kept]
