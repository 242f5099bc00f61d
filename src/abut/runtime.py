"""Devices, launches, stage timers."""

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import warp as wp

from abut.errors import DeviceError, OptionError

log = logging.getLogger("abut")

NOTICE_AFTER_S = 0.5
SLICES_PER_THREAD = 4  # uneven slices even out
CUDA_THREADS = 1 << 17  # enough to fill any current GPU; kernels stride over the rest
EVERYTHING = 2**31 - 1

_loaded: set[tuple[int, str]] = set()


def resolve_device(device: Any = None) -> wp.Device:
    """The device asked for; ``None`` is the first CUDA device, else the CPU."""
    if device is None:
        return wp.get_device("cuda:0") if wp.is_cuda_available() else wp.get_device("cpu")
    try:
        return wp.get_device(device)
    except Exception as error:
        names = ", ".join(d.alias for d in wp.get_devices())
        raise DeviceError(f"there is no device {device!r} here; there are: {names}.") from error


def require_same_device(*operands: Any) -> wp.Device:
    """The one device of all operands that are not None."""
    devices = [operand.device for operand in operands if operand is not None]
    for device in devices[1:]:
        if device != devices[0]:
            raise DeviceError(
                f"operands live on {devices[0]} and {device}; bring them together with .to(device)."
            )
    return devices[0]


@cache
def thread_count() -> int:
    """CPU threads used: ``ABUT_THREADS``, else the cores this process may run on."""
    asked = os.environ.get("ABUT_THREADS")
    if asked is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not asked.isdigit() or int(asked) < 1:
        raise OptionError(f"ABUT_THREADS must be a whole number from 1 up, not {asked!r}.")
    return int(asked)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="abut")


def launch(
    kernel: wp.Kernel, count: int, args: Sequence[Any], device: wp.Device, *, grain: int = 4096
) -> None:
    """Run a kernel over ``range(count)``.

    The kernel's first parameter is a span (first, stop, step): thread t handles first + t,
    first + t + step, … below stop. On CUDA one launch strides over everything. On the CPU, where
    Warp runs a launch on one thread, slices of at least ``grain`` items go to a thread pool.
    """
    _load(kernel, device)
    if device.is_cuda:
        threads = min(count, CUDA_THREADS)
        if threads > 0:
            wp.launch(kernel, threads, [wp.vec3i(0, count, threads), *args], device=device)
        return
    threads = thread_count()
    slices = min(threads * SLICES_PER_THREAD, count // grain) if threads > 1 else 1
    if slices <= 1:
        wp.launch(kernel, 1, [wp.vec3i(0, count, 1), *args], device=device)
        return
    edges = [count * s // slices for s in range(slices + 1)]

    def run(s: int) -> None:
        span = wp.vec3i(edges[s], edges[s + 1], 1)
        wp.launch(kernel, 1, [span, *args], device=device)

    list(_pool(threads).map(run, range(slices)))


def _load(kernel: wp.Kernel, device: wp.Device) -> None:
    """Compile and load a kernel's module; say so when it takes long."""
    key = (id(kernel.module), device.alias)
    if key in _loaded:
        return
    name = kernel.module.name.split(".")[-1]
    notice = threading.Timer(
        NOTICE_AFTER_S,
        lambda: log.warning(
            "compiling kernels (%s) for %s, once; later runs load them", name, device
        ),
    )
    notice.daemon = True
    notice.start()
    try:
        wp.load_module(kernel.module, device=device)
    finally:
        notice.cancel()
    _loaded.add(key)


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


@contextmanager
def recording() -> Iterator[StageTimer]:
    """Record stage times inside the block. On CUDA each stage is then synchronised."""
    global _timer
    outer, _timer = _timer, StageTimer()
    try:
        yield _timer
    finally:
        _timer = outer


@contextmanager
def stage(name: str, device: wp.Device) -> Iterator[None]:
    """Attribute the time of the block to ``name`` while a recording is on."""
    if _timer is None:
        yield
        return
    wp.synchronize_device(device)
    start = time.perf_counter()
    yield
    wp.synchronize_device(device)
    spent = (time.perf_counter() - start) * 1e3
    _timer.milliseconds[name] = _timer.milliseconds.get(name, 0.0) + spent
