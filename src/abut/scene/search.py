"""SceneSearch and ContactSearch: the stages of a contact query of a whole scene."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative import Relative
from abut.broad.boxes import empty_boxes, make_filters
from abut.broad.phase import BroadPhase, object_layout
from abut.broad.posed import box_kernel, forget_kernel
from abut.crowd import Crowd
from abut.errors import CapacityError, PoseError
from abut.geometry.common_corners import WELDED
from abut.narrow.settle_crowd import settle_crowd_kernel
from abut.options import BroadMethod
from abut.pairs import KeyLayout
from abut.runtime import EVERYTHING, Task, launch, stage
from abut.scene.objects import Objects
from abut.scene.pool import Pool
from abut.scene.queues import SceneQueues
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
from abut.traversal.two_trees import NO_KEY

LISTS = ("objects", "found", "large")
EVERYWHERE = 1e30  # a margin at which all boxes overlap


@dataclass(frozen=True)
class Asked:
    """What a contact query wants to know.

    Attributes:
        own: Also faces of one object.
        first: One pair of faces for each pair of objects.
        hurry: Only which copies of the scene have any contact.
        brute: Every pair of faces of every pair of objects that may meet.
        broad: How pairs of objects are found.
    """

    own: bool = False
    first: bool = False
    hurry: bool = False
    brute: bool = False
    broad: BroadMethod | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Numbers that tell queries apart."""
        flags = (self.own, self.first, self.hurry, self.brute)
        broad = 0 if self.broad is None else 1 + list(BroadMethod).index(self.broad)
        return sum(flag << k for k, flag in enumerate(flags)), broad


@dataclass
class Found:
    """Sorted keys: of meetings, and of faces (rank of the meeting, a, b)."""

    meetings: Any
    keys: Any
    layout: KeyLayout
    objects: KeyLayout
    colliding: np.ndarray | None = None
    crowd: Any = field(default=None, repr=False)


