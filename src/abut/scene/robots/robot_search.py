"""RobotSearch: which configurations of a robot are free of contact, by a few launches."""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.broad.boxes import empty_boxes
from abut.core.call import Call
from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import KeyLayout, PairQueue
from abut.core.team import TEAM_BLOCK, TEAM_GRID
from abut.narrow.exact import EXACT_THREADS, exact_kernel_for
from abut.operands.contact_queues import ContactQueues
from abut.operands.posed_pairs import RobotPairs, WorkItems
from abut.scene.robots.padded_pairs import padded_pairs_kernel
from abut.scene.robots.robot_pairs import (
    flag_hits_kernel,
    robot_boxes_kernel,
    robot_pairs_kernel,
)
from abut.scene.robots.robot_solids import robot_solids_kernel
from abut.traversal.overlap.descend import descend_kernel_for
from abut.traversal.overlap.kdop_frames import KdopFrames

FREE, MET, NOT_FINITE = 0, 1, 2  # flags of configurations
OBJECTS, HITS, UNDECIDED = range(3)  # counts of queues
PAIRS_EACH = 16  # of objects of a configuration, to begin with
LEAST_PAIRS = 256
MOST_UNDECIDED = 256  # pairs of faces, to begin with


class RobotSearch:
    """Buffers and launches for up to ``capacity`` configurations at a time.

    Args:
        model: The robot, its scene, and what is known about them (RobotModel).
        capacity: Configurations.
    """

    def __init__(self, model: Any, capacity: int) -> None:
        self._model, self._device, self.capacity = model, model.device, capacity
        self._sizes = [max(PAIRS_EACH * capacity, LEAST_PAIRS), MOST_UNDECIDED, MOST_UNDECIDED]
        self._values = wp.zeros((capacity, model.value_count), wp.float64, self._device)
        self._count = wp.full(1, capacity, wp.int32, self._device)
        self._flags = wp.zeros(capacity, dtype=wp.int32, device=self._device)
        self._record()

    def flags(self, values: np.ndarray) -> np.ndarray:
        """Flags of at most ``capacity`` rows of values on the host; valid until the next call."""
        rows, count = self._call.inputs
        rows[: len(values)] = values
        count[0] = len(values)
        self._run()
        return self._call.outputs[0][: len(values)]

    def write_flags(self, values: wp.array, flags: wp.array) -> None:
        """Write flags of at most ``capacity`` rows of values that are on the device."""
        wp.copy(self._values, values, count=values.size)
        self._count.fill_(values.shape[0])
        self._run_tasks()
        wp.copy(flags, self._flags, count=values.shape[0])

    def _run(self) -> None:
        """Run with values on the host, again where a queue was full."""
        while True:
            self._call.run()
            counts = self._call.outputs[1].tolist()
            if counts[UNDECIDED] and self._device.is_cpu and counts[UNDECIDED] <= self._sizes[2]:
                for task in self._exact:
                    task.run()
                counts = self._call.outputs[1].tolist()
            if not self._grow(counts):
                return

    def _run_tasks(self) -> None:
        """Run with values on the device."""
        while True:
            for task in (*self._tasks, *self._exact):
                task.run()
            if not self._grow(self._counts.numpy().tolist()):
                return

    def _grow(self, counts: list[int]) -> bool:
        """Enlarge queues that were too small; False where all had room."""
        if all(n <= size for n, size in zip(counts, self._sizes, strict=True)):
            return False
        both = zip(counts, self._sizes, strict=True)
        wanted = [n + n // 4 if n > size else size for n, size in both]
        held = [array.copy() for array in self._call.inputs]
        self._sizes = wanted
        self._record()
        for array, old in zip(self._call.inputs, held, strict=True):
            array[:] = old
        return True

    def _queue(self, slot: int) -> Any:
        queue = PairQueue()
        queue.keys = wp.empty(self._sizes[slot], dtype=wp.int64, device=self._device)
        queue.count = self._counts[slot : slot + 1]
        return queue

    def _record(self) -> None:
        """Allocate queues and record the launches."""
        model, device, capacity = self._model, self._device, self.capacity
        self._counts = wp.zeros(3, dtype=wp.int64, device=device)
        bodies = len(model.rows)
        pairs = RobotPairs()
        pairs.bvhs, pairs.mesh, pairs.poses = model.bvhs, model.shapes, model.poses
        pairs.rows, pairs.own = model.row_array, model.own
        pairs.own_poses = wp.zeros(capacity * bodies, dtype=wp.mat44d, device=device)
        pairs.object_pairs = self._queue(OBJECTS)
        pairs.object_bits = KeyLayout.of(bodies, len(model.objects)).bits
        queues = ContactQueues()
        queues.bits = KeyLayout.of(model.most_faces, model.most_faces).bits
        queues.best = wp.empty(self._sizes[OBJECTS], dtype=wp.int64, device=device)
        queues.hits, queues.undecided = self._queue(HITS), self._queue(UNDECIDED)
        joints = wp.zeros(capacity * max(model.joint_count, 1), dtype=wp.mat44d, device=device)
        boxes = empty_boxes(bodies, capacity, device)
        counter = wp.zeros(1, dtype=wp.int32, device=device)
        self._pairs, alone = pairs, {"grain": UNKNOWN_COUNT}  # packed arguments hold addresses only

        args = [self._count, model.tree, self._values, model.pads, pairs, queues, joints, boxes]
        tasks = [Task(robot_boxes_kernel, capacity, [*args, self._flags, counter], device, **alone)]
        args = [self._count, boxes, model.boxes, model.filters, model.own_pairs, model.tables]
        args += [self._values, model.covers, model.solids, model.skipped]
        args += [model.pads, self._flags, pairs]
        tasks.append(Task(robot_pairs_kernel, capacity, args, device, **alone))
        tasks.append(self._descent(pairs, queues, counter))
        if model.pads.shape[0]:
            args = [pairs, model.pads, self._flags]
            tasks.append(Task(padded_pairs_kernel, UNKNOWN_COUNT, args, device, **alone))
        args = [pairs, boxes, model.boxes, model.solids, self._flags]
        tasks.append(Task(robot_solids_kernel, UNKNOWN_COUNT, args, device, **alone))
        args = [pairs, queues]
        options: Any = {**alone, "threads": EXACT_THREADS}
        exact = Task(exact_kernel_for(RobotPairs), UNKNOWN_COUNT, args, device, **options)
        flag = Task(flag_hits_kernel, UNKNOWN_COUNT, [*args, self._flags], device, **alone)
        self._tasks, self._exact = tasks, [exact, flag]
        if device.is_cuda:
            tasks = [*tasks, *self._exact]
        self._call = Call(tasks, [self._values, self._count], [self._flags, self._counts])

    def _descent(self, pairs: Any, queues: Any, counter: wp.array) -> Task:
        """Descend both trees of each pair of objects, until a configuration has a contact."""
        device, items = self._device, WorkItems()
        items.each, items.leaves = 1, 1
        args = [pairs, wp.empty(0, RelativeFrame, device), items, False, KdopFrames()]
        args += [counter, queues, self._flags]
        kernel = descend_kernel_for(RobotPairs, False, False, True, device.is_cuda)
        threads = min(TEAM_GRID, WARP_SIZE * self._sizes[OBJECTS])
        options = {"threads": threads, "block": TEAM_BLOCK} if device.is_cuda else {}
        return Task(kernel, UNKNOWN_COUNT, args, device, grain=UNKNOWN_COUNT, **options)
