"""DistanceField.response: force and torque between a mesh and an object."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.pickling import PicklableResult
from abut.core.plan import Stage
from abut.options import EarlyOut
from abut.sdf.draw_batches import DrawQueues
from abut.sdf.face_setup import cull_faces_kernel, setup_faces_kernel, tile_stages
from abut.sdf.field_arguments import checked_material, checked_twist
from abut.sdf.field_pairs import CENTRE, FIELD_VELOCITY, MATERIAL, SPEED, VELOCITY
from abut.sdf.field_plan import FieldPlan, PlanRows
from abut.sdf.grid_properties import DepthImages
from abut.sdf.penalty import SUM_COUNT, penalty_kernel_for, response_rows_kernel

EARLY_OUTS = tuple(EarlyOut)  # their numbers in kernels
MOST_COPIES = 64  # of a pair's sums: fewer threads contend for one


@dataclass(frozen=True, eq=False)
class Wrench(PicklableResult):
    """A force and a torque, (3,) float64 each; (B, 3) for a batch."""

    force: wp.array
    torque: wp.array


@dataclass(frozen=True, eq=False)
class Response(PlanRows):
    """Force and torque of a mesh on a field's object that it penetrates, in the field's frame.

    Force and torque are integrals over the area inside (Morvan et al. 2008, equations 11 and 12);
    ``mean_force`` and ``mean_torque`` are divided by the area (equations 14 and 15).
    """

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
        return self._number(8, np.int64)

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


class ResponsePlan(FieldPlan):
    """Cull faces, set up their patches, draw these, and add up the fragments inside.

    Args:
        vertex_velocities: Whether calls pass velocities of the mesh's vertices.
        dissipative: Whether there is damping or friction, so that velocities matter.
        early_out: Early rejection of samples outside.
        args: As for FieldPlan.
    """

    columns = SUM_COUNT

    def __init__(
        self,
        field: Any,
        *args: Any,
        vertex_velocities: bool,
        dissipative: bool,
        early_out: EarlyOut,
        **options: Any,
    ) -> None:
        self._early_out = EARLY_OUTS.index(early_out)
        self._penalty_kernel = penalty_kernel_for(dissipative, vertex_velocities)
        deep = early_out is EarlyOut.DEPTH
        self._depth_images = field.depth_images if deep else DepthImages()
        super().__init__(field, *args, vertex_velocities=vertex_velocities, **options)

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


def fill_inputs(
    inputs: np.ndarray,
    chunk: slice,
    *,
    pose_count: int,
    velocities: tuple[Any, Any],
    centre: np.ndarray,
    material: tuple[Any, ...],
    vertex_velocities: np.ndarray | None,
) -> None:
    """Write the inputs of a chunk of poses beside the poses; see read_pair.

    ``velocities``: of the mesh and of the field's object, (6,) or (B, 6) for all poses; or None.
    """
    numbers = checked_material(material)  # refused before anything is written
    names = ("velocity", "field_velocity")
    twists = [checked_twist(v, pose_count, n) for v, n in zip(velocities, names, strict=True)]
    for at, twist in zip((VELOCITY, FIELD_VELOCITY), twists, strict=True):
        inputs[:, at : at + 6] = twist if twist.ndim == 1 else twist[chunk]
    inputs[:, CENTRE : CENTRE + 3] = centre
    inputs[:, MATERIAL : MATERIAL + 4] = numbers
    speeds = [] if vertex_velocities is None else np.linalg.norm(vertex_velocities, axis=1)
    inputs[:, SPEED] = np.max(speeds, initial=0.0)


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
    no_best = wp.empty(0, dtype=wp.int64, device=queues.device)
    setup = [operands, 1, queues["faces"], queues["large"], queues.patches]
    draw = [operands, queues.patches, depth_images, early_out, copies, sums]
    yield "setup", queues.over("faces", setup_faces_kernel, setup)
    yield from tile_stages(operands, queues, 1, early_out, no_best)
    yield "draw", queues.over("batches", penalty_kernel, draw)
