"""Triangulation of planar regions bounded by loops."""

import numpy as np

NEAREST = 24  # vertices tried for a bridge to a hole
FLAT = 1e-12  # corners of a smaller cross product, over the extent squared, come last


def triangulated(points: np.ndarray, loops: list[np.ndarray]) -> np.ndarray:
    """Triangles (m, 3) of the region bounded by loops of ``points`` (n, 2).

    Outer loops run counter-clockwise, holes clockwise. Each edge of a loop is an edge of one
    triangle and every other edge is shared by two, for any points: a closed surface
    stays closed. Where loops do not cross, triangles do not overlap.
    """
    loops = [loop for loop in loops if len(loop) > 2]
    areas = [_area(points[loop]) for loop in loops]
    outers = [loop for loop, area in zip(loops, areas, strict=True) if area > 0]
    holes = [loop for loop, area in zip(loops, areas, strict=True) if area <= 0]
    for hole in sorted(holes, key=lambda loop: -points[loop, 0].max()):
        around = [k for k, loop in enumerate(outers) if _inside(points[hole[0]], points[loop])]
        if around:
            k = min(around, key=lambda k: _area(points[outers[k]]))
            outers[k] = _bridged(points, outers[k], hole)
        else:
            outers.append(hole)
    parts = [_filled(points, loop) for loop in outers]
    return np.concatenate([np.zeros((0, 3), np.int64), *parts])


def _filled(points: np.ndarray, loop: np.ndarray) -> np.ndarray:
    """Triangulate one loop: cut off every other corner, repeatedly, to avoid long triangles.

    The long triangles of a fan would have large boxes.
    """
    xy = points[loop]
    after, before = np.roll(xy, -1, axis=0), np.roll(xy, 1, axis=0)
    u, v = xy - before, after - xy
    turn = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    turned = np.arctan2(turn, np.einsum("ij,ij->i", u, v)).sum()
    if turn.min() <= FLAT * np.ptp(xy, axis=0).max() ** 2 or turned > 6.3:
        return _ears(points, loop)
    faces = []
    while len(loop) > 2:
        odd = np.arange(1, len(loop), 2)
        odd = odd[: max(1, len(loop) - 2)] if len(loop) < 5 else odd
        faces.append(np.stack([loop[odd - 1], loop[odd], loop[(odd + 1) % len(loop)]], axis=1))
        loop = np.delete(loop, odd)
    return np.concatenate(faces)


def _ears(points: np.ndarray, loop: np.ndarray) -> np.ndarray:
    """Clip ears: corners that contain no other corner, flat ones last."""
    left, ears, at, idle = loop.tolist(), [], 0, 0
    xy = points[loop]
    flat = FLAT * np.ptp(xy, axis=0).max() ** 2
    while len(left) > 3:
        count = len(left)
        i, j, k = (at - 1) % count, at % count, (at + 1) % count
        if idle > 2 * count or _is_ear(xy, i, j, k, flat if idle <= count else -flat):
            ears.append((left[i], left[j], left[k]))
            del left[j]
            xy = np.delete(xy, j, axis=0)
            at, idle = j + 1, 0  # skip a corner, so that ears do not all share one vertex
        else:
            at, idle = at + 1, idle + 1
    return np.array([*ears, left], np.int64)


def _is_ear(xy: np.ndarray, i: int, j: int, k: int, least: float) -> bool:
    a, b, c = xy[i], xy[j], xy[k]
    turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    if turn < least:
        return False
    x, y = xy[:, 0], xy[:, 1]
    within = (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) >= 0
    within &= (c[0] - b[0]) * (y - b[1]) - (c[1] - b[1]) * (x - b[0]) >= 0
    within &= (a[0] - c[0]) * (y - c[1]) - (a[1] - c[1]) * (x - c[0]) >= 0
    within[[i, j, k]] = False
    if not within.any():
        return True
    corners = xy[within]  # bridges visit a corner twice
    same = (corners[:, None] == np.stack([a, b, c])).all(axis=2).any(axis=1)
    return bool(same.all())


def _bridged(points: np.ndarray, outer: np.ndarray, hole: np.ndarray) -> np.ndarray:
    """Join a hole to the outer loop by a bridge, traversed in both directions."""
    start = int(np.argmax(points[hole, 0]))
    p = points[hole[start]]
    near = np.argsort(((points[outer] - p) ** 2).sum(axis=1), kind="stable")
    sides = [(points[loop], points[np.roll(loop, -1)]) for loop in (outer, hole)]
    heads, tails = (np.concatenate(ends) for ends in zip(*sides, strict=True))
    free = (k for k in near[:NEAREST] if not _crosses(p, points[outer[k]], heads, tails))
    end = int(next(free, near[0]))
    there = np.concatenate([np.roll(outer, -end), outer[end : end + 1]])
    return np.concatenate([there, np.roll(hole, -start), hole[start : start + 1]])


def _crosses(p: np.ndarray, q: np.ndarray, heads: np.ndarray, tails: np.ndarray) -> bool:
    """Whether pq crosses a segment other than at its ends."""
    apart = [(x != p).any(axis=1) & (x != q).any(axis=1) for x in (heads, tails)]
    s = _side(p, q, heads) * _side(p, q, tails)
    t = _side(heads, tails, p) * _side(heads, tails, q)
    return bool(((s <= 0) & (t <= 0) & apart[0] & apart[1]).any())


def _side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    u, v = b - a, c - a
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]


def _area(around: np.ndarray) -> float:
    x, y = (around - around[0]).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def _inside(p: np.ndarray, around: np.ndarray) -> bool:
    a, b = around, np.roll(around, -1, axis=0)
    spans = (a[:, 1] > p[1]) != (b[:, 1] > p[1])
    a, b = a[spans], b[spans]
    x = a[:, 0] + (p[1] - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
    return bool((x > p[0]).sum() % 2)
