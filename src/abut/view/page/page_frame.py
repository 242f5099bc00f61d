"""PageFrame: the coordinates of a page, in which every scene has the same size."""

from dataclasses import dataclass

import numpy as np

from abut.view.page.live_scene import LiveScene

SIZE = 2.0  # extent of a scene on the page


@dataclass(frozen=True)
class PageFrame:
    """Page coordinates are ``(world - origin) * scale``; small enough for float32 in a browser."""

    origin: np.ndarray
    scale: float

    @staticmethod
    def around(live: LiveScene) -> "PageFrame":
        """The frame in which all objects fit into a box of side SIZE about the origin."""
        rows = [row for row in live.objects if live.meshes[row].vertex_count]
        if not rows:
            return PageFrame(np.zeros(3), 1.0)
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for row in rows:
            box = live.points(row) @ live.poses[row, :3, :3].T + live.poses[row, :3, 3]
            low, high = np.minimum(low, box.min(axis=0)), np.maximum(high, box.max(axis=0))
        extent = float((high - low).max())
        return PageFrame((low + high) / 2, SIZE / extent if extent > 0 else 1.0)

    def points(self, world: np.ndarray) -> np.ndarray:
        """Points of the world as float32 on the page."""
        return ((world - self.origin) * self.scale).astype(np.float32)

    def world(self, points: np.ndarray) -> np.ndarray:
        """Points of the page in the world."""
        return np.asarray(points, np.float64) / self.scale + self.origin
