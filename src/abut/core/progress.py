"""Progress bars on a terminal, for calls that take longer than two seconds."""

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any, TypeVar

Item = TypeVar("Item")

WAIT_S = 2.0  # before a bar is shown
EVERY_S = 0.1  # between two pictures of it
WIDTH = 30  # characters


class Bar:
    """A line on standard error that shows the share of a call that is done.

    It is shown on a terminal, by the main thread, unless ``ABUT_PROGRESS`` is 0, and is gone at the
    end.

    Attributes:
        low, high: The shares at the start and at the end of the step that is worked on.
    """

    def __init__(self) -> None:
        self.low, self.high = 0.0, 1.0
        self._start = monotonic()
        self._next = self._start + WAIT_S
        self._most, self._line = 0.0, ""

    def show(self, share: float) -> None:
        """Show a share of the present step, from time to time."""
        now = monotonic()
        if now < self._next:
            return
        if not self._line and not _is_wanted():
            self._next = inf
            return
        self._next = now + EVERY_S
        self._most = max(self._most, self.low + share * (self.high - self.low))
        left = (now - self._start) * (1.0 / max(self._most, 1e-9) - 1.0)
        done = "#" * int(WIDTH * self._most)
        line = f"abut [{done:<{WIDTH}}] {100 * self._most:3.0f} %"
        if self._most > 0.0:
            line += f", {left:.0f} s left" if left < 120 else f", {left / 60:.0f} min left"
        self._write(line)

    def clear(self) -> None:
        """Take the line away."""
        if self._line:
            self._write("")

    def _write(self, line: str) -> None:
        with suppress(OSError, ValueError):  # a terminal may go away
            sys.stderr.write(f"\r{line:<{len(self._line)}}" + ("" if line else "\r"))
            sys.stderr.flush()
        self._line = line


class _Here(threading.local):
    bar: Bar | None = None


_here = _Here()


def present_bar() -> Bar | None:
    """The bar of the call that this thread is in; None outside of ``Progress``."""
    return _here.bar


class Progress:
    """A call, or a part of one, whose steps are shown: ``with Progress() as progress: …``.

    A call inside a step shows the share of that step.
    """

    def __enter__(self) -> "Progress":
        """Begin, inside the present step of the call if there is one."""
        self._outer = _here.bar
        self._bar = _here.bar = self._outer or Bar()
        self._low, self._high = self._bar.low, self._bar.high
        return self

    def step(self, first: float, stop: float) -> None:
        """Begin a step that takes the work from one share to another."""
        size = self._high - self._low
        self._bar.low, self._bar.high = self._low + first * size, self._low + stop * size
        self._bar.show(0.0)

    def __exit__(self, *_: Any) -> None:
        """End; the bar of a whole call is taken away."""
        self._bar.low, self._bar.high = self._low, self._high
        _here.bar = self._outer
        if self._outer is None:
            self._bar.clear()


def tracked(items: Iterable[Item], count: int) -> Iterator[Item]:
    """Yield ``count`` items, each a step; a single item is no step of its own."""
    if count == 1:
        yield from items
        return
    with Progress() as progress:
        for number, item in enumerate(items):
            progress.step(number / count, (number + 1) / count)
            yield item


def _is_wanted() -> bool:
    if os.environ.get("ABUT_PROGRESS") == "0" or os.environ.get("TERM") == "dumb":
        return False
    if threading.current_thread() is not threading.main_thread():
        return False
    return sys.stderr is not None and sys.stderr.isatty()
