"""DistanceField.closest: the sampled point of a mesh that is closest, or deepest inside."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.pair_queue import NO_KEY
from abut.core.plan import Stage
from abut.sdf.closest_fragments import (
    centroids_kernel,
    closest_rows_kernel,
    cull_far_faces_kernel,
    draw_distances_kernel,
    locate_kernel,
    sample_large_faces_kernel,
)
from abut.sdf.face_setup import setup_faces_kernel, tile_stages
from abut.sdf.field_plan import FieldPlan, PlanRows
from abut.sdf.footprint import BLOCK_TILES, NOTHING


@dataclass(frozen=True, eq=False, repr=False)
class Proximity(PlanRows):
    """The sampled point of a mesh that is closest to a field's object, or deepest inside it."""

    @cached_property
    def distance(self) -> Any:
        """A float, negative inside the object; (B,) float64 for a batch."""
        return self._number(0)

    @property
    def value(self) -> Any:
        """An alias of ``distance``."""
        return self.distance

    @cached_property
    def face(self) -> Any:
        """The face of the mesh the point lies on, an int; (B,) int32 for a batch."""
        return self._number(1, np.int32)

    @cached_property
    def points(self) -> wp.array:
        """(2, 3) float64 in the field's frame, (B, 2, 3) for a batch: on the object, on the mesh.

        The first follows the field's gradient; where that is zero, both are equal.
        """
        return self._array(self._rows[:, 2:8].reshape(-1, 2, 3))

    def numpy(self) -> dict[str, np.ndarray]:
        """The answer as plain NumPy arrays; ``value`` is the same as ``distance``."""
        distance, face = self._rows[:, 0], self._rows[:, 1].astype(np.int32)
        columns = {"distance": distance, "value": distance, "face": face}
        plain = {name: np.array(c[0] if self._single else c) for name, c in columns.items()}
        return plain | {"points": self.points.numpy()}

    def __repr__(self) -> str:
        """The distance."""
        return f"Proximity(distance={self.distance!r})"


class ClosestPlan(FieldPlan):
    """Sample all centroids; then draw the fragments of faces that may be closer."""

    columns = 8

    def stages(self) -> Iterable[Stage]:
        """Yield the stages; see closest_fragments."""
        faces, large, blocks = (self.queues[name] for name in ("faces", "large", "blocks"))
        patches, tiles = self.queues.patches, int(BLOCK_TILES)
        bound = wp.empty(self.item_count, dtype=wp.float32, device=self.device)
        best, sample = (
            wp.full(self.pose_count, int(NO_KEY), wp.int64, self.device) for _ in range(2)
        )
        self._buffers = bound, best, sample
        yield "centroids", self.over_items(centroids_kernel, bound, best)
        yield "cull", self.over_items(cull_far_faces_kernel, bound, best, faces)
        yield "setup", self.over("faces", setup_faces_kernel, 0, faces, large, patches)
        yield "sample large", self.over("large", sample_large_faces_kernel, large, best)
        yield from tile_stages(self.operands, self.queues, 0, int(NOTHING), best)
        yield "draw", self.over("batches", draw_distances_kernel, patches, best)
        yield "locate", self.over("blocks", locate_kernel, blocks, best, sample, per_key=tiles)
        yield "rows", self.over_rows(closest_rows_kernel, 1, best, sample)
