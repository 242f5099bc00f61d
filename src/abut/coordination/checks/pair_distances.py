"""Distances and nearest points of pairs of parts."""

import numpy as np

from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.query.distance import distance


def pair_distances(
    surfaces: PartSurfaces, pairs: np.ndarray, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of pairs, inf beyond their reach, and (k, 2, 3) nearest points, NaN beyond.

    Args:
        surfaces: Surfaces of the parts.
        pairs: (k, 2) rows of parts.
        reach: (k,) how far apart parts may be [m].
    """
    values, points = np.full(len(pairs), np.inf), np.full((len(pairs), 2, 3), np.nan)
    poses = surfaces.parts.poses
    for k, (i, j) in enumerate(pairs.tolist()):
        far = float(reach[k])
        a, b = surfaces[i].mesh, surfaces[j].mesh
        near = distance(a, b, pose_a=poses[i], pose_b=poses[j], upper_bound=far)
        values[k] = near.value
        if np.isfinite(near.value):
            points[k] = near.points.numpy()
    return values, points
