"""BoxCache: boxes of all objects of a scene; only those of objects that have moved are computed."""

from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import empty_boxes, object_box_kernel
from abut.broad.few_objects import (
    AMONG_OTHERS,
    FEW,
    FEW_COUNT,
    FEW_LAST,
    FIRST_OTHER,
    MOST_FEW,
    MOVED,
    MOVED_COUNT,
    OTHER_COUNT,
    QUESTION_SIZE,
    few_boxes_kernel,
    few_pairs_kernel,
)
from abut.broad.phase import object_layout
from abut.core.call import Call
from abut.core.launch import Task
from abut.core.pair_queue import PairQueue, PairQueues
from abut.operands.posed_pairs import ScenePairs
from abut.scene.objects import ObjectTable
from abut.scene.selection import Part, Rows


class BoxCache:
    """Boxes and filters of objects where they are. Poses must be known to be rigid.

    Args:
        objects: The objects.
        queues: Queues of the scene.
        poses: Poses of the objects.

    Attributes:
        boxes: The boxes, after ``moved`` and a launch that computes the boxes of what it returns.
        filters: The filters, for all roles.
        others: Rows that the last question has listed.
    """

    def __init__(
        self, objects: ObjectTable, queues: PairQueues, poses: wp.array, environments: int = 1
    ) -> None:
        self.broad, self.device, self.objects, self.poses = self, objects.device, objects, poses
        self._queues, self._generation = queues, objects.pool.arrays.generation
        self.boxes = empty_boxes(len(objects), environments, self.device)
        self.filters = objects.filters()
        self.shapes = wp.array(objects.shapes, dtype=wp.int32, device=self.device)
        self.others = wp.empty(len(objects), dtype=wp.int32, device=self.device)
        self._listed: np.ndarray | None = None
        self._version: tuple[int, int] | None = None  # for which there are boxes
        self._moves = 0  # that the boxes have followed

    def serves(self, part: Part) -> bool:
        """Whether nothing but poses has changed since ``follow``."""
        objects = part.objects
        if objects is not self.objects or objects.poses is not self.poses:
            return False
        known = self._version == (objects.version, objects.pool.version)
        return known and self._generation == objects.pool.arrays.generation

    def follow(self, part: Part) -> None:
        """Take over shapes and filters of as many objects, and all boxes where shapes changed."""
        objects = part.objects
        version = (objects.version, objects.pool.version)
        if version == self._version:
            return
        new = objects.filters()
        wp.copy(self.filters.about, new.about)
        if new.ignored.shape[0]:
            wp.copy(self.filters.ignored, new.ignored)
        self.shapes.assign(objects.shapes)
        self._all_boxes.run()
        self._version, self._moves = version, objects.moves.count

    def update(self, every: bool = False) -> None:
        """Compute the boxes of objects that have moved, or of all."""
        if every:
            self.moved()
            self._all_boxes.run()
            return
        rows = self.moved()
        if rows:
            call = self._moving
            host = call.inputs[0]
            host[FEW_COUNT], host[OTHER_COUNT], host[MOVED_COUNT] = 0, 0, len(rows)
            host[MOVED : MOVED + len(rows)] = rows
            call.run()

    def moved(self) -> list[int]:
        """Rows whose boxes the caller has to compute; where there are many, none is left."""
        rows = self.objects.moves.since(self._moves)
        self._moves = self.objects.moves.count
        if rows is None or len(rows) > MOST_FEW:
            self._all_boxes.run()
            return []
        return rows

    def ask(self, question: memoryview, few: Rows, others: Any, few_last: bool) -> None:
        """Write a question (see few_objects) about a few rows and others, which are listed.

        Args:
            question: Receives it, as int32.
            few: Rows of objects, at most MOST_FEW.
            others: First row and number of those they may meet; or their rows.
            few_last: The few are those of ``against``.
        """
        moved, few = self.moved(), few.tolist() if isinstance(few, np.ndarray) else few
        if isinstance(others, tuple):
            first, size = others
            among: Any = [first <= row < first + size for row in few]
        else:
            first, size, among = -1, len(others), np.isin(few, others).tolist()
            self._list(others)
        # An item of a memoryview is written several times faster than one of an array.
        question[FEW_COUNT], question[OTHER_COUNT] = len(few), size
        question[MOVED_COUNT], question[FIRST_OTHER], question[FEW_LAST] = (
            len(moved),
            first,
            few_last,
        )
        for k, row in enumerate(few):
            question[FEW + k], question[AMONG_OTHERS + k] = row, among[k]
        for k, row in enumerate(moved, MOVED):
            question[k] = row

    def view(self, object_pairs: Any) -> Any:
        """ScenePairs of the objects, with pairs of them in a queue."""
        view = ScenePairs()
        view.bvhs, view.mesh = self.objects.pool.arrays.bvhs, self.shapes
        view.poses, view.object_count = self.poses, len(self.objects)
        view.object_pairs = object_pairs
        view.object_bits = object_layout(max(len(self.objects), 1), 1).bits
        return view

    def _list(self, others: np.ndarray) -> None:
        if self._listed is None or not np.array_equal(others, self._listed):
            if len(others):
                rows = wp.array(others, dtype=wp.int32, device=self.device)
                wp.copy(self.others, rows, count=len(others))
            self._listed = others

    @cached_property
    def _moving(self) -> Call:
        """Compute the boxes of objects that a question lists."""
        question = wp.zeros(QUESTION_SIZE, dtype=wp.int32, device=self.device)
        nothing, done = wp.empty(0, wp.int64, self.device), wp.zeros(1, wp.int64, self.device)
        flags, view = wp.empty(0, wp.int32, self.device), self.view(PairQueue())
        args = [view, wp.float64(0.0), question, self.boxes, empty_boxes(1, 1, self.device)]
        args += [done, nothing, flags]
        return Call([Task(few_boxes_kernel, MOST_FEW, args, self.device)], [question], [done])

    @cached_property
    def _all_boxes(self) -> Task:
        """Compute all boxes."""
        unused = PairQueue()
        args = [self.view(unused), wp.float64(0.0), False, self.filters, self.boxes]
        args += [self._queues["bad"], unused]  # no pose is bad
        return Task(object_box_kernel, len(self.objects), args, self.device, grain=1024)


