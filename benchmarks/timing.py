"""Interleaved timing: one warm-up, then rounds in which every call is timed once.

Each round starts with the next call, so noise affects all calls alike. Calls shorter than
``LEAST_S`` are repeated and averaged. A call that has used its budget skips the remaining rounds.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LEAST_S = 0.01
MOST_REPEATS = 1000


@dataclass
class Timed:
    """A call and its times.

    Attributes:
        steps: Units of work in one call.
        clock: The processor's, ``time.process_time``, where others use the machine.
    """

    call: Callable[[], Any]
    device: str = "cpu"
    steps: float = 1.0
    first_ms: float = 0.0  # of the first call, with what it compiles or loads
    samples: list[float] = field(default_factory=list)  # ms for one step
    clock: Callable[[], float] = time.perf_counter

    def first(self) -> Any:
        """Time the first call separately and return its result."""
        seconds, result = self.turn(1)
        self.first_ms = seconds / self.steps * 1e3
        return result

    def turn(self, repeats: int) -> tuple[float, Any]:
        """Return mean seconds per call and the last result; waits for the device."""
        result = None
        _finish(self.device)
        start = self.clock()
        for _ in range(repeats):
            result = self.call()
        _finish(self.device)
        return (self.clock() - start) / repeats, result

    @property
    def ms_min(self) -> float:
        """The best sample."""
        return min(self.samples)

    @property
    def ms_median(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples)


def measure(timed: list[Timed], rounds: int, budget_s: float) -> None:
    """Sample every call at least once, within about ``budget_s`` seconds each."""
    repeats = [_repeats(one) for one in timed]
    spent = [0.0] * len(timed)
    for n in range(rounds):
        for k in range(len(timed)):
            i = (k + n) % len(timed)
            if spent[i] < budget_s:
                seconds, _ = timed[i].turn(repeats[i])
                spent[i] += seconds * repeats[i]
                timed[i].samples.append(seconds / timed[i].steps * 1e3)


def _repeats(one: Timed) -> int:
    """Return the number of calls per sample, after a warm-up."""
    seconds, _ = one.turn(1)
    return min(max(1, int(LEAST_S / max(seconds, 1e-9))), MOST_REPEATS)


def _finish(device: str) -> None:
    if device.startswith("cuda"):
        import warp as wp

        wp.synchronize_device(device)
