"""DistanceField.response: force and torque between a mesh and an object."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pickling import PicklableResult
from abut.core.plan import Stage
from abut.errors import CapacityError
from abut.options import EarlyOut
from abut.sdf.draw_batches import DrawQueues
from abut.sdf.face_setup import cull_faces_kernel, setup_faces_kernel, tile_stages
from abut.sdf.field_arguments import checked_material, checked_twist
from abut.sdf.field_pairs import CENTRE, FIELD_VELOCITY, MATERIAL, SPEED, VELOCITY
from abut.sdf.field_plan import FieldPlan, PlanRows
from abut.sdf.grid_properties import DepthImages
from abut.sdf.penalty import SUM_COUNT, penalty_kernel_for, response_rows_kernel
from abut.sdf.vertex_penalty import (
    VERTEX_SUM_COUNT,
    vertex_penalty_kernel_for,
    vertex_rows_kernel,
)

EARLY_OUTS = tuple(EarlyOut)  # their numbers in kernels
MOST_COPIES = 64  # of a pair's sums: fewer threads contend for one


@dataclass(frozen=True, eq=False, repr=False)
class Wrench(PicklableResult):
    """A force and a torque, (3,) float64 each; (B, 3) for a batch.

    Attributes:
        vertex_force, vertex_torque: Those of each vertex of the mesh, which add up to both,
            (n, 3); (B, n, 3) for a batch. None without ``per_vertex``.
    """

    force: wp.array
    torque: wp.array
    vertex_force: wp.array | None = None
    vertex_torque: wp.array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Response(PlanRows):
    """Force and torque of a mesh on a field's object that it penetrates, in the field's frame.

    Force and torque are integrals over the area inside (Morvan et al. 2008, equations 11 and 12);
    ``mean_force`` and ``mean_torque`` are divided by the area (equations 14 and 15).
    """

    shown = ("area", "energy")

    _other_centre: Callable[[], np.ndarray] = field(repr=False)
    _centre: np.ndarray = field(repr=False)
    _vertex_rows: np.ndarray | None = field(default=None, repr=False)

    @cached_property
    def force(self) -> wp.array:
        """(3,) float64 on the field's object; (B, 3) for a batch."""
        return self._array(self._rows[:, :3])

    @cached_property
    def torque(self) -> wp.array:
        """(3,) float64 about its centre of mass, or the centre given; (B, 3) for a batch."""
        return self._array(self._rows[:, 3:6])

    @cached_property
    def vertex_force(self) -> wp.array | None:
        """(n, 3) share of each vertex of the mesh in ``force``; (B, n, 3) for a batch.

        The force of a sample is divided by its barycentric weights in its face. The force on a
        vertex is the opposite one, ``on_other.vertex_force``. None without ``per_vertex``.
        """
        return None if self._vertex_rows is None else self._array(self._vertex_rows[..., :3])

    @cached_property
    def vertex_torque(self) -> wp.array | None:
        """(n, 3) share of each vertex in ``torque``, about the same point; as ``vertex_force``."""
        return None if self._vertex_rows is None else self._array(self._vertex_rows[..., 3:])

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
        lever = self._centre - self._other_centre()
        rows = [(self._rows, lever)]
        if self._vertex_rows is not None:
            rows.append((self._vertex_rows, lever[:, None]))
        opposite = [
            (-row[..., :3], -row[..., 3:6] - np.cross(arm, row[..., :3])) for row, arm in rows
        ]
        return Wrench(*(self._array(numbers) for pair in opposite for numbers in pair))

    def numpy(self) -> dict[str, np.ndarray]:
        """The answer as plain NumPy arrays."""
        names = {"force": slice(0, 3), "torque": slice(3, 6), "area": 6, "energy": 7}
        rows = self._rows[0] if self._single else self._rows
        out = {name: np.array(rows[..., part]) for name, part in names.items()}
        if self.vertex_force is not None and self.vertex_torque is not None:
            out["vertex_force"] = self.vertex_force.numpy()
            out["vertex_torque"] = self.vertex_torque.numpy()
        return out

    def _per_area(self) -> np.ndarray:
        area = self._rows[:, 6:7]
        return np.divide(1.0, area, out=np.zeros_like(area), where=area > 0)


class ResponsePlan(FieldPlan):
    """Cull faces, set up their patches, draw these, and add up the fragments inside.

    Args:
        vertex_velocities: Whether calls pass velocities of the mesh's vertices.
        dissipative: Whether there is damping or friction, so that velocities matter.
        early_out: Early rejection of samples outside.
        per_vertex: Whether the sums are divided among vertices, too.
        args: As for FieldPlan.

    Attributes:
        vertex_rows: (poses, n, 6) shares of vertices in force and torque, until the next call.
    """

    columns = SUM_COUNT

    def __init__(
        self,
        field: Any,
        *args: Any,
        vertex_velocities: bool,
        dissipative: bool,
        early_out: EarlyOut,
        per_vertex: bool = False,
        **options: Any,
    ) -> None:
        self._early_out = EARLY_OUTS.index(early_out)
        self._per_vertex = per_vertex
        self._variant = dissipative, vertex_velocities
        deep = early_out is EarlyOut.DEPTH
        self._depth_images = field.depth_images if deep else DepthImages()
        super().__init__(field, *args, vertex_velocities=vertex_velocities, **options)

    def stages(self) -> Iterable[Stage]:
        """Yield the stages; see face_setup and penalty."""
        copies = max(1, MOST_COPIES // max(self.pose_count, 1))
        sums = wp.zeros(self.pose_count * copies * SUM_COUNT, dtype=wp.int64, device=self.device)
        self._sums = sums
        early_out = self._early_out
        draw = penalty_kernel_for(*self._variant), self._depth_images, early_out, copies, sums
        yield "cull", self.over_items(cull_faces_kernel, early_out, self.queues["faces"])
        yield from penalty_stages(self.operands, self.queues, *draw)
        if self._per_vertex:
            yield from self._vertex_stages()
        yield "rows", self.over_rows(response_rows_kernel, SUM_COUNT, copies, sums)

    def _vertex_stages(self) -> Iterable[Stage]:
        """Yield the stages that divide the fragments among vertices."""
        count = self.vertex_count
        shape = self.pose_count, count, int(VERTEX_SUM_COUNT)
        size = int(np.prod(shape))
        if size > UNKNOWN_COUNT:
            raise CapacityError(
                f"{self.pose_count} poses of {count} vertices are too many at once; ask for fewer."
            )
        sums = wp.zeros(size, dtype=wp.int64, device=self.device)
        self.vertex_rows = wp.empty(shape, dtype=wp.float64, device=self.device)
        draw = [
            self.operands,
            self.queues.patches,
            self._depth_images,
            self._early_out,
            count,
            sums,
        ]
        kernel = vertex_penalty_kernel_for(*self._variant)
        yield "vertices", self.queues.over("batches", kernel, draw)
        args = [self.operands, count, sums, self.vertex_rows.flatten()]
        yield "vertex rows", Task(vertex_rows_kernel, size, args, self.device).run


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
