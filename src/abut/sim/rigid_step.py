"""RigidStep: the launches that carry rigid bodies over a substep."""

from collections.abc import Callable
from typing import Any

import warp as wp

from abut.core.device import can_capture
from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import PairQueues
from abut.sdf.blocks import list_blocks_kernel
from abut.sdf.depth_images import DepthImages
from abut.sdf.draw_batches import QUEUES, missing_room, patches_in
from abut.sdf.face_setup import cull_faces_kernel, setup_faces_kernel, setup_tiles_kernel
from abut.sdf.footprint import BOUND
from abut.sdf.launches import PER_SLICE, over_large, over_listed, over_parts, over_turns
from abut.sdf.penalty import SUMS, penalty_kernel_for, response_rows_kernel
from abut.sdf.posed_in_field import FieldOperands, FieldPair
from abut.sim.bodies import gather_kernel, move_kernel
from abut.sim.contacts import meetings_kernel, partners_kernel, peak_kernel, sides_kernel

FIRST_PAIRS, FIRST_LISTED = 256, 1 << 16
COPIES = 8  # of sums

Runs = list[Callable[[], None]]


class RigidStep:
    """Pairs that may touch, what acts between them, and the motion that follows.

    Everything stays on the device; on CUDA a substep is one graph from the second on. What finds no
    room is counted: ask ``make_room`` afterwards, and if it made some, do the substeps again.
    """

    def __init__(
        self,
        bodies: Any,
        shapes: Any,
        clock: wp.array,
        floors: Runs,
        *,
        pixels: float,
        sampling: int,
        material: Any,
        gravity: Any,
    ) -> None:
        self.bodies, self.shapes, self.clock, self.floors = bodies, shapes, clock, floors
        self.device = clock.device
        self.pixels, self.sampling = wp.float64(pixels), sampling
        self.material, self.gravity = material, gravity
        self.drags = material[1] != 0 or material[2] != 0
        self.room = {"pairs": FIRST_PAIRS, **dict.fromkeys(QUEUES, FIRST_LISTED)}
        self._record()

    def run(self) -> None:
        """One substep."""
        if self._graph is not None:
            wp.capture_launch(self._graph)
            return
        self._go()
        if can_capture(self.device):
            with wp.ScopedCapture(self.device) as capture:
                self._go()
            self._graph = capture.graph

    def make_room(self) -> bool:
        """Whether something found no room in the substeps so far; there is more now."""
        peak = dict(zip(self.room, self._peak.numpy().tolist(), strict=True))
        short = missing_room({name: int(n) for name, n in peak.items()}, self.room)
        self.room.update(short)
        if short:
            self._record()
        return bool(short)

    @property
    def pair_count(self) -> int:
        """Pairs that might touch, when last looked at."""
        return int(self._offsets.numpy()[-1])

    def contact_energy(self) -> float:
        """What the springs between bodies hold now."""
        while True:
            for run in self._meets:
                run()
            if not self.make_room():
                return float(self._answers.numpy()[: self.pair_count, 7].sum())

    def _go(self) -> None:
        for run in (*self._meets, *self._moves):
            run()

    def _record(self) -> None:
        """Prepare the launches for the room there is."""
        device, pairs, count = self.device, self.room["pairs"], self.bodies.shape.shape[0]
        self._queues = PairQueues(device, **{name: self.room[name] for name in QUEUES})
        self._met = self._encounters(pairs)
        self._counts, self._offsets = (wp.zeros(count + 1, wp.int32, device) for _ in range(2))
        self._faces = wp.zeros(pairs + 1, dtype=wp.int32, device=device)
        self._sides = wp.zeros(pairs, dtype=wp.vec2i, device=device)
        self._sums = wp.zeros(pairs * COPIES * SUMS, dtype=wp.int64, device=device)
        self._answers = wp.zeros((pairs, SUMS + len(QUEUES)), dtype=wp.float64, device=device)
        self._peak = wp.zeros(len(self.room), dtype=wp.float64, device=device)
        self._wrench = [wp.zeros(count, dtype=wp.vec3d, device=device) for _ in range(2)]
        self._meets = [*self.floors, *self._pairing(count, pairs), *self._touching(pairs)]
        self._moves = self._moving(count)
        self._graph: Any = None

    def _encounters(self, pairs: int) -> Any:
        met = FieldOperands()
        met.fields, met.meshes = self.shapes.fields, self.shapes.meshes
        met.pairs = wp.zeros(pairs, dtype=FieldPair, device=self.device)
        met.firsts = wp.zeros(pairs + 1, dtype=wp.int32, device=self.device)
        met.sampling = self.sampling
        return met

    def _pairing(self, count: int, pairs: int) -> Runs:
        """Pairs of bodies in order, and how they meet."""
        both, device = [self.bodies, self.shapes], self.device
        meet = [*both, self._sides, self._offsets, self.pixels, self.material]
        meet += [self._met.pairs, self._faces]
        return [
            Task(partners_kernel, count, [*both, self._counts], device).run,
            lambda: wp.utils.array_scan(self._counts, self._offsets, inclusive=False),
            Task(sides_kernel, count, [*both, self._offsets, self._sides], device).run,
            Task(meetings_kernel, pairs, meet, device).run,
            lambda: wp.utils.array_scan(self._faces, self._met.firsts, inclusive=False),
        ]

    def _touching(self, pairs: int) -> Runs:
        """Force and torque of each pair."""
        met, device = self._met, self.device
        rows = [met, COPIES, self._sums, self._queues.counts, self._answers]
        peak = [self._offsets, self._answers, self._peak]
        lanes = WARP_SIZE if device.is_cuda else 1
        queues, patches = self._queues, patches_in(self._queues)
        faces, large, blocks = queues["faces"], queues["large"], queues["blocks"]
        block = [met, 1, BOUND, wp.empty(0, dtype=wp.int64, device=device), large, blocks]
        draw = [met, patches, DepthImages(), BOUND, COPIES, self._sums]
        kernel = penalty_kernel_for(self.drags, bool(self.floors))
        return [
            self._over_faces(cull_faces_kernel, [met, BOUND, faces]),
            over_listed(queues, "faces", setup_faces_kernel, [met, 1, faces, large, patches]),
            over_large(queues, list_blocks_kernel, block),
            over_parts(queues, setup_tiles_kernel, [met, BOUND, blocks, patches]),
            over_turns(queues, kernel, draw),
            Task(response_rows_kernel, SUMS * pairs * lanes, rows, device).run,
            Task(peak_kernel, 1, peak, device).run,
        ]

    def _moving(self, count: int) -> Runs:
        gather = [self.bodies, self._sides, self._offsets, self._answers, *self._wrench]
        move = [self.shapes, self.gravity, *self._wrench, self.clock, self.bodies]
        return [
            Task(gather_kernel, count, gather, self.device).run,
            Task(move_kernel, count, move, self.device).run,
        ]

    def _over_faces(self, kernel: wp.Kernel, args: list[Any]) -> Callable[[], None]:
        """A launch over as many faces as there are by then."""
        if self.device.is_cuda:
            return Task(kernel, UNKNOWN_COUNT, args, self.device).run

        def run() -> None:
            faces = int(self._met.firsts.numpy()[-1])
            launch(kernel, faces, args, self.device, grain=PER_SLICE)

        return run
