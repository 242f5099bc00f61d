"""DistanceField.response: force and torque between a mesh and an object."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.pickling import PicklableResult
from abut.core.plan import Stage
from abut.sdf.blocks import TEAM_SIZE, list_blocks_kernel
from abut.sdf.depth_images import DepthImages
from abut.sdf.draw_queues import DrawQueues
from abut.sdf.face_setup import cull_faces_kernel, setup_faces_kernel, setup_tiles_kernel
from abut.sdf.field_plan import FieldPlan
from abut.sdf.footprint_tiles import BLOCK_TILES
from abut.sdf.penalty import SUM_COUNT, penalty_kernel_for, response_rows_kernel

MOST_COPIES = 64  # of a pair's sums: fewer threads contend for one


@dataclass(frozen=True, eq=False)
class Wrench(PicklableResult):
    """A force and a torque, (3,) float64 each; (B, 3) for a batch."""

    force: wp.array
    torque: wp.array


@dataclass(frozen=True, eq=False)
class Response(PicklableResult):
    """Force and torque of a mesh on a field's object that it penetrates, in the field's frame.

    Force and torque are integrals over the area inside (Morvan et al. 2008, equations 11 and 12);
    ``mean_force`` and ``mean_torque`` are divided by the area (equations 14 and 15).
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
        """Energy of the springs: half the stiffness times depth squared, over the area inside."""
        return self._number(7)

    @property
    def fragment_count(self) -> Any:
        """Number of samples inside; an int, or (B,) int64."""
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
        """Equal and opposite force on the mesh, and its torque about the mesh's centre.

        The centre is that of mass for a solid, else of area.
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
    """Cull faces, set up their patches, draw these, and add up the fragments inside.

    Args:
        vertex_velocities: Whether calls pass velocities of the mesh's vertices.
        dissipative: Whether there is damping or friction, so that velocities matter.
        early_out: BOUND, DEPTH or NOTHING.
        depth_images: The field's, for DEPTH.
        args: As for FieldPlan.
    """

    columns = SUM_COUNT

    def __init__(
        self,
        *args: Any,
        vertex_velocities: bool,
        dissipative: bool,
        early_out: int,
        depth_images: Any = None,
    ) -> None:
        self._early_out = early_out
        self._penalty_kernel = penalty_kernel_for(dissipative, vertex_velocities)
        self._depth_images = DepthImages() if depth_images is None else depth_images
        super().__init__(*args, vertex_velocities=vertex_velocities)

    def stages(self) -> Iterable[Stage]:
        """Yield the stages; see face_setup and penalty."""
        copies = max(1, MOST_COPIES // max(self.pose_count, 1))
        sums = wp.zeros(self.pose_count * copies * SUM_COUNT, dtype=wp.int64, device=self.device)
        self._sums = sums
        early_out = self._early_out
        draw = self._penalty_kernel, self._depth_images, early_out, copies, sums
        yield "cull", self.over_items(cull_faces_kernel, early_out, self.queues["faces"])
        yield from penalty_stages(self.operands, self.queues, *draw)
        yield "rows", self.over_rows(response_rows_kernel, SUM_COUNT, copies, sums)


def penalty_stages(
    operands: Any,
    queues: DrawQueues,
    penalty_kernel: wp.Kernel,
    depth_images: Any,
    early_out: int,
    copies: int,
    sums: wp.array,
) -> Iterable[Stage]:
    """Yield the stages from faces that may reach inside to sums over fragments.

    Args:
        operands: FieldOperands; its pairs are read on the device.
        queues: Whose faces have been listed.
        penalty_kernel: From penalty_kernel_for.
        depth_images, early_out: See ResponsePlan.
        copies: Copies of the sums of each pair.
        sums: Of all pairs, zero before.
    """
    faces, large, blocks = (queues[name] for name in ("faces", "large", "blocks"))
    no_best = wp.empty(0, dtype=wp.int64, device=queues.device)
    setup = [operands, 1, faces, large, queues.patches]
    list_blocks = [operands, 1, early_out, no_best, large, blocks]
    tiles = [operands, early_out, blocks, queues.patches]
    draw = [operands, queues.patches, depth_images, early_out, copies, sums]
    yield "setup", queues.over("faces", setup_faces_kernel, setup)
    yield "blocks", queues.over("large", list_blocks_kernel, list_blocks, per_key=TEAM_SIZE)
    yield "tiles", queues.over("blocks", setup_tiles_kernel, tiles, per_key=int(BLOCK_TILES))
    yield "draw", queues.over("batches", penalty_kernel, draw)
