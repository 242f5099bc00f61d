"""Stage timers."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import warp as wp


class StageTimer:
    """Milliseconds per named stage, in order of first use.

    Example:
        with recording() as timer:
            abut.collide(a, b)
        print(timer.milliseconds)
    """

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}


_timer: StageTimer | None = None
_NO_STAGE = nullcontext()


@contextmanager
def recording() -> Iterator[StageTimer]:
    """Record stage times inside the block. On CUDA each stage is then synchronised."""
    global _timer
    outer, _timer = _timer, StageTimer()
    try:
        yield _timer
    finally:
        _timer = outer


def is_recording() -> bool:
    """Return whether stage times are being recorded: stages then run one by one."""
    return _timer is not None


def stage(name: str, device: wp.Device) -> AbstractContextManager[None]:
    """Attribute the time of the block to ``name`` while a recording is on."""
    timer = _timer  # another thread may end the recording meanwhile
    return _NO_STAGE if timer is None else _stage(timer, name, device)


@contextmanager
def _stage(timer: StageTimer, name: str, device: wp.Device) -> Iterator[None]:
    wp.synchronize_device(device)
    start = time.perf_counter()
    yield
    wp.synchronize_device(device)
    spent = (time.perf_counter() - start) * 1e3
    timer.milliseconds[name] = timer.milliseconds.get(name, 0.0) + spent
