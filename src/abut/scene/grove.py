"""Grove: the trees of a scene's shapes, which follow what becomes of them."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.batched import Parts, build_batched, grids_of, refit_batched
from abut.core.cache import RecentCache
from abut.core.timing import stage
from abut.scene.store import Store

REBUILD_EVERY = 32  # refits


class BatchedTrees(Store):
    """Bodies with a tree each, built or refitted all at once when it is time.

    Attributes:
        grown: How often the tree of each body has become another.
        bent: How often its boxes were fitted anew.
    """

    def __init__(self, device: wp.Device) -> None:
        super().__init__(device)
        self.grown = np.zeros(0, np.int64)
        self.bent = np.zeros(0, np.int64)
        self._unbuilt: dict[int, list[float]] = {}  # bodies without a tree, and their grids
        self._worn = np.zeros(0, bool)
        self._refits = 0
        self._regrowing = RecentCache()
        self._last_parts: tuple[np.ndarray, np.ndarray, Parts] | None = None

    def new_rows(self, count: int) -> np.ndarray:
        """Free rows of the table, for other trees than before."""
        rows = super().new_rows(count)
        more = np.zeros(len(self.table) - len(self.grown), np.int64)
        self.grown, self.bent = (np.concatenate([n, more]) for n in (self.grown, self.bent))
        self._worn = np.concatenate([self._worn, more != 0])
        self.grown[rows] += 1
        return rows

    def to_build(self, body: int, grid: list[float]) -> None:
        """A body has no tree yet; ``grid`` is as ``build_batched`` takes it."""
        self._unbuilt[body] = grid

    def wear(self, bodies: Any) -> None:
        """The points of bodies have moved."""
        self._worn[bodies] = True

    def free_row(self, body: int) -> None:
        """A body is no more, and needs no tree."""
        self._worn[body] = False
        self._unbuilt.pop(body, None)
        super().free_row(body)

    def grow(self) -> None:
        """Let trees follow what has changed."""
        self.update_table()
        with stage("hierarchy", self.device):
            if self._unbuilt:
                new, rows = np.array(list(self._unbuilt)), np.array(list(self._unbuilt.values()))
                self._plant(new, wp.array(rows, dtype=wp.vec4d, device=self.device))
                self._worn[new] = False
                self._unbuilt = {}
            worn = np.flatnonzero(self._worn)
            if len(worn):
                self._worn[worn] = False
                self._follow_shape(worn[self.table["face_count"][worn] > 0])

    def plant_within(self, bodies: np.ndarray, whole: int) -> None:
        """Build the trees of the pieces of a body, with its grid."""
        grids = grids_of(self.forest, np.full(len(bodies), whole), self.device)
        self.update_table()
        self._plant(bodies, grids)

    def _plant(self, bodies: np.ndarray, grids: wp.array) -> None:
        build_batched(self.forest, self._parts(bodies), grids, self.device)
        self.grown[bodies] += 1

    def _follow_shape(self, worn: np.ndarray) -> None:
        """Refit, or build anew now and then: a refit keeps a tree that was for another shape."""
        if not len(worn):
            return
        parts = self._parts(worn)
        about = (self.generation, parts)
        self._regrowing.get(about, lambda: refit_batched(self.forest, parts, self.device)).run()
        self.bent[worn] += 1
        self._refits += 1
        if self._refits % REBUILD_EVERY == 0:
            self._plant(worn, grids_of(self.forest, worn, self.device))

    def _parts(self, bodies: np.ndarray) -> Parts:
        """Bodies with faces, to be handled together; the same as last time where they are."""
        counts = self.table["face_count"][bodies]
        if self._last_parts is not None:
            *held, parts = self._last_parts
            if all(map(np.array_equal, held, (bodies, counts))):
                return parts
        parts = Parts.of(bodies, counts, self.device)
        self._last_parts = (bodies, counts.copy(), parts)
        return parts
