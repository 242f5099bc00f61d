"""ShapeTrees: the hierarchies of a scene's shapes, built or refitted all at once before a query."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.batched import SliceBatch, build_batched, morton_grids, refit_batched
from abut.core.arrays import extended
from abut.core.cache import RecentCache
from abut.core.timing import stage
from abut.scene.shape_arrays import ShapeArrays

REFITS_PER_BUILD = 32


class ShapeTrees:
    """Keeps the trees of shapes up to date.

    Attributes:
        build_counts: (n,) how often each row of the table has got another tree.
        refit_counts: (n,) how often the tree of each row was refitted.
        unfitted: (n,) bool, shapes whose trees have changed since their swept spheres were fitted.
    """

    def __init__(self, arrays: ShapeArrays) -> None:
        self.arrays, self.device = arrays, arrays.device
        self.build_counts = np.zeros(0, np.int64)
        self.refit_counts = np.zeros(0, np.int64)
        self.unfitted = np.zeros(0, bool)
        self._unbuilt: dict[int, list[float]] = {}  # grids of shapes that the next flush builds
        self._moved = np.zeros(0, bool)  # shapes that the next flush refits
        self._are_moved = False  # some of them may be
        self._refits = 0
        self._refit_tasks = RecentCache()
        self._last_parts: tuple[np.ndarray, np.ndarray, SliceBatch] | None = None

    def new_rows(self, rows: np.ndarray) -> None:
        """Take over rows of the table that were allocated for new shapes."""
        for name in ("build_counts", "refit_counts", "_moved", "unfitted"):
            setattr(self, name, extended(getattr(self, name), len(self.arrays.table)))
        self.build_counts[rows] += 1
        self.unfitted[rows] = True

    def free_row(self, shape: int) -> None:
        """Cancel the pending refit and build of a shape."""
        self._moved[shape] = False
        self._unbuilt.pop(shape, None)

    def build_later(self, shape: int, grid: list[float]) -> None:
        """Let the next flush build the tree of a shape, with a grid as in ``build_batched``."""
        self._unbuilt[shape] = grid

    def refit_later(self, shapes: Any) -> None:
        """Let the next flush refit the trees of shapes, whose points have moved."""
        self._moved[shapes] = True
        self._are_moved = True

    def flush(self) -> None:
        """Build and refit all trees that are due."""
        self.arrays.upload_table()
        if not (self._unbuilt or self._are_moved):
            return
        with stage("hierarchy", self.device):
            if self._unbuilt:
                new, rows = np.array(list(self._unbuilt)), np.array(list(self._unbuilt.values()))
                self._build(new, wp.array(rows, dtype=wp.vec4d, device=self.device))
                self._moved[new] = False
                self._unbuilt = {}
            moved = np.flatnonzero(self._moved)
            self._moved[moved] = self._are_moved = False
            self._refit(moved[self.arrays.table["face_count"][moved] > 0])

    def clear_rss(self) -> None:
        """Let searches on the CPU fit swept spheres to the trees as they are."""
        if self.device.is_cpu and len(self.arrays.table):
            self.arrays.clear_rss(np.flatnonzero(self.unfitted))
            self.unfitted[:] = False

    def build_pieces(self, pieces: np.ndarray, whole: int) -> None:
        """Build the trees of the pieces of a shape now, with the grid of its tree."""
        grids = morton_grids(self.arrays.bvhs, np.full(len(pieces), whole), self.device)
        self.arrays.upload_table()
        self._build(pieces, grids)

    def _build(self, shapes: np.ndarray, grids: wp.array) -> None:
        build_batched(self.arrays.bvhs, self._parts(shapes), grids, self.device)
        self.build_counts[shapes] += 1
        self.unfitted[shapes] = True

    def _refit(self, shapes: np.ndarray) -> None:
        """Refit trees; rebuild periodically, because a refit keeps the tree of an older shape."""
        if not len(shapes):
            return
        parts, bvhs = self._parts(shapes), self.arrays.bvhs
        about = (self.arrays.generation, parts)
        self._refit_tasks.get(about, lambda: refit_batched(bvhs, parts, self.device)).run()
        self.refit_counts[shapes] += 1
        self.unfitted[shapes] = True
        self._refits += 1
        if self._refits % REFITS_PER_BUILD == 0:
            self._build(shapes, morton_grids(bvhs, shapes, self.device))

    def _parts(self, shapes: np.ndarray) -> SliceBatch:
        """Parts of shapes with faces; those of the last call where they are the same."""
        counts = self.arrays.table["face_count"][shapes]
        if self._last_parts is not None:
            *held, parts = self._last_parts
            if all(map(np.array_equal, held, (shapes, counts))):
                return parts
        parts = SliceBatch.of(shapes, counts, self.device)
        self._last_parts = (shapes, counts.copy(), parts)
        return parts