class SceneSearch:
    """What every search of a scene begins with, prepared for a scene as it is: boxes and pairs.

    Args:
        pool, objects, queues: The scene.
        poses: Of all objects of all copies.
        copies: Copies of the scene.
        own: Also list each object and itself.
        margin: How much boxes are larger than what they hold.
        broad: How pairs of objects are found.
    """

    def __init__(
        self,
        pool: Pool,
        objects: Objects,
        queues: SceneQueues,
        poses: wp.array,
        copies: int = 1,
        *,
        own: bool = False,
        margin: float = 0.0,
        broad: BroadMethod | None = None,
    ) -> None:
        self.device, self.queues, self.copies = pool.device, queues, copies
        self.layout = KeyLayout.of(pool.most_faces, pool.most_faces)
        self.objects = object_layout(max(len(objects), 1), copies)
        self.width = self.objects.width + max(copies - 1, 0).bit_length()
        self.total = len(objects) * copies
        self.capacity = queues["objects"].keys.shape[0]
        if self.capacity >= 1 << (62 - self.layout.width):
            raise CapacityError("the scene has too many pairs of objects for meshes of this size.")
        self.crowd = self._make_crowd(pool, objects, poses)
        self.boxes = empty_boxes(len(objects), copies, self.device)
        about = (objects.static, objects.group, objects.mask, objects.ignored)
        self.filters = make_filters(*about, self.device)
        self._version = objects.version
        args = [self.crowd, wp.float64(margin), own, self.boxes, queues["bad"], queues["objects"]]
        self._box = Task(box_kernel, self.total, args, self.device, grain=1024)
        self._broad = BroadPhase(self.boxes, self.filters, queues, copies, broad)
        self.flags = wp.zeros(copies, dtype=wp.int32, device=self.device)
        self._frames = wp.empty(self.capacity, dtype=Relative, device=self.device)
        self._items = wp.zeros(self.capacity + 1, dtype=wp.int32, device=self.device)
        self._starts = wp.zeros_like(self._items)

    def follow(self, objects: Objects) -> None:
        """Take over who the objects are now: as many as before, with as many ignored pairs."""
        if self._version == objects.version:
            return
        self._version = objects.version
        if len(objects):
            about = (objects.static, objects.group, objects.mask, objects.ignored)
            new = make_filters(*about, self.device)
            wp.copy(self.filters.about, new.about)
            if new.ignored.shape[0]:
                wp.copy(self.filters.ignored, new.ignored)
            self.crowd.body.assign(objects.body)

    def _make_crowd(self, pool: Pool, objects: Objects, poses: wp.array) -> Any:
        crowd = Crowd()
        crowd.forest = pool.forest
        crowd.body = wp.array(objects.body, dtype=wp.int32, device=self.device)
        crowd.poses, crowd.object_count = poses, len(objects)
        crowd.meetings, crowd.object_bits = self.queues["objects"], self.objects.bits
        crowd.relation, crowd.bits = WELDED, self.layout.bits
        crowd.hits, crowd.undecided = self.queues["hits"], self.queues["undecided"]
        return crowd

    @cached_property
    def _forget(self) -> Task:
        """Begins anew."""
        nothing = wp.empty(0, dtype=wp.int64, device=self.device)
        best = self.crowd.best if self.crowd.best is not None else nothing
        args = [wp.int64(1 << self.width), self.boxes, self.queues.counts]
        args += [self.queues["objects"].keys if self.device.is_cuda else nothing, best, self.flags]
        count = max(self.capacity if self.device.is_cuda else len(self.queues.queues), 6)
        count = max(count, best.shape[0], self.flags.shape[0])
        return Task(forget_kernel, count, args, self.device, grain=1 << 16)

    def _list_meetings(self) -> int | None:
        """List and sort the pairs of objects; how many, or None where they found no room."""
        with stage("boxes", self.device):
            self._box.run()
        with stage("broad", self.device):
            self._find_pairs()
            counts = self.queues.read()
            if max(counts[name] - self.queues[name].keys.shape[0] for name in LISTS) > 0:
                return None
            self.queues.sort_objects(self.width, counts["objects"])
        return counts["objects"]

    def _find_pairs(self) -> None:
        self._broad.run()

    def _settle(self) -> None:
        """Decide the undecided pairs exactly, if there are any."""
        with stage("settle", self.device):
            count = self.queues.read()["undecided"]
            count = min(count, self.queues["undecided"].keys.shape[0])
            if count:
                launch(settle_crowd_kernel, count, [self.crowd], self.device, grain=64)

    def _begin_items(self, count: int) -> int:
        """Where the items of each meeting begin; how many there are in all."""
        if self.device.is_cpu:
            np.cumsum(self._items.numpy()[:count], out=self._starts.numpy()[1 : count + 1])
            return int(self._starts.numpy()[count])
        self._scan()
        return EVERYTHING

    def _scan(self) -> None:
        wp.utils.array_scan(self._items, self._starts, inclusive=False)

    def _require_rigid(self, counts: dict[str, int]) -> None:
        """Refuse poses that are no rigid motions; the lowest is named where all found room."""
        if counts["bad"]:
            held = min(counts["bad"], self.queues["bad"].keys.shape[0])
            bad = int(self.queues["bad"].keys[:held].numpy().min())
            copy, row = divmod(bad, max(self.crowd.object_count, 1))
            where = f" in copy {copy}" if self.copies > 1 else ""
            raise PoseError(f"the pose of object {row}{where} is not a rigid motion.")


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
        counts = self.queues.read()  # the one wait for the device
        self._require_rigid(counts)
        if counts.pop("skipped", 0):
            self._lists = False
            self._cuda_steps = self._recorded()
            return None
        return None if self.queues.make_room(counts) else counts

    def found(self, counts: dict[str, int]) -> Found:
        """What a run has found."""
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
        return Found(meetings, keys, self.layout, self.objects, colliding, self.crowd)

    def _run_here(self) -> None:
        """All stages, on the CPU, where counts are at hand."""
        self._forget.run()
        count = self._list_meetings()
        if not count:
            return
        with stage("frames", self.device):
            args = [self.crowd, BRUTE if self.asked.brute else DESCEND, self._frames, self._items]
            launch(frame_kernel, count, args, self.device, grain=1024)
        with stage("search", self.device):
            self._search_here(count)
        self._settle()

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

    def _recorded(self) -> list[tuple[str, Callable[[], None]]]:
        """All stages, on CUDA, none of which waits."""
        kind = BRUTE if self.asked.brute else DESCEND if self._stops or not self._lists else LIST
        args = [self.crowd, kind, self._frames, self._items]
        frames = Task(frame_kernel, self.capacity, args, self.device)
        settle = Task(settle_crowd_kernel, EVERYTHING, [self.crowd], self.device)
        return [
            ("boxes", self._forget.run),
            ("boxes", self._box.run),
            ("broad", self._broad.run),
            ("sort", lambda: self.queues.sort_objects(self.width)),
            ("frames", frames.run),
            *self._recorded_search(),
            ("settle", settle.run),
        ]

    def _recorded_search(self) -> list[tuple[str, Callable[[], None]]]:
        queues, crowd, device = self.queues, self.crowd, self.device
        if self._stops:
            args = [crowd, self._frames, self._items, self.asked.hurry, self.flags]
            return [("search", Task(first_meet_kernel, self.capacity, args, device).run)]
        scan = ("scan", self._scan)
        if self.asked.brute:
            task = Task(brute_crowd_kernel, EVERYTHING, [crowd, self._starts], device)
            return [scan, ("search", task.run)]
        if not self._lists:
            args = [crowd, self._frames, self._starts]
            return [scan, ("search", Task(meet_kernel, EVERYTHING, args, device).run)]
        args = [crowd, self._frames, self._starts, queues["candidates"], queues["skipped"]]
        listing = Task(list_meet_kernel, EVERYTHING, args, device)
        testing = Task(test_meet_kernel, EVERYTHING, [crowd, queues["candidates"]], device)
        return [scan, ("search", listing.run), ("classify", testing.run)]

    def _one_each(self, keys: Any, count: int) -> np.ndarray:
        """One key a meeting: of a pair the filter was sure of, else the lowest settled one."""
        best = self.crowd.best.numpy()[:count] if self._stops else np.full(count, NO_KEY)
        host = keys if isinstance(keys, np.ndarray) else keys.numpy()
        ranks = host >> self.layout.width
        host = host[np.diff(ranks, prepend=-1) != 0]
        host = host[best[host >> self.layout.width] == NO_KEY]
        return np.sort(np.concatenate([best[best != NO_KEY], host]))
