"""SweepFronts: the fronts of continuous queries about the same meshes, step after step."""

from dataclasses import dataclass, field

import warp as wp

from abut.bvh.layout import Bvh
from abut.core.launch import UNKNOWN_COUNT
from abut.core.pair_queue import PairQueues
from abut.query.kept_front import LEAST_ROOM, STARTING_ROUNDS, KeptFront


@dataclass
class SweepFronts:
    """A front for each kind of feature pair; none where one has grown too long.

    What was given up is not tried again until the hierarchies are others.
    """

    kept: dict[int, KeptFront] = field(default_factory=dict)
    given_up: dict[int, tuple[Bvh, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Pairs of nodes in all fronts."""
        return sum(front.size for front in self.kept.values())

    def of(self, kind: int, trees: tuple[Bvh, ...], candidates: PairQueues) -> KeptFront | None:
        """The front through certain trees; None where there is to be none.

        ``candidates`` holds a queue of that name, which a new front makes use of.
        """
        if min(tree.face_count for tree in trees) < 2 or self._gave_up(kind, trees):
            return None
        front = self.kept.get(kind)
        if front is None or not front.fits(trees):
            queues = PairQueues(trees[0].nodes.device, even=LEAST_ROOM, odd=LEAST_ROOM)
            front = self._started(KeptFront(trees, queues), candidates)
        if front is None:
            self.give_up(kind, trees)
            return None
        self.kept[kind] = front
        return front

    def give_up(self, kind: int, trees: tuple[Bvh, ...]) -> None:
        """Have no front of a kind from now on."""
        self.given_up[kind] = trees
        self.kept.pop(kind, None)

    def _gave_up(self, kind: int, trees: tuple[Bvh, ...]) -> bool:
        before = self.given_up.get(kind, ())
        return len(before) == len(trees) and all(x is y for x, y in zip(before, trees, strict=True))

    def _started(self, front: KeptFront, candidates: PairQueues) -> KeptFront | None:
        """A new front moved down from the roots; None when it has grown too long."""
        for _ in range(STARTING_ROUNDS):
            moved = False
            while not moved:
                front.move(0, front.size, 1, wp.vec2i(31, 31), candidates["candidates"])
                moved = front.take()
            if front.lost:
                return None
            front.turn()
        front.order()
        return front


@dataclass
class FrontRange:
    """Ranges of a front as a listing of candidates has them: to be tried, then to be kept."""

    fronts: SweepFronts
    kind: int
    front: KeptFront
    bits: wp.vec2i
    _stop: int = 0

    def launch(self, start: int, stop: int, queues: PairQueues) -> None:
        """List the candidates below a range of the front."""
        self._stop = stop
        self.front.move(start, stop, UNKNOWN_COUNT, self.bits, queues["candidates"])

    def accept(self) -> bool:
        """Keep the range; False where it is to be done again with more room."""
        front = self.front
        if not front.take():
            return False
        if self._stop == front.size:
            front.turn()
            front.steps += 1
            if front.lost:
                self.fronts.give_up(self.kind, front.trees)
        return True
