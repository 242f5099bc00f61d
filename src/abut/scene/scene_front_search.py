"""FrontSearch: contacts of a scene, found from where the last search stopped."""

from collections.abc import Iterator
from typing import Any

import warp as wp

from abut.core.cache import RecentCache
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.plan import Stage
from abut.core.timing import stage
from abut.narrow.filter import filter_kernel_for
from abut.operands.posed_pairs import ScenePairs
from abut.query.contact_stages import ContactStages, Strategy
from abut.scene import fronts
from abut.scene.contact_search import ContactSearch
from abut.scene.fronts import LEFT, SceneFronts
from abut.traversal.front import WIDE, Moved
from abut.traversal.meeting_fronts import (
    Fronts,
    adopt_kernel,
    advance_meetings_kernel,
    begin_fronts_kernel,
    keep_rows_kernel,
)

THREADS, FEW_THREADS = 1 << 16, 1 << 14  # of fronts and of rounds, on CUDA: each clears a stack
GRAIN = 1024


class FrontSearch(ContactSearch):
    """A contact search that moves fronts in place of walking down from the roots.

    Args:
        scene: Arguments of ContactSearch.
        fronts: Where they are; moved and turned by a run that finds room for everything.
    """

    def __init__(self, *scene: Any, fronts: SceneFronts) -> None:
        self.fronts = fronts
        self._tasks = RecentCache()
        super().__init__(*scene)
        self._resting = wp.zeros(self.capacity, dtype=wp.int32, device=self.device)

    def run(self) -> dict[str, int] | None:
        """Search; None where a queue had no room, or where there are no fronts any more."""
        held = self.fronts
        if not held.room_for(self.capacity):
            held.give_up()
            return None
        counts = super().run()
        moved = held.queues.read()
        size = moved[held.names[1]]
        if size > fronts.MOST_PAIRS:
            held.give_up()
            return None
        if held.queues.grow(moved) or counts is None:
            return None
        held.turn(size, self.rows.view.poses, self.queues["hits"].keys[: counts["hits"]])
        return counts

    def _clear(self) -> None:
        super()._clear()
        if self.device.is_cpu:
            self._launch(*self._begin())

    def _contact_stages(self) -> Iterator[Stage]:
        yield "front", self._run_recorded if self.device.is_cuda else self._run_here
        exact = ContactStages(self.rows, self.queues, self.out, Strategy.BRUTE)
        yield exact.exact()

    def _run_here(self) -> None:
        for name, kernel, items, args in self._front_stages():
            with stage(name, self.device):
                self._launch(kernel, items or self.rows.count, args)

    def _launch(self, kernel: wp.Kernel, items: str | int, args: list[Any]) -> None:
        """Over so many items, or over those of a queue."""
        if isinstance(items, str):
            queues = self.fronts.queues
            items = min(queues.read()[items], queues[items].keys.shape[0])
        launch(kernel, items, args, self.device, grain=GRAIN)

    def _run_recorded(self) -> None:
        held = self.fronts
        about = (held.steps % 2, int(held.climbs), held.queues, held.queues.generation)
        about = (*about, len(held.left), held.changes, held.ranges)

        def make() -> list[Task]:
            stages = [self._begin(), *(about for _, *about in self._front_stages())]
            return [self._recorded_task(*about) for about in stages]

        for task in self._tasks.get(about, make):
            task.run()

    def _recorded_task(self, kernel: wp.Kernel, items: str | int, args: list[Any]) -> Task:
        count = UNKNOWN_COUNT if isinstance(items, str) else items or self.capacity
        threads = None
        if kernel is advance_meetings_kernel:
            threads = FEW_THREADS if items in LEFT else THREADS
        return Task(kernel, count, args, self.device, threads=threads)

    def _begin(self) -> tuple[wp.Kernel, int, list[Any]]:
        """Kernel, items and arguments of the launch that empties queues."""
        held = self.fronts
        args = [fronts.QUEUES.index(held.names[0]), held.ranks, held.queues.counts]
        return begin_fronts_kernel, max(held.ranks.shape[0], len(fronts.QUEUES)), args

    def _front_stages(self) -> Iterator[tuple[str, wp.Kernel, str | int, list[Any]]]:
        """(name, kernel, the queue it runs over or 0 for all meetings, arguments) of launches."""
        held, queues, crowd = self.fronts, self.fronts.queues, self.crowd
        here, there = held.names
        view = Fronts()
        view.ranges, view.slot_bits, view.ranks = held.ranges, held.layout.bits, held.ranks
        view.frames, view.resting = self._frames, self._resting
        args = [crowd, queues[f"{here}_met"], held.changes, held.poses, view]
        left = held.left
        yield "adopt", adopt_kernel, 0, [*args, queues[f"{there}_met"], queues[left[0]]]
        yield "adopt", keep_rows_kernel, "rows", [crowd, view, queues["rows"]]
        for k, source in enumerate((here, *left)):
            last = source == left[-1]
            moved = Moved()
            moved.kept, moved.found = queues[there], queues["faces"]
            moved.left = queues[source if last else left[k]]
            most, climbs = UNKNOWN_COUNT if last else int(WIDE), held.climbs and k == 0
            args = [crowd, view, queues[source], k == 0, most, climbs, moved]
            yield "front", advance_meetings_kernel, source, args
        args = [self.rows.view, queues["faces"], self.out]
        yield "filter", filter_kernel_for(ScenePairs), "faces", args
