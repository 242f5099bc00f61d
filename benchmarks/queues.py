"""Queues of node pairs for one tree against itself, which abut measured and does not use.

gProximity (§3.3) lets threads open pairs of nodes depth first and balances what is left between
launches: ``Rounds``. Threads that live until all is done and take pairs from one queue in memory
need no launches in between: ``Persistent``. Both list what
``abut.traversal.overlap.leaf_cluster_pairs`` lists.
"""

from typing import Any

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bvh.layout import (
    Bvh,
    BvhView,
    face_of,
    half_area,
    is_leaf,
    link_of,
    load_node,
)
from abut.core.atomics import reserve
from abut.core.loads import load_uncached_int64
from abut.core.pair_queue import PairQueue, PairQueues, pack_pair, queue_stop, store_pair
from abut.core.runtime import UNKNOWN_COUNT, Task

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(160)  # a tree is at most 61 levels deep, and each leaves two pairs behind
FOUND = wp.constant(16)
NO_PAIR = wp.constant(wp.int64(-1))
MOST_POLLS = wp.constant(1 << 22)  # a thread that waits this long has been forgotten
DONATES = wp.constant(2)  # pairs on a stack that are worth sharing


@wp.func
def pair_of(x: wp.int32, y: wp.int32):
    """Two slots as one word."""
    return (wp.int64(x) << wp.int64(32)) | wp.int64(y)


@wp.func
def put(tree: BvhView, x: wp.int32, y: wp.int32, held: wp.int32, stack: wp.array[wp.int64]):
    """Put a pair on a stack if its boxes overlap."""
    a = load_node(tree.nodes, x)
    b = load_node(tree.nodes, y)
    stack[held] = pair_of(x, y)
    return held + wp.int32(x == y or overlap_aabb(a.low, a.high, b.low, b.high))


@wp.func
def open_some(
    tree: BvhView,
    bits: wp.vec2i,
    most: wp.int32,
    count: wp.int32,
    stack: wp.array[wp.int64],
    queue: PairQueue,
):
    """Open at most ``most`` of the pairs on a stack; returns how many it holds then."""
    found = wp.zeros(shape=(FOUND,), dtype=wp.int64)
    found_count = wp.int32(0)
    held = wp.int32(count)
    opened = wp.int32(0)
    while held > 0 and opened < most:
        held -= 1
        opened += 1
        x = wp.int32(stack[held] >> wp.int64(32))
        y = wp.int32(stack[held] & wp.int64(0x7FFFFFFF))
        a = load_node(tree.nodes, x)
        b = load_node(tree.nodes, y)
        if x == y:
            if not is_leaf(a):
                left = 2 * link_of(a)
                held = put(tree, left, left + 1, held, stack)
                held = put(tree, left + 1, left + 1, held, stack)
                held = put(tree, left, left, held, stack)
        elif is_leaf(a) and is_leaf(b):
            low = wp.min(face_of(a), face_of(b))
            found[found_count] = pack_pair(0, low, wp.max(face_of(a), face_of(b)), bits)
            found_count += 1
        elif is_leaf(b) or (not is_leaf(a) and half_area(a) > half_area(b)):
            held = put(tree, 2 * link_of(a), y, held, stack)
            held = put(tree, 2 * link_of(a) + 1, y, held, stack)
        else:
            held = put(tree, x, 2 * link_of(b), held, stack)
            held = put(tree, x, 2 * link_of(b) + 1, held, stack)
        if found_count == FOUND:
            place = reserve(queue.count, found_count)
            for i in range(found_count):
                store_pair(queue, place + wp.int64(i), found[i])
            found_count = 0
    place = reserve(queue.count, found_count)
    for i in range(found_count):
        store_pair(queue, place + wp.int64(i), found[i])
    return held


