"""LeastSearch: the nearest two objects of a scene on the CPU."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.broad.few_objects import MOST_FEW
from abut.broad.least_pairs import FEW, least_pairs_kernel, probed_pairs_kernel
from abut.core.device import thread_count
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import NO_KEY_INT, PairQueue
from abut.narrow.pair_distance import measured
from abut.operands.contact_queues import contact_queues
from abut.operands.distance_queues import distance_queues
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import ScenePairs, WorkItems
from abut.options import Bound
from abut.scene.broad_stages import BroadStages
from abut.scene.distance_results import LeastDistance
from abut.scene.selection import Part
from abut.traversal.distance.least_nearest import (
    LeastPairs,
    answer_least_kernel,
    begin_contacts_kernel,
    contact_corners_kernel,
    least_nearest_kernel_for,
)
from abut.traversal.distance.spill import SpillQueue
from abut.traversal.overlap.descend import descend_kernel_for
from abut.traversal.overlap.kdop_frames import KdopFrames

MOST_OBJECTS = 1 << 20  # of which some look for a contact
MOST_SWEPT = 1 << 12  # whose boxes one thread compares
PAIRS_FOR_THREADS = 24  # fewer are searched before a second thread has begun
FEW_INT = int(FEW)
REFUSALS = 16  # questions that other searches answer, after one that had to


class LeastSearch:
    """Finds the nearest two objects: pairs of objects, most promising first, with one bound.

    Args:
        scene: Arguments of BroadStages, for one environment.
    """

    def __init__(self, *scene: Any) -> None:
        self.broad = BroadStages(*scene)
        self._device, self._generation, self._refusals = self.broad.device, -1, 0
        self._few_rows = self._zeros(FEW_INT + MOST_FEW, wp.int32)
        self._few, self._part = self._few_rows.numpy(), None

    def find(self, part: Part) -> LeastDistance | None:
        """The answer for a part that ``broad`` follows; None: ask other searches."""
        if self._refusals:
            self._refusals -= 1
            return None
        if part is not self._part:
            self._part = part
            few, last = part.few or ((), False)
            self._few[: FEW_INT + len(few)] = [len(few), last, *few]
        found = self._lowest_contact()
        lists = part.few is not None or len(part.objects) <= MOST_SWEPT
        return self._nearest_two() if found is None and lists and not self._refusals else found

    def _lowest_contact(self) -> LeastDistance | None:
        """The answer where one of the lowest pairs of objects meets."""
        self._follow()
        self.broad.clear()
        self._boxes()
        self._probe()
        self._search(1)
        counts = self.broad.queues.read()
        if counts["bad"] or counts["undecided"]:  # a pose is not rigid, or faces need exact tests
            self._refusals = REFUSALS
            return None
        return None if self._distance[0] else self._named()

    def _nearest_two(self) -> LeastDistance | None:
        """The answer for all pairs of objects."""
        queues = self.broad.queues
        while True:
            queues["objects"].count.fill_(0)
            self._list()
            if not queues.grow({"objects": queues.read()["objects"]}):
                break
            self._follow()
        if not self._numbers[1]:  # else objects are far apart for their size
            self._search(self._numbers[0])
            if not queues.read()["undecided"]:
                if self._distance[0]:
                    points = partial(_as_array, self._points.copy(), self._device)
                    return self._made(float(self._distance[0]), points)
                self._begin_contacts.run()
                self._search(1)
                return self._named()
        self._refusals = REFUSALS
        return None

    def _search(self, pairs: int) -> None:
        """Search the listed pairs, on all threads where they are many, and read the answer."""
        self._counter[0] = 0
        (self._nearest if pairs > PAIRS_FOR_THREADS else self._nearest_alone).run()
        self._pick.run()

    def _named(self) -> LeastDistance | None:
        """The answer where two objects meet, with faces that do."""
        self._best.fill_(NO_KEY_INT)
        self._descend.run()
        self._read_corners.run()
        if self.broad.queues.read()["undecided"] or self._about[2] < 0:
            self._refusals = REFUSALS
            return None
        return self._made(0.0, partial(_common_point, self._corners.copy(), self._device))

    def _made(self, distance: float, points: Callable[[], wp.array]) -> LeastDistance:
        rows = self._about.copy()
        if rows[0] >= 0:
            rows[1] -= self.broad.first_external
        return LeastDistance(distance, rows[2:], self._device, points, rows[:2])

    def _follow(self) -> None:
        """Record the launches, unless queues are those of the last time."""
        broad = self.broad
        boxes, *_ = broad
        if self._generation == broad.queues.generation:
            return
        self._generation, self._boxes = broad.queues.generation, boxes[1]
        listed, view = self._make_arrays(), broad.rows.view
        one = partial(Task, device=self._device, grain=UNKNOWN_COUNT)
        places, order = self._empty(broad.total, wp.int64), self._empty(broad.total, wp.int32)
        about = [view, broad.boxes, broad.filters, self._few_rows]
        args = [*about, places, order, listed, broad.queues["objects"]]
        self._list = one(least_pairs_kernel, 1, args).run
        args = [*about, listed, broad.queues["objects"]]
        self._probe = one(probed_pairs_kernel, 1, args).run
        counter, out = (
            self._zeros(1, wp.int32),
            distance_queues(broad.queues, broad.layout, self._empty(broad.capacity, wp.int64)),
        )
        args = [view, counter, listed, out, PairQueue(), SpillQueue()]
        kernel = least_nearest_kernel_for(Bound.RSS)
        self._nearest_alone = one(kernel, 1, args)
        self._nearest = Task(kernel, thread_count(), args, self._device, grain=1)
        self._begin_contacts = one(begin_contacts_kernel, 1, [view, listed])
        self._counter = counter.numpy()
        self._record_answers(listed)

    def _record_answers(self, listed: Any) -> None:
        view, layout, device = self.broad.rows.view, self.broad.layout, self._device
        one = partial(Task, device=device, grain=UNKNOWN_COUNT)
        about, distance = self._empty(4, wp.int32), self._empty(1, wp.float64)
        points, corners = self._zeros(2, wp.vec3d), self._zeros(6, wp.vec3d)
        met = PairQueue()
        met.keys, met.count = self._zeros(1, wp.int64), wp.full(1, 1, wp.int64, device)
        args = [view, listed, layout.bits, about, distance, points, met]
        self._pick = one(answer_least_kernel, 1, args)
        alone = self.broad.make_pairs(met)
        items, out = WorkItems(), contact_queues(self.broad.queues, layout)
        items.each, items.leaves = 1, 1
        out.best = self._best = self._empty(1, wp.int64)
        args = [alone, wp.empty(0, RelativeFrame, device), items, False, KdopFrames()]
        args += [self._zeros(1, wp.int32), out, self._empty(0, wp.int32)]
        self._descend = one(descend_kernel_for(ScenePairs, False, False, True, False), 1, args)
        args = [alone, self._best, layout.bits, about, corners]
        self._read_corners = one(contact_corners_kernel, 1, args)
        self._about, self._distance = about.numpy(), distance.numpy()
        self._points, self._corners = points.numpy(), corners.numpy()

    def _make_arrays(self) -> Any:
        """LeastPairs with room for all pairs of objects that the queue holds."""
        listed, count = LeastPairs(), self.broad.capacity
        listed.frames = self._empty(count, RelativeFrame)
        listed.gaps, listed.slacks = self._empty(count, wp.float32), self._empty(count, wp.float64)
        listed.bounds, listed.keys = (self._empty(count, wp.int64) for _ in range(2))
        listed.order, listed.ranking = self._empty(count, wp.int32), self._empty(count, wp.int64)
        listed.numbers, listed.least = self._zeros(2, wp.int32), self._zeros(1, wp.int64)
        self._numbers = listed.numbers.numpy()
        return listed

    def _empty(self, count: int, dtype: Any) -> wp.array:
        return wp.empty(count, dtype=dtype, device=self._device)

    def _zeros(self, count: int, dtype: Any) -> wp.array:
        return wp.zeros(count, dtype=dtype, device=self._device)


def _as_array(points: np.ndarray, device: wp.Device) -> wp.array:
    return wp.array(points, dtype=wp.float64, device=device)


def _common_point(corners: np.ndarray, device: wp.Device) -> wp.array:
    """A common point of two faces that meet, twice."""
    faces = wp.array([[0, 1, 2]], dtype=wp.vec3i, device=device)
    sides = [wp.array(part, dtype=wp.vec3d, device=device) for part in (corners[:3], corners[3:])]
    a, b = (partial(make_posed_mesh, points, faces) for points in sides)
    pair = wp.zeros((1, 2), dtype=wp.int32, device=device)
    _, points = measured(a, b, pair, None, np.array([True]), points=True)
    return points.reshape((2, 3))
