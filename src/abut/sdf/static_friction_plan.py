"""StaticFrictionPlan: force and torque of a mesh in a field, with springs kept between calls."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import warp as wp

from abut.core.plan import Stage
from abut.options import Sampling
from abut.sdf.draw_batches import DrawQueues
from abut.sdf.face_setup import cull_faces_kernel, setup_faces_kernel, tile_stages
from abut.sdf.field_plan import LEAST_KEYS, FieldPlan
from abut.sdf.footprint import BOUND
from abut.sdf.penalty import SUM_COUNT, response_rows_kernel
from abut.sdf.static_friction import static_friction_kernel_for
from abut.sdf.tangential_springs import TangentialSprings

STATIC_FRICTION_NEEDS = "static friction needs sampling='faces' and a stiffness above 0."
COPIES = 64  # of the sums: fewer threads contend for one


class StaticFrictionPlan(FieldPlan):
    """One pose of a mesh in a field, and the springs between both.

    Args:
        field: The DistanceField.
        mesh: The mesh that is sampled.
        pixel: Side of a pixel [length].
        ratio: Tangential stiffness over stiffness.
    """

    columns = SUM_COUNT

    def __init__(self, field: Any, mesh: Any, pixel: float, ratio: float) -> None:
        self.springs = TangentialSprings(mesh.device, ratio)
        self._owners = wp.zeros(1, dtype=wp.vec2i, device=mesh.device)
        super().__init__(field, mesh, 1, pixel, Sampling.FACES)

    def step(
        self,
        mesh: Any,
        pose: np.ndarray,
        fill: Callable[[np.ndarray, slice], None],
        *,
        advance: bool,
    ) -> np.ndarray:
        """Return the row of a pose (1, 4, 4); ``advance`` keeps the springs of this call."""
        rows = self.ask(mesh, pose, slice(0, 1), None, fill).copy()
        if not advance:
            self.springs.turn_back()
        return rows

    def stages(self) -> Iterable[Stage]:
        """Yield the stages; the last one but the rows lets the halves of the table take turns."""
        queue = self.queues["springs"]
        table = self.springs.table(queue.keys.shape[0], queue.count)
        clear, turn = self.springs.stages(table)
        self._sums = wp.zeros(COPIES * SUM_COUNT, dtype=wp.int64, device=self.device)
        yield "clear springs", clear
        yield "cull", self.over_items(cull_faces_kernel, int(BOUND), self.queues["faces"])
        yield from friction_stages(
            self.operands, self.queues, self._owners, COPIES, table, self._sums, bending=False
        )
        yield "rows", self.over_rows(response_rows_kernel, SUM_COUNT, COPIES, self._sums)
        yield "turn springs", turn

    def _make_queues(self) -> DrawQueues:
        return DrawQueues(self.device, LEAST_KEYS, springs=LEAST_KEYS)

    def _undo(self) -> None:
        self.springs.turn_back()


def friction_stages(
    operands: Any,
    queues: DrawQueues,
    owners: wp.array,
    copies: int,
    table: Any,
    sums: wp.array,
    *,
    bending: bool,
) -> Iterable[Stage]:
    """Yield the stages from faces that may reach inside to sums with static friction.

    Args:
        operands: FieldOperands, of sampling FACES.
        queues: Whose faces have been listed.
        owners: Of the springs of each pair.
        copies: Copies of the sums of each pair.
        table: SpringTable, whose half for this step is empty.
        sums: Of all pairs, zero before.
        bending: Whether vertices of a mesh have velocities.
    """
    no_best = wp.empty(0, dtype=wp.int64, device=queues.device)
    setup = [operands, 1, queues["faces"], queues["large"], queues.patches]
    draw = [operands, owners, queues.patches, copies, table, sums]
    kernel = static_friction_kernel_for(bending)
    yield "setup", queues.over("faces", setup_faces_kernel, setup)
    yield from tile_stages(operands, queues, 1, int(BOUND), no_best)
    yield "draw", queues.over("batches", kernel, draw)
