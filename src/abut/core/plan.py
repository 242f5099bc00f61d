"""The executor: runs the stages of a query until all queues have room.

A query is a list of stages. Stages only append to queues, whose counts keep growing when they are
full, so that one run measures the capacity that the next one needs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import warp as wp

from abut.core.device import can_capture, note_cuda_thread
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import JoinedQueues, PairQueues
from abut.core.progress import Progress
from abut.core.timing import is_recording, stage

Stage = tuple[str, Callable[[], Any]]  # name for timers, function that launches it
Counts = dict[str, int]  # keys pushed to each queue

ONE_THREAD = 256  # items that one CPU thread finishes before a second one starts


class QueueLaunch:
    """A kernel over the keys that a queue holds when the launch runs.

    The kernel bounds its loop by the queue (``queue_stop``). On CUDA a fixed number of threads
    strides over the queue, so the host need not know the count. On the CPU the host reads it: an
    empty queue launches nothing and does not load the kernel.

    Args:
        kernel: Its first parameter is a span, see Task.
        queue: The PairQueue to run over.
        args: Arguments after the span.
        grain: Smallest number of items per CPU slice.
        per_key: Items of each key; the kernel bounds its loop by ``team_stop`` then.
        threads: CUDA threads; None takes the default of Task.
    """

    def __init__(
        self,
        kernel: wp.Kernel,
        queue: Any,
        args: Sequence[Any],
        *,
        grain: int = 64,
        per_key: int = 1,
        threads: int | None = None,
    ) -> None:
        self._kernel, self._queue, self._args = kernel, queue, args
        self._grain, self._per_key, self._threads = grain, per_key, threads
        self._device = queue.keys.device
        self._count = queue.count.numpy() if self._device.is_cpu else None
        if self._device.is_cuda:
            self._task  # noqa: B018  (record it now: stages are recorded before they are captured)

    @cached_property
    def _task(self) -> Task:
        options = {"grain": UNKNOWN_COUNT, "threads": self._threads}
        return Task(self._kernel, UNKNOWN_COUNT, self._args, self._device, **options)

    def run(self) -> None:
        """Launch the kernel, unless the host knows that the queue is empty."""
        if self._count is None:
            self._task.run()
            return
        count = min(int(self._count[0]), self._queue.keys.shape[0]) * self._per_key
        if count > ONE_THREAD:
            launch(self._kernel, count, self._args, self._device, grain=self._grain)
        elif count:
            self._task.run()


class Ranges:
    """Consecutive ranges of items, each as long as a bounded queue has room for its keys.

    Args:
        item_count: Items in all.
        queue: Name of the bounded queue.
        most: Keys it may hold, unless one item alone has more.
        density: Keys of an item, as expected.
    """

    FILL = 0.8  # share of the room that a range is planned to fill
    FASTEST = 8.0  # times as long as the last range

    def __init__(self, item_count: int, queue: str, most: int, density: float) -> None:
        self.item_count, self.queue, self.most, self.density = item_count, queue, most, density
        self.start = 0
        self._length = max(1, int(self.FILL * most / density))

    @property
    def size(self) -> int:
        """Items of the range, from ``start``; 0 when there are no more."""
        return min(self._length, self.item_count - self.start)

    @property
    def stop(self) -> int:
        """End of the range."""
        return self.start + self.size

    def divide(self, counts: Counts) -> bool:
        """Shorten a range whose keys are too many; False where they are not."""
        share = counts[self.queue] / self.most
        if share <= 1.0 or self.size == 1:
            return False
        self._length = max(1, int(self.size * self.FILL / share))
        return True

    def advance(self, counts: Counts) -> None:
        """Go on to the next range, whose length follows from the keys of this one."""
        share = counts[self.queue] / self.most
        self.density = max(counts[self.queue] / self.size, 1.0)
        self.start = self.stop
        growth = min(self.FILL / max(share, 1e-6), self.FASTEST)
        self._length = max(1, int(self._length * growth))


class Plan:
    """The stages of a query, recorded once and run many times.

    Args:
        queues: The queues that the stages fill.
        record: Makes the stages for the present queues. Called again after a queue was
            reallocated or after ``forget``.
        clear: Resets what stages accumulate; None empties all queues.
        needs: Takes the counts of a run and returns those that must fit their queues, or None to
            abandon the run. None: all must fit.
        accept: Receives the counts of a run that had room; if it returns False the stages run
            again. None accepts.
        read: Waits for the device and returns the counts, where a stage has sent them to the
            host; None reads them from the queues.
        graph: On CUDA, replay the stages as one graph once they ran unchanged. Every stage must
            be capturable: it neither waits for the device nor depends on a count the host reads.

    Attributes:
        skipped: Names of stages to leave out. Every such set has a graph of its own.
    """

    def __init__(
        self,
        queues: PairQueues | JoinedQueues,
        record: Callable[[], Iterable[Stage]],
        *,
        clear: Callable[[], Any] | None = None,
        needs: Callable[[Counts], Counts | None] | None = None,
        accept: Callable[[dict[str, int]], bool] | None = None,
        read: Callable[[], dict[str, int]] | None = None,
        graph: bool = False,
    ) -> None:
        self.queues, self.device = queues, queues.device
        self._record, self._clear, self._accept = record, clear or queues.clear, accept
        self._needs, self._read = needs, read or queues.read
        self._captures = graph and self.device.is_cuda
        self.skipped: frozenset[str] = frozenset()
        self.forget()

    def forget(self) -> None:
        """Record the stages anew before the next run."""
        self._generation = -1
        self._stages: list[Stage] = []
        self._graphs: dict[frozenset[str], Any] = {}  # None: these stages have run, uncaptured

    def run(
        self,
        meanwhile: Callable[[], bool] | None = None,
        *,
        times: int = 1,
        undo: Callable[[], Any] | None = None,
    ) -> dict[str, int] | None:
        """Run the stages until all had room; returns the counts of the queues.

        Args:
            meanwhile: Called while the device is busy, before anything grows. If it returns False
                the run is abandoned and the result is None.
            times: How often the stages run before the counts are read.
            undo: Restores the state that the stages change, before they run again for more room.
        """
        while True:
            counts = self._run(meanwhile, times)
            if counts is None or (not self.queues.grow(self._needed) and self._accepts(counts)):
                return counts
            if undo is not None:
                undo()

    def run_ranges(self, ranges: Ranges) -> list[Counts] | None:
        """Run the stages for range after range of items; the counts of each, None if abandoned.

        Stages find the items to handle in ``ranges``. ``accept`` keeps what is to survive the next
        range (``PairQueues.keep``).
        """
        done: list[Counts] = []
        with Progress() as progress:
            while ranges.size:
                progress.step(ranges.start / ranges.item_count, ranges.stop / ranges.item_count)
                counts = self._run(None, 1)
                if counts is None:
                    return None
                if ranges.divide(counts) or self.queues.grow(self._needed):
                    continue
                if self._accepts(counts):
                    ranges.advance(counts)
                    done.append(counts)
        return done

    def _accepts(self, counts: Counts) -> bool:
        return self._accept is None or self._accept(counts)

    def _run(self, meanwhile: Callable[[], bool] | None, times: int) -> dict[str, int] | None:
        if self._generation != self.queues.generation:
            self.forget()
            self._stages = list(self._record())
            self._generation = self.queues.generation
        if self.device.is_cuda:
            note_cuda_thread()
        for _ in range(times):
            self._launch()
        if meanwhile is not None and not meanwhile():
            return None
        counts = self._read()  # the one wait for the device
        needed = counts if self._needs is None else self._needs(counts)
        if needed is None:
            return None
        self._needed = needed
        return counts

    def _launch(self) -> None:
        """Run every stage; on CUDA, where it is allowed, from the second time on as one graph."""
        if not self._captures:
            self._launch_each()
            return
        replays = not is_recording()
        graph = self._graphs.get(self.skipped)
        if replays and self.skipped in self._graphs and graph is None and can_capture(self.device):
            with wp.ScopedCapture(self.device) as capture:
                self._launch_each()
            graph = self._graphs[self.skipped] = capture.graph
        if replays and graph is not None:
            wp.capture_launch(graph)
        else:
            self._launch_each()
            self._graphs.setdefault(self.skipped, None)

    def _launch_each(self) -> None:
        self._clear()
        timed = is_recording()
        for name, run in self._stages:
            if name in self.skipped:
                continue
            if timed:
                with stage(name, self.device):
                    run()
            else:
                run()