@wp.kernel
def round_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    bits: wp.vec2i,
    most: wp.int32,
    here: PairQueue,
    # out
    there_out: PairQueue,
    candidates_out: PairQueue,
):
    """Open at most so many pairs below each of a queue; the rest goes to another queue."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.int64)
    for i in range(span[0] + wp.tid(), queue_stop(here, span[1]), span[2]):
        stack[0] = here.keys[i]
        held = open_some(tree, bits, most, 1, stack, candidates_out)
        place = reserve(there_out.count, held)
        for k in range(held):
            store_pair(there_out, place + wp.int64(k), stack[k])


@wp.kernel
def persistent_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    bits: wp.vec2i,
    most: wp.int32,
    # out
    keys_out: wp.array[wp.int64],
    asked_out: wp.array[wp.int64],
    given_out: wp.array[wp.int64],
    pending_out: wp.array[wp.int64],
    candidates_out: PairQueue,
):
    """Take a pair, open what is below it, share what lies on the stack while others wait.

    Pairs asked for and given are numbered; the one that asked for number i waits for entry i.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.int64)
    room = wp.int64(keys_out.shape[0] / 2)
    for _ in range(span[0] + wp.tid(), span[1], span[2]):
        held = wp.int32(0)
        ticket = wp.int64(-1)
        polls = wp.int32(0)
        while polls < MOST_POLLS:
            if held == 0:
                polls += 1
                if ticket < wp.int64(0):
                    ticket = reserve(asked_out, 1)
                pair = NO_PAIR
                if ticket < wp.int64(keys_out.shape[0]):
                    pair = load_uncached_int64(keys_out, wp.int32(ticket))
                if pair != NO_PAIR:
                    stack[0] = pair
                    held = 1
                    ticket = wp.int64(-1)
                elif load_uncached_int64(pending_out, 0) == wp.int64(0):
                    polls = MOST_POLLS
            else:
                polls = 0
                held = open_some(tree, bits, most, held, stack, candidates_out)
                given = load_uncached_int64(given_out, 0)
                waiting = load_uncached_int64(asked_out, 0) - given
                shared = wp.int32(0)
                if held >= DONATES and given < room and waiting > wp.int64(0):
                    shared = held / 2
                if shared > 0:
                    reserve(pending_out, shared)
                    place = wp.int32(reserve(given_out, shared))
                    for k in range(shared):  # the lowest of the stack are the largest
                        keys_out[place + k] = stack[k]
                    for k in range(held - shared):
                        stack[k] = stack[k + shared]
                    held -= shared
                if held == 0:
                    reserve(pending_out, -1)


class Rounds:
    """A queue opened round by round, without a read-back in between."""

    def __init__(self, tree: Bvh, bits: wp.vec2i, most: int, queues: PairQueues) -> None:
        self.queues = queues
        view, found = tree.view(), queues["candidates"]
        root = 2 * tree.face_count - 2
        self.start = wp.array([(root << 32) | root], dtype=wp.int64, device=queues.device)
        names = ("even", "odd")
        self.tasks = []
        for k in range(2):
            here, there = queues[names[k]], queues[names[1 - k]]
            args = [view, bits, most, here, there, found]
            self.tasks.append((Task(round_kernel, UNKNOWN_COUNT, args, queues.device), there))
        self.rounds = self._needed()

    def _begin(self) -> None:
        self.queues.clear()
        wp.copy(self.queues["even"].keys, self.start, count=1)
        self.queues["even"].count.fill_(1)

    def _needed(self) -> int:
        """Rounds until nothing is left."""
        self._begin()
        left, count = 1, 0
        while left:
            self.step(count)
            left = self.queues.read()[("odd", "even")[count % 2]]
            count += 1
        return count

    def step(self, k: int) -> None:
        """One round."""
        task, there = self.tasks[k % 2]
        there.count.zero_()
        task.run()

    def run(self) -> int:
        """List all candidates; returns how many there are."""
        self._begin()
        for k in range(self.rounds):
            self.step(k)
        return self.queues.read()["candidates"]


class Persistent:
    """Threads that take pairs from one queue until all is done."""

    def __init__(
        self, tree: Bvh, bits: wp.vec2i, most: int, queues: PairQueues, threads: int
    ) -> None:
        device = queues.device
        self.queues = queues
        root = 2 * tree.face_count - 2
        self.keys = wp.empty(1 << 22, dtype=wp.int64, device=device)
        self.start = wp.array([(root << 32) | root], dtype=wp.int64, device=device)
        self.counters = wp.zeros(3, dtype=wp.int64, device=device)
        self.begin = wp.array([0, 1, 1], dtype=wp.int64, device=device)
        parts = [self.counters[k : k + 1] for k in range(3)]
        args: list[Any] = [tree.view(), bits, most, self.keys, *parts, queues["candidates"]]
        self.task = Task(persistent_kernel, threads, args, device, grain=threads)

    def run(self) -> int:
        """List all candidates; returns how many there are."""
        self.queues.clear()
        self.keys.fill_(int(NO_PAIR))
        wp.copy(self.keys, self.start, count=1)
        wp.copy(self.counters, self.begin)
        self.task.run()
        return self.queues.read()["candidates"]
