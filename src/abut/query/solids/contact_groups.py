"""Connected sets of contacts between faces."""

import numpy as np

from abut.geometry.topology import components


def contact_groups(pairs: np.ndarray, features: np.ndarray, faces: list[np.ndarray]) -> np.ndarray:
    """Return the connected set of common points to which each pair of faces belongs.

    Two contacts with the same face are connected if the edge or the corner that the two other
    faces share meets it; all connections of common points of the surfaces are chains of these.

    Args:
        pairs: (n, 2) faces that meet.
        features: (n,) bits of ``contact_features``.
        faces: Welded faces of a and of b.

    Returns:
        (n,) int, numbered in the order of the lowest pair.
    """
    links = []
    used = len(pairs)
    for side in range(2):
        corners = faces[side][pairs[:, side]].astype(np.int64)
        other = pairs[:, 1 - side].astype(np.int64)
        size = int(corners.max(initial=0)) + 1
        for k in range(3):
            low = np.minimum(corners[:, k], corners[:, (k + 1) % 3])
            high = np.maximum(corners[:, k], corners[:, (k + 1) % 3])
            meets = features & (1 << (3 * side + k)) != 0
            at = features & (64 << (3 * side + k)) != 0
            for rows, name in ((meets, low * size + high), (at, corners[:, k] * (size + 1))):
                links.append(np.stack([np.full(rows.sum(), side), name[rows], other[rows]]))
                links[-1] = np.vstack([links[-1], np.flatnonzero(rows)])
    which, name, other, row = np.concatenate(links, axis=1)
    _, short = np.unique(2 * name + which, return_inverse=True)
    _, node = np.unique(short * (int(other.max(initial=0)) + 1) + other, return_inverse=True)
    groups = components(np.stack([row, used + node], axis=1), used + len(row))[:used]
    return np.unique(groups, return_inverse=True)[1].reshape(-1)
