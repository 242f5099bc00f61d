"""ContactSearch: the stages of a contact query of a whole scene."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.core.pair_queue import NO_KEY_INT, KeyLayout, lowest_of_each_pose
from abut.core.plan import Plan, Stage
from abut.operands.contact_queues import contact_queues
from abut.options import BroadMethod
from abut.query.contact_stages import ContactStages, Strategy
from abut.scene.objects import Objects
from abut.scene.queues import SceneQueues
from abut.scene.rows import LEAST_EXPECTED, RowsAhead
from abut.scene.search import SceneSearch
from abut.scene.shape_pool import ShapePool

EVERYWHERE = 1e30  # a margin at which all boxes overlap


@dataclass(frozen=True)
class Asked:
    """What a contact query wants to know.

    Attributes:
        own: Also faces of one object.
        first: One pair of faces for each pair of objects.
        hurry: Only which copies of the scene have any contact.
        brute: Every pair of faces of every pair of objects that may meet.
        front: From where the last search stopped.
        broad: How pairs of objects are found.
    """

    own: bool = False
    first: bool = False
    hurry: bool = False
    brute: bool = False
    front: bool = False
    broad: BroadMethod | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Numbers that tell queries apart."""
        flags = (self.own, self.first, self.hurry, self.brute, self.front)
        broad = 0 if self.broad is None else 1 + list(BroadMethod).index(self.broad)
        return sum(flag << k for k, flag in enumerate(flags)), broad


@dataclass
class Found:
    """Sorted keys: of meetings, and of faces (rank of the meeting, a, b).

    Or rows made of them: copies of the scene, objects, faces; and a copy of the poses.
    """

    meetings: Any
    keys: Any
    layout: KeyLayout
    objects: KeyLayout
    colliding: np.ndarray | None = None
    pairs: Any = field(default=None, repr=False)
    rows: tuple[wp.array, wp.array, wp.array] | None = None
    poses: wp.array | None = None


class ContactSearch(SceneSearch):
    """The plan that answers one kind of contact query of a scene."""

    def __init__(
        self,
        pool: ShapePool,
        objects: Objects,
        queues: SceneQueues,
        poses: wp.array,
        copies: int,
        asked: Asked,
    ) -> None:
        super().__init__(
            pool,
            objects,
            queues,
            poses,
            copies,
            own=asked.own,
            margin=EVERYWHERE if asked.brute else 0.0,
            broad=BroadMethod.ALL_PAIRS if asked.brute else asked.broad,
        )
        self.asked = asked
        self.out = contact_queues(queues, self.layout)
        self._stops = (asked.first or asked.hurry) and not asked.brute  # at the first pair
        if self._stops:
            self.best = wp.empty(self.capacity, dtype=wp.int64, device=self.device)
            self.out.best = self.best
        self.strategy = self._cheapest()
        self._ahead: RowsAhead | None = None  # on CUDA, once it is known how many rows to expect
        self._rows: Any = None
        self._then: wp.array | None = None
        self._plan = Plan(queues, self._stages, clear=self._clear, accept=self._accept)

    def run(self) -> dict[str, int] | None:
        """Search; the counts of the queues, or None where one grew: then a new search is due."""
        return self._plan.run_once()

    def found(self, counts: dict[str, int]) -> Found:
        """What a run has found."""
        about = self.layout, self.objects
        if self._rows is not None and counts["hits"] <= self._ahead.size:
            rows = tuple(array[: counts["hits"]] for array in self._rows)
            return Found(None, None, *about, None, self.pairs, rows, self._then)
        meetings = self.queues["objects"].keys[: counts["objects"]]
        rank_bits = max(counts["objects"] - 1, 1).bit_length()
        keys = self.queues.sorted_keys("hits", counts["hits"], self.layout.width + rank_bits)
        if self.asked.first:
            keys = self._one_each(keys, counts["objects"])
        colliding = None
        if self.asked.hurry:
            colliding = self.flags.numpy().astype(bool)
            if len(keys):
                host = keys if isinstance(keys, np.ndarray) else keys.numpy()
                settled = meetings.numpy()[host >> self.layout.width]
                colliding[settled >> self.objects.width] = True
        else:
            self._expect(counts["hits"])
        return Found(meetings, keys, *about, colliding, self.pairs)

    @property
    def _foresees(self) -> bool:
        """Whether rows are made before it is known how many."""
        return self.device.is_cuda and not self.asked.first

    def _expect(self, count: int) -> None:
        """Make rows ahead from now on, a quarter more than there were."""
        if self._foresees:
            size = count + count // 4 + LEAST_EXPECTED
            self._ahead = RowsAhead(self.queues, self.objects, self.layout, size)

    def _cheapest(self) -> Strategy:
        """The strategy that costs least, as measured (design/scene.md)."""
        if self.asked.brute:
            return Strategy.BRUTE
        if self._stops:
            return Strategy.FIRST
        return Strategy.LEAF_WALK if self.device.is_cuda else Strategy.DESCEND

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad_stages()
        yield from self._contact_stages()
        if self._foresees:
            yield "rows", self._make_rows

    def _contact_stages(self) -> Iterable[Stage]:
        return ContactStages(
            self.rows,
            self.queues,
            self.out,
            self.strategy,
            own=self.asked.own,
            colliding=self.flags if self.asked.hurry else None,
        )

    def _make_rows(self) -> None:
        """Make rows of what is found while the device is busy, as many as are expected."""
        self._rows, self._then = None, None
        if self._ahead is not None:
            self._rows, self._then = self._ahead.start(), wp.clone(self.rows.view.poses)

    def _accept(self, counts: dict[str, int]) -> bool:
        """Refuse poses that are not rigid; descend where a leaf walk had too many leaves."""
        self._require_rigid(counts)
        if counts["skipped"]:
            self.strategy = Strategy.DESCEND
            self._plan.forget()
            return False
        return True

    def _one_each(self, keys: Any, count: int) -> np.ndarray:
        """One key a meeting: of a pair the filter was sure of, else the lowest settled one."""
        best = self.best.numpy()[:count] if self.best is not None else np.full(count, NO_KEY_INT)
        settled = lowest_of_each_pose(keys, self.layout)
        settled = settled[best[settled >> self.layout.width] == NO_KEY_INT]
        return np.sort(np.concatenate([best[best != NO_KEY_INT], settled]))
