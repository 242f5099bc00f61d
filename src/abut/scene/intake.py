"""Intake: vertices of objects as they come in, checked."""

from typing import Any

import warp as wp

from abut.core.cache import RecentCache
from abut.core.point_check import PointCheck, not_finite_error, vertex_rows


class Intake:
    """Makes float64 points of vertices, in buffers that the next call may use again."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._kept = RecentCache()

    def points(self, vertices: Any) -> wp.array:
        """Vertices (n, 3) of a plain array on the device; refuses what is not finite."""
        rows = points = vertex_rows(vertices, self.device)
        source = rows if rows.dtype is wp.vec3f else None
        if source is not None:
            points = self._kept.get((rows.shape[0],), lambda: self._room(rows.shape[0]))
        where = (points.ptr or 0, points.shape[0])  # an array may come as a new view each time
        about = (*where, int(source is not None))
        extent = self._kept.get(about, lambda: PointCheck(points, vertices=source))
        extent.start(source)
        first_bad, _ = extent.read()
        if first_bad >= 0:
            raise not_finite_error("vertices", rows, first_bad)
        return points

    def _room(self, count: int) -> wp.array:
        return wp.empty(count, dtype=wp.vec3d, device=self.device)
