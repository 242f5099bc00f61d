"""DistanceField.closest: the sampled point of a mesh that is closest, or deepest inside."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.pair_queue import NO_KEY
from abut.core.pickling import PicklableResult
from abut.core.plan import Stage
from abut.sdf.blocks import TEAM_SIZE, list_blocks_kernel
from abut.sdf.closest_fragments import (
    centroids_kernel,
    cull_far_faces_kernel,
    draw_distances_kernel,
    sample_large_faces_kernel,
    setup_near_tiles_kernel,
)
from abut.sdf.closest_rows import closest_rows_kernel, locate_kernel
from abut.sdf.face_setup import setup_faces_kernel
from abut.sdf.field_plan import FieldPlan
from abut.sdf.footprint import NOTHING
from abut.sdf.footprint_tiles import BLOCK_TILES


@dataclass(frozen=True, eq=False)
class Proximity(PicklableResult):
    """The sampled point of a mesh that is closest to a field's object, or deepest inside it.

    Attributes:
        value: Its distance, a float, negative inside the object; (B,) float64 for a batch.
    """

    value: Any
    _rows: np.ndarray = field(repr=False)
    _single: bool = field(repr=False)
    _device: wp.Device = field(repr=False)

    @cached_property
    def points(self) -> wp.array:
        """(2, 3) float64 in the field's frame, (B, 2, 3) for a batch: on the object, on the mesh.

        The first follows the field's gradient; where that is zero, both are equal.
        """
        points = self._rows[:, 2:8].reshape(-1, 2, 3)
        return self._array(points, wp.float64)

    @cached_property
    def face(self) -> Any:
        """The face of the mesh the point lies on, an int; (B,) int32 for a batch."""
        faces = self._rows[:, 1].astype(np.int32)
        return int(faces[0]) if self._single else self._array(faces, wp.int32)

    def numpy(self) -> dict[str, np.ndarray]:
        """The answer as plain NumPy arrays."""
        columns = {"value": self._rows[:, 0], "face": self._rows[:, 1].astype(np.int32)}
        plain = {name: np.array(c[0] if self._single else c) for name, c in columns.items()}
        return plain | {"points": self.points.numpy()}

    def _array(self, rows: np.ndarray, dtype: Any) -> wp.array:
        rows = rows[0] if self._single else rows
        return wp.array(np.ascontiguousarray(rows), dtype=dtype, device=self._device)


class ClosestPlan(FieldPlan):
    """Sample all centroids; then draw the fragments of faces that may be closer."""

    columns = 8

    def stages(self) -> Iterable[Stage]:
        """Yield the stages; see closest_fragments and closest_rows."""
        faces, large, blocks = (self.queues[name] for name in ("faces", "large", "blocks"))
        patches, tiles = self.queues.patches, int(BLOCK_TILES)
        bound = wp.empty(self.item_count, dtype=wp.float32, device=self.device)
        best, sample = (
            wp.full(self.pose_count, int(NO_KEY), wp.int64, self.device) for _ in range(2)
        )
        self._buffers = bound, best, sample
        setup = 0, faces, large, patches
        list_blocks = 0, NOTHING, best, large, blocks
        yield "centroids", self.over_items(centroids_kernel, bound, best)
        yield "cull", self.over_items(cull_far_faces_kernel, bound, best, faces)
        yield "setup", self.over("faces", setup_faces_kernel, *setup)
        yield "sample large", self.over("large", sample_large_faces_kernel, large, best)
        yield "blocks", self.over("large", list_blocks_kernel, *list_blocks, per_key=TEAM_SIZE)
        tile_args = blocks, best, patches
        yield "tiles", self.over("blocks", setup_near_tiles_kernel, *tile_args, per_key=tiles)
        yield "draw", self.over("batches", draw_distances_kernel, patches, best)
        yield "locate", self.over("blocks", locate_kernel, blocks, best, sample, per_key=tiles)
        yield "rows", self.over_rows(closest_rows_kernel, 1, best, sample)


def proximity_of(rows: np.ndarray, single: bool, device: wp.Device) -> Proximity:
    """Wrap the rows of a plan."""
    value = float(rows[0, 0]) if single else wp.array(rows[:, 0], dtype=wp.float64, device=device)
    return Proximity(value, rows, single, device)
