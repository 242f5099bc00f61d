"""One region of contact of two solids, and a few points that stand for it."""

from dataclasses import dataclass

import numpy as np

SMALL = 1e-9  # share of a region's size; points that add less are left out


@dataclass(frozen=True)
class ContactRegion:
    """One region of contact; ``ContactRegions`` describes the attributes."""

    area_vector: np.ndarray
    normal: np.ndarray
    centroid: np.ndarray
    deepest: np.ndarray
    depth: float
    touching: bool
    curves: list[np.ndarray]

    def points(self, count: int = 4) -> np.ndarray:
        """Return at most ``count`` points (k, 3), as contact manifolds have.

        The deepest comes first; where solids only touch, the point of the curves that is farthest
        from the centroid. Then comes the point of the curves farthest from it. Each further one
        adds the largest area to the convex hull of the points, seen along the normal. The first of
        equal ones is taken, and points that add nothing are left out.
        """
        if not self.curves:
            return self.deepest[None][:count]
        points = np.concatenate(self.curves)
        flat = _seen_along(points, self.normal)
        first, at = self.deepest, _seen_along(self.deepest[None], self.normal)
        if self.touching:  # all are as deep
            farthest = int(np.argmax(_gains(_seen_along(self.centroid[None], self.normal), flat)))
            first, at = points[farthest], flat[farthest : farthest + 1]
        chosen, hull = [first], list(at)
        small = SMALL * float(np.ptp(flat, axis=0).max())
        while len(chosen) < count:
            gain = _gains(np.array(hull), flat)
            best = int(np.argmax(gain))
            if not gain[best] > (small if len(hull) < 2 else small * small):
                break
            chosen.append(points[best])
            hull = _hull([*hull, flat[best]])
        return np.array(chosen[:count])


def _seen_along(points: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return coordinates (n, 2) in a plane across ``normal``, across z if that is undefined."""
    normal = np.nan_to_num(normal)
    normal = normal if normal.any() else np.array([0.0, 0.0, 1.0])
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    u /= np.linalg.norm(u)
    return points @ np.stack([u, np.cross(normal, u)], axis=1)


def _gains(hull: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return twice the area that each point adds to a convex polygon; a length for one corner."""
    if len(hull) == 1:
        return np.linalg.norm(points - hull[0], axis=1)
    sides = np.roll(hull, -1, axis=0) - hull
    offset = points[:, None] - hull
    cross = sides[:, 0] * offset[..., 1] - sides[:, 1] * offset[..., 0]
    return np.maximum(-cross, 0.0).sum(axis=1)


def _hull(points: list[np.ndarray]) -> list[np.ndarray]:
    """Return the corners of the convex hull, counter-clockwise (Andrew's monotone chain)."""
    rows = sorted(points, key=lambda p: (p[0], p[1]))
    halves = []
    for half in (rows, rows[::-1]):
        chain: list[np.ndarray] = []
        for p in half:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0.0:
                chain.pop()
            chain.append(p)
        halves += chain[:-1]
    return halves


def _turn(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> float:
    return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))
