"""Launches over what kernels have listed."""

from collections.abc import Callable
from typing import Any

from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import PairQueues
from abut.sdf.blocks import TEAM_SIZE
from abut.sdf.footprint_tiles import BLOCK

PER_SLICE = 1024  # at least, on the CPU
THREADS = 1 << 16
DRAWING_THREADS = 512  # of a multiprocessor: as many as run at once


def over_listed(
    queues: PairQueues,
    name: str,
    kernel: Any,
    args: list[Any],
    *,
    times: int = 1,
    threads: int = THREADS,
) -> Callable[[], None]:
    """A launch over what is listed in a queue by then, so many items for each key."""
    device = queues.device
    if device.is_cuda:
        return Task(kernel, UNKNOWN_COUNT, args, device, threads=threads).run

    def run() -> None:
        held = min(queues.read()[name], queues[name].keys.shape[0])
        launch(kernel, times * held, args, device, grain=PER_SLICE)

    return run


def over_large(queues: PairQueues, kernel: Any, args: list[Any]) -> Callable[[], None]:
    """A launch over all listed large faces, so many threads for each."""
    return over_listed(queues, "large", kernel, args, times=TEAM_SIZE)


def over_parts(queues: PairQueues, kernel: Any, args: list[Any]) -> Callable[[], None]:
    """A launch over the parts of all listed blocks."""
    return over_listed(queues, "blocks", kernel, args, times=int(BLOCK))


def over_turns(queues: PairQueues, kernel: Any, args: list[Any]) -> Callable[[], None]:
    """A launch over all turns, shared out evenly."""
    threads = DRAWING_THREADS * max(queues.device.sm_count, 1)
    return over_listed(queues, "turns", kernel, args, threads=threads)
