"""Area vectors, normals and centroids of regions of contact."""

from collections.abc import Iterator

import numpy as np

from abut.narrow.contact_features import ContactFeatures
from abut.query.solids.contact_curves import Segments

FLAT = 1e-12  # lengths and areas below this share of coordinates and lengths are rounding


def region_sums(
    segments: Segments,
    features: ContactFeatures,
    region: np.ndarray,
    touching: np.ndarray,
    surfaces: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (n, 3) area vectors, normals and centroids of regions.

    Args:
        segments: Segments of pairs of faces, b shifted.
        features: Features of the same pairs.
        region: (k,) region of each pair.
        touching: (n,) whether a region has no common interior.
        surfaces: Points and faces of a and of b.
    """
    count = len(touching)

    def total(rows: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(region, row, count) for row in rows.T], axis=1)

    origin, extent = _middles(features.ends, region, count)
    fans, centres = _fans(segments, origin[region])
    lacking = _lacking_overlaps(features)
    area = total(fans + lacking)
    size = np.linalg.norm(area, axis=1)
    reach = np.abs(origin).max(axis=1, initial=0.0)
    wide = (size > FLAT * extent * (extent + reach)) & (extent > FLAT * reach)
    normal = np.full((count, 3), np.nan)
    long = are_long(features.ends)
    for i, rows in rows_of(region, touching & ~wide):
        along = rows[long[rows]]  # faces that meet along an edge count alone
        normal[i] = _normal_of_faces(segments.pairs[along if len(along) else rows], surfaces)
    normal[wide] = area[wide] / size[wide, None]
    area[~wide] = 0.0
    seen = normal[region]
    moment = (fans * seen).sum(axis=1, keepdims=True) * centres
    moment += (lacking * seen).sum(axis=1, keepdims=True) * (features.centroid - origin[region])
    centroid = origin
    centroid[wide] += total(moment)[wide] / size[wide, None]
    return area, normal, centroid


def rows_of(region: np.ndarray, wanted: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Iterate over wanted regions and the pairs of faces of each."""
    order = np.argsort(region, kind="stable")
    stops = np.searchsorted(region[order], np.arange(len(wanted) + 1))
    return ((i, order[stops[i] : stops[i + 1]]) for i in np.flatnonzero(wanted).tolist())


def are_long(ends: np.ndarray) -> np.ndarray:
    """Return which segments (n, 2, 3) are longer than roundings of their ends."""
    return np.ptp(ends, axis=1).max(axis=1) > FLAT * np.abs(ends).max(axis=(1, 2))


def _middles(ends: np.ndarray, region: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centroid of the different segments or points of each region, and their length."""
    (x, y, z), (u, v, w) = np.moveaxis(ends, 0, -1)
    swapped = (x > u) | ((x == u) & ((y > v) | ((y == v) & (z > w))))
    ends = np.where(swapped[:, None, None], ends[:, ::-1], ends)
    rows = np.unique(np.column_stack([region, ends.reshape(-1, 6)]), axis=0)
    region, ends = rows[:, 0].astype(int), rows[:, 1:].reshape(-1, 2, 3)
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    whole = np.bincount(region, length, count)
    weight = np.where(whole[region] > 0.0, length, 1.0)
    middle = weight[:, None] * ends.mean(axis=1)
    out = np.stack([np.bincount(region, row, count) for row in middle.T], axis=1)
    return out / np.bincount(region, weight, count)[:, None], whole


def _fans(segments: Segments, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return area vectors of triangles of origins and segments, and their relative centroids."""
    u, v = segments.points[:, 0] - origin, segments.points[:, 1] - origin
    crossing = segments.edges[:, :1] >= 0
    return np.where(crossing, np.cross(u, v) / 2.0, 0.0), np.where(crossing, (u + v) / 3.0, 0.0)


def _lacking_overlaps(features: ContactFeatures) -> np.ndarray:
    """Return areas that curves leave out: overlaps, and half of them where normals are the same.

    The shift of b counts an overlap if it moves b's face along its normal, else not.
    """
    wanted = np.select([features.alike < 0, features.alike > 0], [1.0, 0.5], 0.0)
    return (wanted - (np.abs(features.alike) == 2))[:, None] * features.overlap


def _normal_of_faces(
    pairs: np.ndarray, surfaces: list[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Return the normal of a contact in a point or along edges, out of a.

    That of a's or of b's plane if there is one, across two edges if they cross, else the mean.
    """
    of_a, of_b = (
        _distinct_normals(points[faces[np.unique(pairs[:, side])]])
        for side, (points, faces) in enumerate(surfaces)
    )
    if len(of_a) == 1 or len(of_b) == 1:
        return of_a[0] if len(of_a) == 1 else -of_b[0]
    out = np.sum(of_a, axis=0) - np.sum(of_b, axis=0)
    if len(of_a) == len(of_b) == 2:
        across = np.cross(np.cross(of_a[0], of_a[1]), np.cross(of_b[0], of_b[1]))
        if np.linalg.norm(across) > FLAT:
            out = across if across @ out >= 0.0 else -across
    size = np.linalg.norm(out)
    return out / size if size > FLAT else np.full(3, np.nan)


def _distinct_normals(corners: np.ndarray) -> list[np.ndarray]:
    """Return the unit normals of faces (m, 3, 3) that differ by more than rounding."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    out: list[np.ndarray] = []
    for normal in normals / np.linalg.norm(normals, axis=1, keepdims=True):
        if all(np.abs(normal - other).max() > FLAT for other in out):
            out.append(normal)
    return out
