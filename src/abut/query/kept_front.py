"""KeptFront: a front through the traversal of two trees, or of one, kept from frame to frame."""

from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Bvh
from abut.bvh.leaf_ranges import leaf_ranges
from abut.core.launch import launch
from abut.core.pair_queue import PairQueues
from abut.traversal.front import Front, Moved, advance_kernel

MOST_PAIRS = 1 << 25  # of a front; beyond that frames are searched from the root
LEAST_ROOM = 1 << 16
CLIMB_EVERY = 8  # steps: to move a pair up costs more than to look at it where it is
STARTING_ROUNDS = 16  # of a new front, opening one pair at a time so that all threads have work
GRAIN = 1024
SLOT_BITS = wp.vec2i(31, 32)  # of keys of nodes


class KeptFront:
    """Pairs of nodes where the last search stopped, in one of two queues, ``even`` and ``odd``.

    A search moves the front from one queue to the other, all of it or a range at a time: ``taken``
    pairs lie in the other queue for certain, whatever became of the range that is being tried.
    """

    def __init__(self, trees: tuple[Bvh, ...], queues: PairQueues) -> None:
        self.trees, self.queues = trees, queues
        self.device = queues.device
        self.ranges = [leaf_ranges(tree) for tree in trees]
        self.frames = wp.zeros(1, dtype=RelativeFrame, device=self.device)
        self.names = ("even", "odd")  # where the front is, and where it goes next
        self.steps = 0
        self.size = 1
        self.taken = 0
        self.lost = False
        roots = [2 * tree.face_count - 2 for tree in (trees[0], trees[-1])]
        self.queues["even"].keys.fill_((roots[0] << 32) | roots[1])
        self.queues["even"].count.fill_(1)

    def fits(self, trees: tuple[Bvh, ...]) -> bool:
        """Whether the front is one of these very trees, refitted as they may be."""
        same = len(trees) == len(self.trees)
        return same and all(mine is given for mine, given in zip(self.trees, trees, strict=True))

    @property
    def climbs(self) -> bool:
        """Whether pairs move up in this step."""
        return self.steps % CLIMB_EVERY == CLIMB_EVERY - 1

    def view(self, bits: wp.vec2i) -> Any:
        """The struct to pass to kernels; ``bits`` are those of keys of faces."""
        front = Front()
        front.nodes_a, front.nodes_b = self.trees[0].nodes, self.trees[-1].nodes
        front.splits_a, front.splits_b = self.trees[0].split_slots, self.trees[-1].split_slots
        front.ranges_a, front.ranges_b = self.ranges[0], self.ranges[-1]
        front.frames = self.frames
        front.within = len(self.trees) == 1
        front.slot_bits, front.bits = SLOT_BITS, bits
        return front

    def arguments(self, most: int, bits: wp.vec2i, candidates: Any) -> list[Any]:
        """Of the kernel that moves the front."""
        here, there = (self.queues[name] for name in self.names)
        moved = Moved()
        moved.kept = moved.left = there
        moved.found = candidates
        return [self.view(bits), here, most, self.climbs, moved]

    def move(self, start: int, stop: int, most: int, bits: wp.vec2i, candidates: Any) -> None:
        """Move a range of the front behind what is taken already."""
        self.queues[self.names[1]].count.fill_(self.taken)
        args = self.arguments(most, bits, candidates)
        launch(advance_kernel, stop - start, args, self.device, grain=GRAIN, start=start)

    def take(self) -> bool:
        """Keep what was moved last; False where it found no room, of which there is more now.

        A front that has grown too long is ``lost``: the rest of it can be moved, to no avail but
        for the candidates.
        """
        there = self.names[1]
        count = self.queues.read()[there]
        self.lost = self.lost or count > MOST_PAIRS
        if self.lost:
            self.taken = 0
            return True
        old = self.queues[there].keys
        if count > old.shape[0]:
            self.queues.make_room({there: count + count // 4})
            if self.taken:
                wp.copy(self.queues[there].keys, old, count=self.taken)
            return False
        self.taken = count
        return True

    def turn(self) -> None:
        """All of the front was moved: it now lies in the other queue."""
        self.names = self.names[1], self.names[0]
        self.size, self.taken = self.taken, 0

    def order(self) -> None:
        """Bring a new front, which grew breadth first, into the order of leaves, for the CPU."""
        if self.device.is_cpu:
            self.queues[self.names[0]].keys.numpy()[: self.size].sort()
