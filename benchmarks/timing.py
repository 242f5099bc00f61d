"""Fair timing: one warm-up, then rounds in which everybody has a turn.

Each round begins with the next one, so that noise and heat fall on all alike. Calls shorter than
``LEAST_S`` are repeated within a turn and averaged. Who has used up its time sits out the rounds
that remain.
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
    """A call and its times. ``steps``: how often it does the work to be reported."""

    call: Callable[[], Any]
    device: str = "cpu"
    steps: float = 1.0
    first_ms: float = 0.0  # of the first call, with what it compiles or loads
    samples: list[float] = field(default_factory=list)  # ms for one step

    def first(self) -> Any:
        """The first call, timed apart; its result is for checking."""
        seconds, result = self.turn(1)
        self.first_ms = seconds / self.steps * 1e3
        return result

    def turn(self, repeats: int) -> tuple[float, Any]:
        """Seconds a call takes, on average, and its last result; the device has finished."""
        result = None
        _finish(self.device)
        start = time.perf_counter()
        for _ in range(repeats):
            result = self.call()
        _finish(self.device)
        return (time.perf_counter() - start) / repeats, result

    @property
    def ms_min(self) -> float:
        """The best sample."""
        return min(self.samples)

    @property
    def ms_median(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples)


def measure(timed: list[Timed], rounds: int, budget_s: float) -> None:
    """Fill all samples; each call has about ``budget_s`` for all its turns, and at least one."""
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
    """Calls in a turn, after a warm-up."""
    seconds, _ = one.turn(1)
    return min(max(1, int(LEAST_S / max(seconds, 1e-9))), MOST_REPEATS)


def _finish(device: str) -> None:
    if device.startswith("cuda"):
        import warp as wp

        wp.synchronize_device(device)
