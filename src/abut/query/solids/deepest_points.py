"""The deepest of many points inside a solid, for each of several sets."""

import numpy as np

from abut.mesh import Mesh
from abut.query.closest_point import closest_point

POINTS_PER_CELL = 16  # about; one of them is measured first
SAFE = 1.0 + 1e-9  # covers roundings


def deepest_points(
    mesh: Mesh, pose: np.ndarray | None, points: np.ndarray, of_point: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the names of sets of points, the point of each farthest from a surface, its distance.

    Distances to a surface differ by at most the distance of two points. So one point of each cell
    of a grid bounds the others, and few of them are measured.

    Args:
        mesh: The surface.
        pose: (4, 4) or None.
        points: (n, 3).
        of_point: (n,) set of each point.
    """
    names, which = np.unique(of_point, return_inverse=True)
    sample, cell = _first_of_cells(points, which)
    near = closest_point(mesh, points[sample], pose=pose).distance.numpy()
    best = np.zeros(len(names))
    np.maximum.at(best, which[sample], near)
    reach = np.linalg.norm(points - points[sample][cell], axis=1)
    wanted = np.flatnonzero((near[cell] + reach) * SAFE >= best[which])
    distance = closest_point(mesh, points[wanted], pose=pose).distance.numpy()
    ranks = np.lexsort((*points[wanted].T[::-1], -distance, which[wanted]))
    first = ranks[np.unique(which[wanted][ranks], return_index=True)[1]]
    return names, points[wanted[first]], distance[first]


def _first_of_cells(points: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one point of each used cell of a grid and of each set, and the cell of each point."""
    side = max(1, round((len(points) / POINTS_PER_CELL) ** 0.5))
    low, size = points.min(axis=0), np.ptp(points, axis=0).max()
    at = np.zeros(points.shape, int)
    if size > 0.0:
        at = np.minimum((points - low) / size * side, side - 1).astype(int)
    keys = which
    for axis in range(3):
        keys = keys * side + at[:, axis]
    _, sample, cell = np.unique(keys, return_index=True, return_inverse=True)
    return sample, cell.reshape(-1)
