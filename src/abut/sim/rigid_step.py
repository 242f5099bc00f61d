"""RigidStep: the stages that carry rigid bodies over a substep."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import warp as wp

from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.plan import Plan, Stage
from abut.sdf.draw_batches import GRAIN, DrawQueues
from abut.sdf.face_setup import cull_faces_kernel
from abut.sdf.field_pairs import FieldOperands, FieldPair
from abut.sdf.footprint import BOUND
from abut.sdf.grid_properties import DepthImages
from abut.sdf.penalty import SUM_COUNT, penalty_kernel_for, response_rows_kernel
from abut.sdf.response import penalty_stages
from abut.sdf.static_friction_plan import friction_stages
from abut.sdf.tangential_springs import TangentialSprings
from abut.sim.bodies import (
    field_pairs_kernel,
    gather_forces_kernel,
    list_body_pairs_kernel,
    move_bodies_kernel,
    peak_counts_kernel,
)

FIRST_PAIRS, FIRST_KEYS, FIRST_SPRINGS = 256, 1 << 16, 1 << 12  # room to begin with
COPIES = 8  # of the sums of a pair
ENERGY = 7  # column of a row
MOTION_STAGES = frozenset({"gather", "move", "turn springs"})


class RigidStep:
    """Pairs of bodies that may touch, the forces between them, and the motion that follows.

    Everything stays on the device. Counts are read once for all substeps of a step.

    Args:
        bodies, shapes: Structs of abut.sim.bodies.
        clock: (2,) time and duration of a substep.
        floors: Launches that move the floors.
        pixels: Along the longest side of a field's box.
        sampling: DOMINANT or FACES.
        material: Stiffness, damping, friction, slip.
        gravity: Acceleration.
        springs: Of static friction, kept between steps; None without.
    """

    def __init__(
        self,
        bodies: Any,
        shapes: Any,
        clock: wp.array,
        floors: list[Callable[[], None]],
        *,
        pixels: float,
        sampling: int,
        material: Any,
        gravity: Any,
        springs: TangentialSprings | None = None,
    ) -> None:
        self.bodies, self.shapes, self.clock, self.floors = bodies, shapes, clock, floors
        self.device, self.body_count = clock.device, bodies.shape.shape[0]
        self.pixels, self.sampling = wp.float64(pixels), sampling
        self.material, self.gravity, self.springs = material, gravity, springs
        counts = self.body_count + 1
        self._counts, self._offsets = (wp.zeros(counts, wp.int32, self.device) for _ in range(2))
        self._wrench = [wp.zeros(self.body_count, wp.vec3d, self.device) for _ in range(2)]
        room = {"pairs": FIRST_PAIRS} | ({} if springs is None else {"springs": FIRST_SPRINGS})
        self._queues = DrawQueues(self.device, FIRST_KEYS, **room)
        options = {"read": self._read_peak, "graph": True}
        self._plan = Plan(self._queues, self._record, clear=lambda: None, **options)

    def run(self, substeps: int, restore: Callable[[], None]) -> None:
        """Make substeps; ``restore`` the state before they are made again with more room."""
        if self.springs is not None:
            self.springs.save()
        self._plan.skipped = frozenset()
        self._plan.run(times=substeps, undo=lambda: self._undo(restore))

    @property
    def pair_count(self) -> int:
        """Pairs of bodies that might touch in the last substep."""
        body_pairs = self._body_pairs.numpy()[: self._offsets.numpy()[-1]]
        return len(np.unique(np.sort(body_pairs, axis=1), axis=0))

    def contact_energy(self) -> float:
        """Return the energy of the springs between the bodies now."""
        self._plan.skipped = MOTION_STAGES
        self._plan.run()
        return float(self._rows.numpy()[: self._offsets.numpy()[-1], ENERGY].sum())

    def _undo(self, restore: Callable[[], None]) -> None:
        restore()
        if self.springs is not None:
            self.springs.restore()

    def _record(self) -> Iterable[Stage]:
        device, pairs = self.device, self._queues.capacities()["pairs"]
        self._operands = self._make_operands(pairs)
        self._item_counts = wp.zeros(pairs + 1, dtype=wp.int32, device=device)
        self._body_pairs = wp.zeros(pairs, dtype=wp.vec2i, device=device)
        self._sums = wp.zeros(pairs * COPIES * SUM_COUNT, dtype=wp.int64, device=device)
        columns = SUM_COUNT + len(self._queues.queues)
        self._rows = wp.zeros((pairs, columns), dtype=wp.float64, device=device)
        self._peak = wp.zeros(len(self._queues.queues), dtype=wp.float64, device=device)
        yield from (("floor", run) for run in self.floors)
        yield from self._pair_stages(pairs)
        yield from self._force_stages(pairs)
        gather = [self.bodies, self._body_pairs, self._offsets, self._rows, *self._wrench]
        move = [self.shapes, self.gravity, *self._wrench, self.clock, self.bodies]
        yield "gather", Task(gather_forces_kernel, self.body_count, gather, device).run
        yield "move", Task(move_bodies_kernel, self.body_count, move, device).run

    def _make_operands(self, pairs: int) -> Any:
        out = FieldOperands()
        out.fields, out.meshes = self.shapes.fields, self.shapes.meshes
        out.pairs = wp.zeros(pairs, dtype=FieldPair, device=self.device)
        out.first_item = wp.zeros(pairs + 1, dtype=wp.int32, device=self.device)
        out.sampling = self.sampling
        return out

    def _pair_stages(self, pairs: int) -> Iterable[Stage]:
        """Yield the stages that list pairs of bodies in order, and make field pairs of them."""
        both, device = [self.bodies, self.shapes], self.device
        offsets, items = self._offsets, self._operands.first_item
        counts, item_counts = self._counts, self._item_counts
        no_pairs = wp.empty(0, dtype=wp.vec2i, device=device)
        counted, listed = ([*both, offsets, counts, p] for p in (no_pairs, self._body_pairs))
        made = [*both, self._body_pairs, offsets, self.pixels, self.material]
        made += [self._operands.pairs, item_counts]
        yield "partners", Task(list_body_pairs_kernel, self.body_count, counted, device).run
        yield "partners", lambda: wp.utils.array_scan(counts, offsets, inclusive=False)
        yield "body pairs", Task(list_body_pairs_kernel, self.body_count, listed, device).run
        yield "field pairs", Task(field_pairs_kernel, pairs, made, device).run
        yield "field pairs", lambda: wp.utils.array_scan(item_counts, items, inclusive=False)

    def _force_stages(self, pairs: int) -> Iterable[Stage]:
        """Yield the stages that add up force and torque of each pair."""
        device, queues = self.device, self._queues
        rows = [self._operands, COPIES, self._sums, queues.counts, self._rows]
        peak = [self._offsets, self._rows, self._peak]
        lanes = WARP_SIZE if device.is_cuda else 1
        yield "cull", self._over_items(cull_faces_kernel, BOUND, queues["faces"])
        yield from self._draw_stages()
        yield "rows", Task(response_rows_kernel, SUM_COUNT * pairs * lanes, rows, device).run
        yield "peak", Task(peak_counts_kernel, 1, peak, device).run

    def _draw_stages(self) -> Iterable[Stage]:
        """Yield the stages from faces to sums, with static friction where there are springs."""
        queues, bending = self._queues, bool(self.floors)
        if self.springs is None:
            dissipative = self.material[1] != 0 or self.material[2] != 0
            kernel = penalty_kernel_for(dissipative, bending)
            draw = kernel, DepthImages(), BOUND, COPIES, self._sums
            yield from penalty_stages(self._operands, queues, *draw)
            return
        queue = queues["springs"]
        table = self.springs.table(queue.keys.shape[0], queue.count)
        clear, turn = self.springs.stages(table)
        yield "clear springs", clear
        draw = self._body_pairs, COPIES, table, self._sums
        yield from friction_stages(self._operands, queues, *draw, bending=bending)
        yield "turn springs", turn

    def _over_items(self, kernel: wp.Kernel, *args: Any) -> Callable[[], None]:
        """Return a launch over as many items as there are by then."""
        given, first_item = [self._operands, *args], self._operands.first_item
        if self.device.is_cuda:
            return Task(kernel, UNKNOWN_COUNT, given, self.device).run
        return lambda: launch(kernel, int(first_item.numpy()[-1]), given, self.device, grain=GRAIN)

    def _read_peak(self) -> dict[str, int]:
        return dict(zip(self._queues.queues, map(int, self._peak.numpy().tolist()), strict=True))
