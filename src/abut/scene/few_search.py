"""FewSearch: whether a few objects meet any of many others, a few native calls or one graph."""

from functools import cached_property
from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.broad.boxes import empty_boxes
from abut.broad.few_objects import (
    ANSWER_SIZE,
    MOST_FEW,
    QUESTION_SIZE,
    few_boxes_kernel,
    few_pairs_kernel,
    found_pair_kernel,
)
from abut.core.call import Call
from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import NO_KEY_INT, KeyLayout, PairQueue
from abut.core.team import TEAM_BLOCK
from abut.narrow.exact import EXACT_THREADS, exact_kernel_for
from abut.operands.contact_queues import ContactQueues
from abut.operands.posed_pairs import ScenePairs, WorkItems
from abut.scene.box_cache import BoxCache
from abut.scene.selection import Rows
from abut.traversal.overlap.descend import descend_kernel_for
from abut.traversal.overlap.kdop_frames import KdopFrames

MOST_PAIRS = 1024  # of objects; other searches take more
MOST_UNDECIDED = 256  # pairs of faces
OBJECTS, HITS, UNDECIDED, WITNESS = range(ANSWER_SIZE)


class FewSearch:
    """A few objects against others, until two of them meet.

    Args:
        box_cache: Boxes of the objects.
    """

    def __init__(self, box_cache: BoxCache) -> None:
        self.box_cache, self._device = box_cache, box_cache.device
        most = box_cache.objects.pool.arrays.most_faces
        self._layout = KeyLayout.of(most, most)
        self._question = wp.zeros(QUESTION_SIZE, dtype=wp.int32, device=self._device)
        self._answer = wp.zeros(ANSWER_SIZE, dtype=wp.int64, device=self._device)
        self._view = box_cache.view(self._queue(MOST_PAIRS, OBJECTS))

    def find(self, few: Rows, others: Any) -> int | None:
        """The key of two objects that meet, NO_KEY_INT where none do; None: ask another search.

        ``few`` and ``others`` as in ``BoxCache.ask``.
        """
        call = self._call
        self.box_cache.ask(self._items, few, others, False)
        call.run()
        count, _, undecided, witness = call.outputs[0].tolist()
        if witness != NO_KEY_INT:
            return witness
        if count > MOST_PAIRS or undecided > MOST_UNDECIDED:
            return None
        return self._exact_witness() if undecided else witness

    def _exact_witness(self) -> int:
        self._exact.run()
        answer, hits, pairs = self._exact.outputs
        if not answer[HITS]:
            return NO_KEY_INT
        return int(pairs[hits[0] >> self._layout.width])

    def _queue(self, size: int, slot: int) -> Any:
        """A queue whose count is an entry of the answer."""
        queue = PairQueue()
        queue.keys = wp.empty(size, dtype=wp.int64, device=self._device)
        queue.count = self._answer[slot : slot + 1]
        return queue

    @cached_property
    def _contacts(self) -> Any:
        out = ContactQueues()
        out.bits, out.best = self._layout.bits, wp.empty(MOST_PAIRS, wp.int64, self._device)
        out.hits = self._queue(MOST_UNDECIDED, HITS)
        out.undecided = self._queue(MOST_UNDECIDED, UNDECIDED)
        return out

    @cached_property
    def _call(self) -> Call:
        """Boxes of what has moved, pairs of objects, and a descent until two faces meet."""
        device, view, out = self._device, self._view, self._contacts
        box_cache = self.box_cache
        flags = wp.zeros(2, dtype=wp.int32, device=device)  # a contact was found; items taken
        few = empty_boxes(MOST_FEW, 1, device)
        args = [view, wp.float64(0.0), self._question, box_cache.boxes, few]
        args += [self._answer, out.best, flags]
        tasks = [Task(few_boxes_kernel, MOST_PAIRS, args, device)]
        args = [view, box_cache.boxes, few, box_cache.filters, False, self._question]
        args += [box_cache.others, view.object_pairs]
        tasks.append(Task(few_pairs_kernel, len(box_cache.objects), args, device, grain=8192))
        tasks.append(self._descent(flags))
        args = [view.object_pairs, out.best, self._answer]
        tasks.append(Task(found_pair_kernel, MOST_PAIRS, args, device))
        return Call(tasks, [self._question], [self._answer])

    @cached_property
    def _items(self) -> memoryview:
        """The question."""
        return self._call.inputs[0].data

    def _descent(self, flags: wp.array) -> Task:
        device, items = self._device, WorkItems()
        items.each, items.leaves = 1, 1
        args = [self._view, wp.empty(0, RelativeFrame, device), items, False, KdopFrames()]
        args += [flags[1:], self._contacts, flags[:1]]
        kernel = descend_kernel_for(ScenePairs, False, False, True, device.is_cuda)
        options = {"threads": WARP_SIZE * MOST_PAIRS, "block": TEAM_BLOCK} if device.is_cuda else {}
        return Task(kernel, UNKNOWN_COUNT, args, device, grain=UNKNOWN_COUNT, **options)

    @cached_property
    def _exact(self) -> Call:
        """The exact stage of the undecided pairs of faces."""
        out, kernel = self._contacts, exact_kernel_for(ScenePairs)
        options = {"grain": UNKNOWN_COUNT, "threads": EXACT_THREADS}
        stage = Task(kernel, UNKNOWN_COUNT, [self._view, out], self._device, **options)
        return Call([stage], [], [self._answer, out.hits.keys, self._view.object_pairs.keys])
