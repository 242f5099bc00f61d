"""DistanceField.response: force and torque of all that is inside an object."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.pickling import PicklableResult
from abut.mesh import Mesh
from abut.sdf.blocks import list_blocks_kernel
from abut.sdf.depth_images import DepthImages
from abut.sdf.face_setup import cull_faces_kernel, setup_faces_kernel, setup_tiles_kernel
from abut.sdf.field_plan import FieldPlan
from abut.sdf.penalty import SUMS, penalty_kernel_for, response_rows_kernel

MOST_COPIES = 64  # of sums, so that threads do not queue up for one


@dataclass(frozen=True, eq=False)
class Wrench(PicklableResult):
    """A force and a torque, (3,) float64 each; (B, 3) for a batch."""

    force: wp.array
    torque: wp.array


@dataclass(frozen=True, eq=False)
class Response(PicklableResult):
    """What a mesh does to a field's object that it reaches into; in the field's frame.

    Force and torque are integrals over the area inside (Morvan et al. 2008, equations 11 and 12);
    ``mean_force`` and ``mean_torque`` are those over the area (equations 14 and 15).
    """

    _rows: np.ndarray = field(repr=False)
    _single: bool = field(repr=False)
    _device: wp.Device = field(repr=False)
    _other_centre: Callable[[], np.ndarray] = field(repr=False)
    _centre: np.ndarray = field(repr=False)

    @cached_property
    def force(self) -> wp.array:
        """(3,) float64 on the field's object; (B, 3) for a batch."""
        return self._array(self._rows[:, :3])

    @cached_property
    def torque(self) -> wp.array:
        """(3,) float64 about its centre of mass, or the centre given; (B, 3) for a batch."""
        return self._array(self._rows[:, 3:6])

    @property
    def area(self) -> Any:
        """Area of the mesh inside, a float; (B,) float64 for a batch."""
        return self._number(6)

    @property
    def energy(self) -> Any:
        """What the springs hold: half the stiffness times depth squared, over the area inside."""
        return self._number(7)

    @property
    def fragment_count(self) -> Any:
        """How many samples were inside; an int, or (B,) int64."""
        counts = self._rows[:, 8].astype(np.int64)
        return int(counts[0]) if self._single else wp.array(counts, device=self._device)

    @property
    def mean_force(self) -> wp.array:
        """Force over area, zero without area."""
        return self._array(self._rows[:, :3] * self._per_area())

    @property
    def mean_torque(self) -> wp.array:
        """Torque over area, zero without area."""
        return self._array(self._rows[:, 3:6] * self._per_area())

    @cached_property
    def on_other(self) -> Wrench:
        """The equal and opposite force on the mesh, and its torque about the mesh's centre.

        That of mass for a solid, else of area.
        """
        force, torque = self._rows[:, :3], self._rows[:, 3:6]
        lever = self._centre - self._other_centre()
        return Wrench(self._array(-force), self._array(-torque - np.cross(lever, force)))

    def numpy(self) -> dict[str, np.ndarray]:
        """The answer as plain NumPy arrays."""
        names = {"force": slice(0, 3), "torque": slice(3, 6), "area": 6, "energy": 7}
        rows = self._rows[0] if self._single else self._rows
        return {name: np.array(rows[..., part]) for name, part in names.items()}

    def _per_area(self) -> np.ndarray:
        area = self._rows[:, 6:7]
        return np.divide(1.0, area, out=np.zeros_like(area), where=area > 0)

    def _number(self, column: int) -> Any:
        if self._single:
            return float(self._rows[0, column])
        return self._array(self._rows[:, column])

    def _array(self, rows: np.ndarray) -> wp.array:
        rows = np.ascontiguousarray(rows[0] if self._single else rows)
        return wp.array(rows, dtype=wp.float64, device=self._device)


class ResponsePlan(FieldPlan):
    """Pick faces, cut them into patches, draw these, and add up the fragments inside."""

    columns = SUMS

    def __init__(
        self,
        grid: Any,
        mesh: Mesh,
        pose_count: int,
        pixel: float,
        sampling: int,
        bending: bool,
        moving: bool,
        early: int,
        columns: Any,
    ) -> None:
        self.early = early
        self.kernel = penalty_kernel_for(moving, bending)
        self.images = DepthImages() if columns is None else columns
        super().__init__(grid, mesh, pose_count, pixel, sampling, bending)

    def stages(self) -> Iterable[tuple[str, Callable[[], None]]]:
        """See cutting and penalty."""
        copies = max(1, MOST_COPIES // max(self.pose_count, 1))
        sums = wp.zeros(self.pose_count * copies * SUMS, dtype=wp.int64, device=self.device)
        self._sums = sums
        self._no_best = wp.empty(0, dtype=wp.int64, device=self.device)
        early, (faces, large, blocks) = self.early, self.lists("faces", "large", "blocks")
        yield "pick", self.over_items(cull_faces_kernel, early, faces)
        yield "cut", self.over_listed("faces", setup_faces_kernel, 1, faces, large, self.patches)
        yield "blocks", self.over_large(list_blocks_kernel, 1, early, self._no_best, large, blocks)
        yield "parts", self.over_parts(setup_tiles_kernel, early, blocks, self.patches)
        yield "draw", self.over_turns(self.kernel, self.patches, self.images, early, copies, sums)
        yield "rows", self.over_poses(response_rows_kernel, SUMS, copies, sums)