class FewPairs:
    """Lists pairs of a few objects and others for a search, in place of a broad phase.

    Args:
        box_cache: Boxes of the objects.
        view: ScenePairs of the search.
        margin: How far apart objects may be.
        own: Also objects with themselves.
    """

    def __init__(self, box_cache: BoxCache, view: Any, margin: float, own: bool) -> None:
        self._box_cache, device = box_cache, box_cache.device
        self._question = wp.zeros(QUESTION_SIZE, dtype=wp.int32, device=device)
        self._host = self._question
        if device.is_cuda:
            self._host = wp.zeros(QUESTION_SIZE, dtype=wp.int32, device="cpu", pinned=True)
        self._items = self._host.numpy().data
        few, nothing = empty_boxes(MOST_FEW, 1, device), wp.empty(0, wp.int64, device)
        flags = wp.empty(0, wp.int32, device)
        boxes, others = box_cache.boxes, box_cache.others
        args = [view, wp.float64(margin), self._question, boxes, few, nothing, nothing, flags]
        self._boxes = Task(few_boxes_kernel, MOST_FEW, args, device)
        args = [view, boxes, few, box_cache.filters, own, self._question, others]
        args.append(view.object_pairs)
        self._pairs = Task(few_pairs_kernel, len(box_cache.objects), args, device, grain=8192)

    def boxes(self, part: Part) -> None:
        """Ask about a part, and compute the boxes of its few objects and of what has moved."""
        few, others = part.sides
        self._box_cache.ask(self._items, few, others, part.few_last)
        if self._host is not self._question:
            wp.copy(self._question, self._host)
        self._boxes.run()

    def pairs(self) -> None:
        """List the pairs."""
        self._pairs.run()
