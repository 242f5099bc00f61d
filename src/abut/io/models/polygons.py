"""Triangles of polygons, convex or not."""

import numpy as np


def triangles_of_polygons(
    points: np.ndarray, counts: np.ndarray, corners: np.ndarray
) -> np.ndarray:
    """Cut polygons into triangles that use their corners alone, so that closed meshes stay closed.

    Args:
        points: (n, 3) vertices.
        counts: (m,) corners of each polygon; polygons with fewer than three have no triangle.
        corners: (sum of counts,) vertices of the polygons.

    Returns:
        (k, 3) triangles in the order of the polygons, wound as these are.
    """
    first = np.cumsum(counts) - counts
    pieces, owners = [], []
    for count in np.unique(counts[counts >= 3]).tolist():
        rows = np.flatnonzero(counts == count)
        loops = corners[first[rows, None] + np.arange(count)]
        pieces.append(_of_equal(points, loops).reshape(-1, 3))
        owners.append(np.repeat(rows, count - 2))
    if not pieces:
        return np.empty((0, 3), np.int32)
    order = np.argsort(np.concatenate(owners), kind="stable")
    return np.concatenate(pieces)[order].astype(np.int32)


def _of_equal(points: np.ndarray, loops: np.ndarray) -> np.ndarray:
    """Return (m, c - 2, 3) triangles of m polygons with c corners each."""
    count = loops.shape[1]
    if count == 3:
        return loops[:, None]
    normals = _normals(points[loops])
    out = np.empty((len(loops), count - 2, 3), loops.dtype)
    left = np.ones(len(loops), bool)
    for start in range(2 if count == 4 else 1):
        turned = np.roll(loops, -start, axis=1)
        fan = np.stack(
            [np.repeat(turned[:, :1], count - 2, axis=1), turned[:, 1:-1], turned[:, 2:]], axis=2
        )
        a, b, c = np.moveaxis(points[fan], 2, 0)
        whole = ((np.cross(b - a, c - a) * normals[:, None]).sum(axis=2) > 0).all(axis=1) & left
        out[whole] = fan[whole]
        left &= ~whole
    for row in np.flatnonzero(left).tolist():
        ears = _ears(_flattened(points[loops[row]], normals[row]))
        out[row] = loops[row][ears]
    return out


def _normals(loops: np.ndarray) -> np.ndarray:
    """Return twice the vector areas (Newell) of polygons (m, c, 3)."""
    local = loops - loops[:, :1]
    return np.cross(local, np.roll(local, -1, axis=1)).sum(axis=1)


def _flattened(loop: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Drop the coordinate along which a polygon is flattest; it runs counterclockwise then."""
    axis = int(np.argmax(np.abs(normal)))
    kept = [(axis + 1) % 3, (axis + 2) % 3]
    return loop[:, kept if normal[axis] >= 0 else kept[::-1]]


def _ears(loop: np.ndarray) -> list[tuple[int, int, int]]:
    """Cut ears off a polygon in the plane; of a polygon without ears, the flattest corner."""
    left, found = list(range(len(loop))), []
    while len(left) > 3:
        spots = range(len(left))
        turns = [_turn(loop, left[k - 1], left[k], left[(k + 1) % len(left)]) for k in spots]
        ears = (k for k in spots if turns[k] > 0 and _is_empty(loop, left, k))
        flat = min(spots, key=lambda k: abs(turns[k]))
        k = next(ears, flat)
        found.append((left[k - 1], left[k], left[(k + 1) % len(left)]))
        del left[k]
    return [*found, (left[0], left[1], left[2])]


def _turn(loop: np.ndarray, a: int, b: int, c: int) -> float:
    """Return twice the signed area of a triangle."""
    (ax, ay), (bx, by), (cx, cy) = loop[a].tolist(), loop[b].tolist(), loop[c].tolist()
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def _is_empty(loop: np.ndarray, left: list[int], k: int) -> bool:
    """Return whether no other corner is in the triangle at a corner."""
    a, b, c = left[k - 1], left[k], left[(k + 1) % len(left)]
    ends = {tuple(loop[v].tolist()) for v in (a, b, c)}
    for other in left:
        if tuple(loop[other].tolist()) in ends:
            continue
        sides = _turn(loop, a, b, other), _turn(loop, b, c, other), _turn(loop, c, a, other)
        if min(sides) >= 0:
            return False
    return True
