"""The executor: runs the stages of a query until everything it found had room.

A query is a list of stages. Stages only ever append to queues whose counts go on growing when they
are full, so one run says how much room is needed and the next one has it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import warp as wp

from abut.core.device import can_capture
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import PairQueues
from abut.core.timing import is_recording, stage

Stage = tuple[str, Callable[[], Any]]  # a name for timers, and what launches it

ONE_THREAD = 256  # keys: one CPU thread handles them before a second one has begun


class QueueLaunch:
    """A kernel over the keys that a queue holds when its turn comes.

    The kernel bounds its loop by the queue (``queue_stop``). On CUDA a fixed number of threads
    strides over the queue, so the host need not know the count. On the CPU the count is at hand:
    an empty queue launches nothing, and does not even load the kernel.

    Args:
        kernel: Its first parameter is a span, see Task.
        queue: The PairQueue to run over.
        args: Arguments after the span.
        grain: Items that are worth a CPU thread of their own.
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
        """Launch it, unless the host sees that there is nothing to do."""
        if self._count is None:
            self._task.run()
            return
        count = min(int(self._count[0]), self._queue.keys.shape[0]) * self._per_key
        if count > ONE_THREAD:
            launch(self._kernel, count, self._args, self._device, grain=self._grain)
        elif count:
            self._task.run()


class Plan:
    """The stages of a query, recorded once and run many times.

    Args:
        queues: What the stages fill.
        record: Makes the stages for the queues as they are now. Called again when a queue has
            moved because it grew, or after ``forget``.
        clear: Resets what stages accumulate; None empties all queues.
        accept: Takes the counts of a run that had room; False runs everything again, after the
            caller has changed what it did not like. None accepts.
        read: Waits for the device and returns the counts, where a stage has sent them to the
            host; None reads them from the queues.
        graph: On CUDA, replay the stages as one graph once they ran unchanged. Every stage must
            be capturable: it neither waits for the device nor depends on a count the host reads.

    Attributes:
        skipped: Names of stages to leave out. Every such set has a graph of its own.
    """

    def __init__(
        self,
        queues: PairQueues,
        record: Callable[[], Iterable[Stage]],
        *,
        clear: Callable[[], Any] | None = None,
        accept: Callable[[dict[str, int]], bool] | None = None,
        read: Callable[[], dict[str, int]] | None = None,
        graph: bool = False,
    ) -> None:
        self.queues, self.device = queues, queues.device
        self._record, self._clear, self._accept = record, clear or queues.clear, accept
        self._read = read or queues.read
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
            if counts is None or not self.queues.grow(counts):
                if counts is None or self._accept is None or self._accept(counts):
                    return counts
            if undo is not None:
                undo()

    def run_once(self) -> dict[str, int] | None:
        """``run``, but None where a queue had to grow and what was recorded is of no more use."""
        while True:
            counts = self._run(None, 1)
            if counts is None or self.queues.grow(counts):
                return None
            if self._accept is None or self._accept(counts):
                return counts

    def _run(self, meanwhile: Callable[[], bool] | None, times: int) -> dict[str, int] | None:
        if self._generation != self.queues.generation:
            self.forget()
            self._stages = list(self._record())
            self._generation = self.queues.generation
        for _ in range(times):
            self._launch()
        if meanwhile is not None and not meanwhile():
            return None
        return self._read()  # the one wait for the device

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
