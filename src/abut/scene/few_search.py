"""FewSearch: whether a few objects meet any of many others, a few native calls or one graph."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.broad.boxes import empty_boxes, object_box_kernel
from abut.broad.few_objects import (
    ANSWER_SIZE,
    FEW,
    MOST_FEW,
    MOVED,
    QUESTION_SIZE,
    few_pairs_kernel,
    found_pair_kernel,
    moved_boxes_kernel,
)
from abut.broad.phase import object_layout
from abut.core.call import Call
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import NO_KEY_INT, KeyLayout, PairQueue, PairQueues
from abut.core.team import TEAM_BLOCK, TEAM_GRID
from abut.narrow.exact import EXACT_THREADS, exact_kernel_for
from abut.operands.contact_queues import ContactQueues
from abut.operands.posed_pairs import ScenePairs, WorkItems
from abut.scene.objects import ObjectTable
from abut.scene.selection import Part
from abut.traversal.overlap.descend import descend_kernel_for
from abut.traversal.overlap.kdop_frames import KdopFrames

MOST_PAIRS = 1024  # of objects; other searches take more
MOST_UNDECIDED = 256  # pairs of faces
OBJECTS, HITS, UNDECIDED, WITNESS = range(ANSWER_SIZE)


class FewSearch:
    """A few objects against others of a table whose boxes are kept.

    Only boxes of objects that have moved are computed again. Poses must be known to be rigid.

    Args:
        objects: The objects.
        queues: Queues of the scene, for a pass over all boxes.
        poses: Their poses.
    """

    def __init__(
        self, objects: ObjectTable, queues: PairQueues, poses: wp.array, environments: int
    ) -> None:
        self.broad, self.device, self._objects = self, objects.device, objects
        self._queues, self._poses = queues, poses
        self._generation = objects.pool.arrays.generation
        self.object_layout = object_layout(max(len(objects), 1), environments)
        most = objects.pool.arrays.most_faces
        self.layout = KeyLayout.of(most, most)
        self.boxes = empty_boxes(len(objects), 1, self.device)
        self._filters = objects.filters()
        self._shapes = wp.array(objects.shapes, dtype=wp.int32, device=self.device)
        self._question = wp.zeros(QUESTION_SIZE, dtype=wp.int32, device=self.device)
        self._answer = wp.zeros(ANSWER_SIZE, dtype=wp.int64, device=self.device)
        self._others = wp.empty(len(objects), dtype=wp.int32, device=self.device)
        self._listed: np.ndarray | None = None  # the others there
        self._version: tuple[int, int] | None = None  # for which there are boxes
        self._moves = 0  # that the boxes have followed

    def follow(self, part: Part) -> None:
        """Take over shapes and filters of as many objects, and all boxes where shapes changed."""
        objects = part.objects
        version = (objects.version, objects.pool.version)
        if version == self._version:
            return
        new = objects.filters()
        wp.copy(self._filters.about, new.about)
        if new.ignored.shape[0]:
            wp.copy(self._filters.ignored, new.ignored)
        self._shapes.assign(objects.shapes)
        self._all_boxes.run()
        self._version, self._moves = version, objects.moves.count

    def serves(self, part: Part) -> bool:
        """Whether nothing but poses has changed since ``follow``."""
        objects = part.objects
        if objects is not self._objects or objects.poses is not self._poses:
            return False
        known = self._version == (objects.version, objects.pool.version)
        return known and self._generation == objects.pool.arrays.generation

    def find(self, few: Any, others: tuple[int, int] | np.ndarray) -> int | None:
        """The key of two objects that meet, NO_KEY_INT where none do; None: ask another search.

        Args:
            few: Rows of objects, at most MOST_FEW.
            others: First row and number of those they may meet; or their rows.
        """
        moved = self._objects.moves.since(self._moves)
        if moved is None or len(moved) > MOST_FEW:
            self._all_boxes.run()
            moved = ()
        self._moves = self._objects.moves.count
        self._ask(few, others, moved)
        self._call.run()
        count, _, undecided, witness = self._call.outputs[0].tolist()
        if witness != NO_KEY_INT:
            return witness
        if count > MOST_PAIRS or undecided > MOST_UNDECIDED:
            return None
        return self._exact_witness() if undecided else witness

    def _ask(self, few: Any, others: Any, moved: Sequence[int]) -> None:
        if isinstance(others, np.ndarray):
            if self._listed is None or not np.array_equal(others, self._listed):
                self._others[: len(others)].assign(others.astype(np.int32))
                self._listed = others
            others = (-1, len(others))
        question = self._call.inputs[0]
        question[:4] = len(few), others[1], len(moved), others[0]
        question[int(FEW) : int(FEW) + len(few)] = few
        question[int(MOVED) : int(MOVED) + len(moved)] = moved

    def _exact_witness(self) -> int:
        self._exact.run()
        answer, hits, pairs = self._exact.outputs
        if not answer[HITS]:
            return NO_KEY_INT
        return int(pairs[hits[0] >> self.layout.width])

    @cached_property
    def _view(self) -> Any:
        view = ScenePairs()
        view.bvhs, view.mesh = self._objects.pool.arrays.bvhs, self._shapes
        view.poses, view.object_count = self._poses, len(self._objects)
        view.object_pairs, view.object_bits = PairQueue(), self.object_layout.bits
        view.object_pairs.keys = wp.empty(MOST_PAIRS, dtype=wp.int64, device=self.device)
        view.object_pairs.count = self._answer[OBJECTS : OBJECTS + 1]
        return view

    @cached_property
    def _all_boxes(self) -> Task:
        """Compute all boxes; poses that are not rigid are listed, and refused elsewhere."""
        bad, unused = self._queues["bad"], PairQueue()
        args = [self._view, wp.float64(0.0), False, self._filters, self.boxes, bad, unused]
        return Task(object_box_kernel, len(self._objects), args, self.device, grain=1024)

    @cached_property
    def _contacts(self) -> Any:
        out = ContactQueues()
        out.bits, out.best = self.layout.bits, wp.empty(MOST_PAIRS, wp.int64, device=self.device)
        for name, slot, size in (("hits", HITS, MOST_UNDECIDED), ("undecided", UNDECIDED, None)):
            queue = PairQueue()
            queue.keys = wp.empty(size or MOST_UNDECIDED, dtype=wp.int64, device=self.device)
            queue.count = self._answer[slot : slot + 1]
            setattr(out, name, queue)
        return out

    @cached_property
    def _call(self) -> Call:
        """Boxes of what has moved, pairs of objects, and a descent until two faces meet."""
        device, view, out = self.device, self._view, self._contacts
        flags = wp.zeros(2, dtype=wp.int32, device=device)  # a contact was found; items taken
        args = [view, self._question, self.boxes, self._answer, out.best, flags]
        tasks = [Task(moved_boxes_kernel, MOST_PAIRS, args, device)]
        args = [self.boxes, self._filters, view.object_bits, self._question, self._others]
        count = len(self._objects)
        tasks.append(Task(few_pairs_kernel, count, [*args, view.object_pairs], device, grain=8192))
        items, frames = WorkItems(), wp.empty(0, RelativeFrame, device)
        items.each, items.leaves = 1, 1
        args = [view, frames, items, False, KdopFrames(), flags[1:], out, flags[:1]]
        kernel = descend_kernel_for(ScenePairs, False, False, True, device.is_cuda)
        options = {"threads": TEAM_GRID, "block": TEAM_BLOCK} if device.is_cuda else {}
        tasks.append(Task(kernel, UNKNOWN_COUNT, args, device, grain=UNKNOWN_COUNT, **options))
        args = [view.object_pairs, out.best, self._answer]
        tasks.append(Task(found_pair_kernel, MOST_PAIRS, args, device))
        return Call(tasks, [self._question], [self._answer])

    @cached_property
    def _exact(self) -> Call:
        """The exact stage of the undecided pairs of faces."""
        out, kernel = self._contacts, exact_kernel_for(ScenePairs)
        options = {"grain": UNKNOWN_COUNT, "threads": EXACT_THREADS}
        stage = Task(kernel, UNKNOWN_COUNT, [self._view, out], self.device, **options)
        return Call([stage], [], [self._answer, out.hits.keys, self._view.object_pairs.keys])
