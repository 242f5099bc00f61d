"""Work balancing as in gProximity §3.3: tasks with a queue each, and a kernel that divides anew.

A work unit is a pair of nodes that may overlap. A task is a team (core/team.py) that takes units,
up to one for each lane, from the end of its own queue, tests them, appends those of their
children and lists the faces of leaves. A task whose queue is empty or full counts itself idle and
ends; the others end when more than half of all tasks are idle. Then a kernel examines all queues
and gives each task an equal number of units, until none are left.
"""

from functools import cache
from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import BvhView, face_of, is_leaf, link_of, load_node, root_of
from abut.core.atomics import atomic_add_aggregated
from abut.core.lanes import WARP_SIZE, lane_count, lane_index, warp_first, warp_scan, warp_sync
from abut.core.launch import Task
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import PairQueue, pack_pair, warp_push_pair
from abut.core.team import (
    TRIPLE_BLOCK,
    TRIPLES,
    load_triple,
    local_triples,
    shared_triples,
    store_triple,
)
from abut.core.timing import stage
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.posed_pairs import MeshPairs
from abut.traversal.overlap.descend import lanes_with_room
from abut.traversal.overlap.kdop_frames import KdopFrames
from abut.traversal.overlap.node_pairs import (
    APART,
    STACK,
    Opened,
    finer_overlap,
    open_pair,
    overlap_node_boxes,
    start_of,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TASKS = {"cpu": 16, "cuda": 1024}  # at least; so many warps fill the shared memory of a large GPU
FULL = int(TRIPLES) - int(STACK)  # units of a full queue; the rest serves one lane alone
START_UNITS = 1024  # rows that a task starts with at most


@wp.struct
class TaskQueues:
    """The queues of all tasks in memory, TRIPLES entries each."""

    units: wp.array[wp.vec3i]  # rank of a row, slot of a, slot of b
    sizes: wp.array[wp.int32]


@wp.func
def open_unit(
    frame: RelativeFrame,
    tree_a: BvhView,
    i: wp.int32,
    tree_b: BvhView,
    j: wp.int32,
    own: wp.bool,
):
    """Open two nodes, not both leaves; of one tree a node and itself give three pairs."""
    a = load_node(tree_a.nodes, i)
    if own and i == j:
        child = 2 * link_of(a)
        left = load_node(tree_a.nodes, child)
        right = load_node(tree_a.nodes, child + 1)
        out = Opened()
        out.i = child
        out.j = child
        between = wp.where(overlap_node_boxes(frame, left, right) == 1, wp.float32(0.0), APART)
        out.gaps = wp.vec4f(wp.float32(0.0), between, APART, wp.float32(0.0))
        return out
    return open_pair(frame, tree_a, i, a, tree_b, j, load_node(tree_b.nodes, j))


@wp.func
def push_units(queue: wp.uint64, held: wp.int32, rank: wp.int32, opened: Opened, wanted: wp.bool):
    """Append the overlapping pairs of all lanes with ``wanted``; returns the size of the queue."""
    count = wp.int32(0)
    if wanted:
        for k in range(4):
            count += wp.int32(not (opened.gaps[k] > wp.float32(0.0)))
    places = warp_scan(count)
    place = held + places[0]
    if wanted:
        for k in range(4):
            if not (opened.gaps[k] > wp.float32(0.0)):
                unit = wp.vec3i(rank, opened.i + (k >> 1), opened.j + (k & 1))
                store_triple(queue, place, unit)
                place += 1
    warp_sync()
    return held + places[1]


@cache
def work_kernel_for(finer: bool, own: bool, cuda: bool) -> wp.Kernel:
    """The kernel that works on the queues of tasks.

    Args:
        finer: Trees have volumes beside their boxes.
        own: One mesh is paired with itself.
        cuda: A task is a warp with its queue in shared memory, else a thread.
    """

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def work_kernel(
        # in
        span: wp.vec3i,
        pairs: MeshPairs,
        frames: wp.array[RelativeFrame],
        dops: KdopFrames,
        bits: wp.vec2i,
        task_count: wp.int32,
        full: wp.int32,
        # out
        queues_out: TaskQueues,
        idle_out: wp.array[wp.int64],
        candidates_out: PairQueue,
    ):
        """List the faces whose volumes overlap, until a queue is empty or half of all idle."""
        if wp.static(cuda):
            queue = shared_triples()
        else:
            entries = wp.zeros(shape=(TRIPLES,), dtype=wp.vec3i)
            queue = local_triples(entries)
        lane = lane_index()
        for item in range(span[0] + wp.tid(), span[1], span[2]):
            task = item / lane_count()
            begin = task * TRIPLES
            held = queues_out.sizes[task]
            for k in range(lane, held, lane_count()):
                store_triple(queue, k, queues_out.units[begin + k])
            warp_sync()
            idle = held == 0
            working = held > 0
            while working:
                taken = lanes_with_room(held, full + STACK)
                held -= taken
                opens = wp.bool(False)
                found = wp.bool(False)
                key = wp.int64(0)
                rank = wp.int32(0)
                opened = Opened()
                if lane < taken:
                    unit = load_triple(queue, held + taken - 1 - lane)
                    rank = unit[0]
                    a = load_node(pairs.tree_a.nodes, unit[1])
                    b = load_node(pairs.tree_b.nodes, unit[2])
                    near = wp.bool(True)
                    if wp.static(finer):
                        if not (wp.static(own) and unit[1] == unit[2]):
                            near = finer_overlap(
                                frames[rank],
                                dops,
                                rank,
                                pairs.tree_a,
                                unit[1],
                                pairs.tree_b,
                                unit[2],
                            )
                    if is_leaf(a) and is_leaf(b):
                        found = near and not (wp.static(own) and unit[1] == unit[2])
                        key = pack_pair(rank, face_of(a), face_of(b), bits)
                    elif near:
                        opens = True
                        opened = open_unit(
                            frames[rank],
                            pairs.tree_a,
                            unit[1],
                            pairs.tree_b,
                            unit[2],
                            wp.static(own),
                        )
                warp_sync()  # all have read what others will overwrite
                warp_push_pair(candidates_out, found, key)
                held = push_units(queue, held, rank, opened, opens)
                fits = held <= full  # else this task has used the room for one lane
                idle = held == 0 or (fits and held > full - 3)
                others = load_relaxed_int64(idle_out, 0) > wp.int64(task_count / 2)
                stops = warp_first(others) < lane_count()  # lanes may have read at different times
                working = not idle and not (stops and fits)
            if lane == 0:
                queues_out.sizes[task] = held
                if idle:
                    atomic_add_aggregated(idle_out, 1)
            for k in range(lane, held, lane_count()):
                queues_out.units[begin + k] = load_triple(queue, k)
            warp_sync()

    return work_kernel


@wp.kernel
def start_tasks_kernel(
    # in
    span: wp.vec3i,
    pairs: MeshPairs,
    frames: wp.array[RelativeFrame],
    # out
    queues_out: TaskQueues,
    idle_out: wp.array[wp.int64],
):
    """Give each task its share of the rows: the pairs of roots that overlap."""
    for task in range(span[0] + wp.tid(), span[1], span[2]):
        size = wp.int32(0)
        for rank in range(task, pairs.count, queues_out.sizes.shape[0]):
            start = root_of(pairs.tree_a)
            if pairs.sharing == SHARED_NONE:
                start = start_of(frames[rank], pairs.tree_a, pairs.tree_b, 0, 0)
            if start >= 0:
                unit = wp.vec3i(rank, start, root_of(pairs.tree_b))
                queues_out.units[task * TRIPLES + size] = unit
                size += 1
        queues_out.sizes[task] = size
        if task == 0:
            idle_out[0] = wp.int64(0)


@wp.kernel
def balance_kernel(
    # in
    span: wp.vec3i,
    last: TaskQueues,
    # out
    next_out: TaskQueues,
    idle_out: wp.array[wp.int64],
    left_out: wp.array[wp.int32],
):
    """Give each task, a team, an equal number of the units that all have left."""
    lane = lane_index()
    tasks = last.sizes.shape[0]
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        task = item / lane_count()
        total = wp.int32(0)
        for first in range(0, tasks, lane_count()):
            size = wp.int32(0)
            if first + lane < tasks:
                size = last.sizes[first + lane]
            total += warp_scan(size)[1]
        share = (total + tasks - 1) / tasks
        low = wp.min(task * share, total)
        high = wp.min(low + share, total)
        place = wp.int32(0)  # of the units of a task among all
        for first in range(0, tasks, lane_count()):
            size = wp.int32(0)
            if first + lane < tasks:
                size = last.sizes[first + lane]
            places = warp_scan(size)
            at = place + places[0]
            for k in range(wp.max(low, at), wp.min(high, at + size)):
                unit = last.units[(first + lane) * TRIPLES + k - at]
                next_out.units[task * TRIPLES + k - low] = unit
            place += places[1]
        if lane == 0:
            next_out.sizes[task] = high - low
            if task == 0:
                left_out[0] = total
                idle_out[0] = wp.int64(0)


class BalancedSearch:
    """Rounds of work and balancing for rows of two meshes, or of one and itself.

    Args:
        rows: MeshRows.
        frames: Relative frames of the rows.
        dops: k-DOPs of the rows, where the trees have some.
        finer, own: See work_kernel_for.
        bits: Layout of the keys of faces.
        candidates: Queue of the faces found.
        tasks: Number of tasks; None suits the device.
        full: Units of a full queue.

    Attributes:
        rounds: Of the last run.
    """

    def __init__(
        self,
        rows: Any,
        frames: wp.array,
        dops: Any,
        finer: bool,
        own: bool,
        bits: wp.vec2i,
        candidates: Any,
        tasks: int | None = None,
        full: int = FULL,
    ) -> None:
        device = rows.device
        count = tasks or TASKS["cuda" if device.is_cuda else "cpu"]
        count = max(count, -(-rows.capacity // START_UNITS))
        queues = [_task_queues(count, device) for _ in range(2)]
        idle = wp.zeros(1, dtype=wp.int64, device=device)
        self._left = wp.zeros(1, dtype=wp.int32, device=device)
        self.rounds = 0
        lanes = WARP_SIZE if device.is_cuda else 1
        how = {"grain": 1, "block": TRIPLE_BLOCK if device.is_cuda else None}
        work = work_kernel_for(finer, own, device.is_cuda)
        about = [rows.view, frames, dops, bits, count, full]
        self._work = [
            Task(work, lanes * count, [*about, mine, idle, candidates], device, **how)
            for mine in queues
        ]
        self._balance = [
            Task(balance_kernel, lanes * count, [mine, other, idle, self._left], device, **how)
            for mine, other in (queues, queues[::-1])
        ]
        args = [rows.view, frames, queues[0], idle]
        self._start = Task(start_tasks_kernel, count, args, device)

    def run(self) -> None:
        """Work and balance until no unit is left. The host waits for each round."""
        self._start.run()
        self.rounds = 0
        left = 1
        while left:
            self._work[self.rounds % 2].run()
            with stage("balance", self._left.device):
                self._balance[self.rounds % 2].run()
            self.rounds += 1
            left = int(self._left.numpy()[0])


def _task_queues(count: int, device: wp.Device) -> Any:
    queues = TaskQueues()
    queues.units = wp.empty(count * int(TRIPLES), dtype=wp.vec3i, device=device)
    queues.sizes = wp.zeros(count, dtype=wp.int32, device=device)
    return queues
