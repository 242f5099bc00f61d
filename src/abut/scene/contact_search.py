"""ContactSearch: the stages of a contact query of a whole scene."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.core.pair_queue import NO_KEY, KeyLayout, lowest_of_each_pose
from abut.core.runtime import UNKNOWN_COUNT, Task, launch, stage
from abut.narrow.settle_crowd import settle_crowd_kernel
from abut.options import BroadMethod
from abut.scene.objects import Objects
from abut.scene.queues import SceneQueues
from abut.scene.rows import LEAST_EXPECTED, RowsAhead
from abut.scene.search import SceneSearch
from abut.scene.shape_pool import Pool
from abut.traversal.descents import brute_crowd_kernel, meet_kernel
from abut.traversal.meetings import (
    BRUTE,
    DESCEND,
    LIST,
    first_meet_kernel,
    frame_kernel,
    list_meet_kernel,
    test_meet_kernel,
)

EVERYWHERE = 1e30  # a margin at which all boxes overlap
LISTING_THREADS = 1 << 20  # a thread that strides over many walks has several long ones
Step = tuple[str, Callable[[], None]]


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
    crowd: Any = field(default=None, repr=False)
    rows: tuple[wp.array, wp.array, wp.array] | None = None
    poses: wp.array | None = None


class ContactSearch(SceneSearch):
    """Launches that answer one kind of contact query."""

    def __init__(
        self,
        pool: Pool,
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
        self._stops = (asked.first or asked.hurry) and not asked.brute  # at the first pair
        if self._stops:
            self.crowd.best = wp.empty(self.capacity, dtype=wp.int64, device=self.device)
        self._ahead: RowsAhead | None = None  # on CUDA, once it is known how many rows to expect
        self._lists = True  # on CUDA, for as long as leaves are not too many
        self._cuda_steps = self._recorded() if self.device.is_cuda else []

    def run(self) -> dict[str, int] | None:
        """Search; returns the counts of the queues, or None where one had no room."""
        if self.device.is_cpu:
            self._run_here()
        else:
            for name, step in self._cuda_steps:
                with stage(name, self.device):
                    step()
        self._rows, self._then = None, None
        if self._ahead is not None:  # while the device is busy
            self._rows, self._then = self._ahead.start(), wp.clone(self.crowd.poses)
        counts = self.queues.read()  # the one wait for the device
        self._require_rigid(counts)
        if counts.pop("skipped", 0):
            self._lists = False
            self._cuda_steps = self._recorded()
            return None
        return None if self.queues.make_room(counts) else counts

    def found(self, counts: dict[str, int]) -> Found:
        """What a run has found."""
        about = self.layout, self.objects
        if self._rows is not None and counts["hits"] <= self._ahead.size:
            rows = tuple(array[: counts["hits"]] for array in self._rows)
            return Found(None, None, *about, None, self.crowd, rows, self._then)
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
        return Found(meetings, keys, *about, colliding, self.crowd)

    @property
    def _foresees(self) -> bool:
        """Whether rows are made before it is known how many."""
        return self.device.is_cuda and not self.asked.first

    def _expect(self, count: int) -> None:
        """Make rows ahead from now on, a quarter more than there were."""
        if self._foresees:
            size = count + count // 4 + LEAST_EXPECTED
            self._ahead = RowsAhead(self.queues, self.objects, self.layout, size)

    def _run_here(self) -> None:
        """All stages, on the CPU, where counts are at hand."""
        self._forget.run()
        count = self._list_meetings()
        if count:
            self._meet_here(count)
            self._settle()

    def _meet_here(self, count: int) -> None:
        """Filter the faces of all meetings."""
        with stage("frames", self.device):
            args = [self.crowd, BRUTE if self.asked.brute else DESCEND, self._frames, self._items]
            launch(frame_kernel, count, args, self.device, grain=1024)
        with stage("search", self.device):
            self._search_here(count)

    def _search_here(self, count: int) -> None:
        if self._stops:
            args = [self.crowd, self._frames, self._items, self.asked.hurry, self.flags]
            launch(first_meet_kernel, count, args, self.device, grain=64)
            return
        items, starts = self._begin_items(count), self._starts[: count + 1]
        if self.asked.brute:
            launch(brute_crowd_kernel, items, [self.crowd, starts], self.device, grain=1)
        else:
            launch(meet_kernel, items, [self.crowd, self._frames, starts], self.device, grain=64)

    def _recorded(self) -> list[Step]:
        """All stages, on CUDA, none of which waits."""
        settle = Task(settle_crowd_kernel, UNKNOWN_COUNT, [self.crowd], self.device)
        return [
            ("boxes", self._forget.run),
            ("boxes", self._box.run),
            ("broad", self._broad.run),
            ("sort", lambda: self.queues.sort_objects(self.width)),
            *self._recorded_meet(),
            ("settle", settle.run),
        ]

    def _recorded_meet(self) -> list[Step]:
        queues, crowd, device = self.queues, self.crowd, self.device
        kind = BRUTE if self.asked.brute else DESCEND if self._stops or not self._lists else LIST
        args = [crowd, kind, self._frames, self._items]
        steps = [("frames", Task(frame_kernel, self.capacity, args, device).run)]
        if self._stops:
            args = [crowd, self._frames, self._items, self.asked.hurry, self.flags]
            return [*steps, ("search", Task(first_meet_kernel, self.capacity, args, device).run)]
        steps.append(("scan", self._scan))
        if self.asked.brute:
            task = Task(brute_crowd_kernel, UNKNOWN_COUNT, [crowd, self._starts], device)
            return [*steps, ("search", task.run)]
        if not self._lists:
            args = [crowd, self._frames, self._starts]
            return [*steps, ("search", Task(meet_kernel, UNKNOWN_COUNT, args, device).run)]
        args = [crowd, self._frames, self._starts, queues["candidates"], queues["skipped"]]
        threads = min(self.capacity << self.layout.bits_a, LISTING_THREADS)
        listing = Task(list_meet_kernel, UNKNOWN_COUNT, args, device, threads=threads)
        testing = Task(test_meet_kernel, UNKNOWN_COUNT, [crowd, queues["candidates"]], device)
        return [*steps, ("search", listing.run), ("classify", testing.run)]

    def _one_each(self, keys: Any, count: int) -> np.ndarray:
        """One key a meeting: of a pair the filter was sure of, else the lowest settled one."""
        best = self.crowd.best.numpy()[:count] if self._stops else np.full(count, NO_KEY)
        settled = lowest_of_each_pose(keys, self.layout)
        settled = settled[best[settled >> self.layout.width] == NO_KEY]
        return np.sort(np.concatenate([best[best != NO_KEY], settled]))
