"""Devices, launches, stage timers."""

import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from itertools import pairwise
from typing import Any

import warp as wp

from abut.errors import DeviceError, OptionError

log = logging.getLogger("abut")

NOTICE_AFTER_S = 0.5
SLICES_PER_THREAD = 4  # uneven slices even out
CUDA_THREADS = 1 << 17  # enough to fill any current GPU
UNKNOWN_COUNT = 2**31 - 1
POOL_BYTES = 1 << 30
KNOWN_WARP = "1.19."  # see _call

_loaded: set[tuple[int, str]] = set()


def resolve_device(device: Any = None) -> wp.Device:
    """The device asked for; ``None`` is the first CUDA device, else the CPU."""
    if device is None:
        device = "cuda:0" if wp.is_cuda_available() else "cpu"
    try:
        found = wp.get_device(device)
    except Exception as error:
        names = ", ".join(d.alias for d in wp.get_devices())
        raise DeviceError(f"there is no device {device!r} here; there are: {names}.") from error
    _keep_memory(found.alias)
    return found


@cache
def _keep_memory(alias: str) -> None:
    """Let freed device memory stay with the process, so that the next query has it at once."""
    device = wp.get_device(alias)
    if device.is_cuda and wp.is_mempool_enabled(device):
        held = wp.get_mempool_release_threshold(device)
        wp.set_mempool_release_threshold(device, max(held, POOL_BYTES))


def can_capture(device: wp.Device) -> bool:
    """Whether launches can be captured as a graph now: on CUDA, and not on its default stream.

    Warp reads arrays on that stream; where threads do so at once, it stays the current one.
    """
    return bool(
        device.is_cuda and wp.is_mempool_enabled(device) and wp.get_stream(device).cuda_stream
    )


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


class Task:
    """A kernel over ``count`` items from ``start``, prepared once and run any number of times.

    The kernel's first parameter is a span (first, stop, step): thread t handles first + t,
    first + t + step, … below stop. On CUDA one launch covers all items; where the host does not
    know the count (``UNKNOWN_COUNT``), a fixed number of ``threads`` strides over them. On the
    CPU, where Warp runs a launch on one thread, slices of at least ``grain`` items share the work.
    """

    def __init__(
        self,
        kernel: wp.Kernel,
        count: int,
        args: Sequence[Any],
        device: wp.Device,
        *,
        grain: int = 4096,
        start: int = 0,
        threads: int | None = None,
    ) -> None:
        every, spans = _divided(count, grain, device, start, threads)
        _load(kernel, device)
        self.slices = [
            wp.launch(kernel, every, [wp.vec3i(*s), *args], device=device, record_cmd=True)
            for s in spans
        ]

        self._calls = [_call(piece) for piece in self.slices]

    def give(self, place: int, value: Any) -> None:
        """Let the argument at a place be another array or struct, of the same type."""
        for piece in self.slices:
            piece.set_param_at_index(place + 1, value)  # after the span
        self._calls = [_call(piece) for piece in self.slices]

    def run(self) -> None:
        """Launch all slices and, on the CPU, wait for them."""
        if len(self._calls) == 1:
            self._calls[0]()
        elif self._calls:
            _run_together(self._calls)


def _call(piece: wp.Launch) -> Callable[[], None]:
    """What launches a slice. On the CPU arguments are packed once, which Warp does every time.

    How Warp calls kernels there is its own affair: of releases not known yet it is asked to.
    """
    known = wp.config.version.startswith(KNOWN_WARP)
    if piece.device.is_cuda or piece.block_dim > 1 or not known:
        return piece.launch
    values = piece.params[1:]
    packed = _structure(*map(type, values))(*values)
    return partial(piece.hooks.forward, ctypes.byref(piece.bounds), ctypes.byref(packed))


@cache
def _structure(*types: Any) -> type[ctypes.Structure]:
    """The structure of a kernel's arguments."""
    fields = [(f"argument_{i}", kind) for i, kind in enumerate(types)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


class RecentCache:
    """The last few things made for certain arrays, found again by the arrays themselves."""

    SIZE = 8  # results that are still alive hold on to arrays of their own

    def __init__(self) -> None:
        self._held: list[tuple[tuple[Any, ...], Any]] = []

    def get(self, about: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What was made for these arrays and numbers; made now where there is nothing."""
        for known, thing in self._held:
            if len(known) == len(about) and all(map(_same, known, about)):
                return thing
        thing = make()
        self._held = [(about, thing), *self._held[: self.SIZE - 1]]
        return thing


def _same(x: Any, y: Any) -> bool:
    return x is y or (isinstance(x, int | float) and x == y)


def _divided(
    count: int, grain: int, device: wp.Device, start: int, strided: int | None = None
) -> tuple[int, list[tuple[int, int, int]]]:
    """Threads of a launch and the spans of its slices."""
    if device.is_cuda:
        threads = count if count < UNKNOWN_COUNT else strided or CUDA_THREADS
        return threads, [(start, start + count, threads)] if count else []
    slices = 1
    if thread_count() > 1:
        slices = max(1, min(thread_count() * SLICES_PER_THREAD, count // grain))
    edges = [start + count * s // slices for s in range(slices + 1)]
    return 1, [(low, high, 1) for low, high in pairwise(edges)]


def _run_together(calls: Sequence[Callable[[], None]]) -> None:
    """Make calls on this thread and on those of the pool that are free in time."""
    queue = iter(calls)  # taking the next one is atomic

    def work() -> None:
        for call in queue:
            call()

    helpers = []
    try:
        for _ in range(thread_count() - 1):
            helpers.append(_pool(thread_count()).submit(work))
        work()
    finally:
        for _ in queue:  # after an interrupt nothing more is begun, and nothing is left running
            pass
        _wait_for(helpers)


def _wait_for(helpers: Sequence[Future[None]]) -> None:
    """Until those that have begun are done, even if there is an interrupt meanwhile."""
    interrupts = []
    for helper in helpers:
        while not helper.cancel():
            try:
                helper.result()
                break
            except KeyboardInterrupt as interrupt:
                interrupts.append(interrupt)
    if interrupts:
        raise interrupts[0]


def launch(
    kernel: wp.Kernel,
    count: int,
    args: Sequence[Any],
    device: wp.Device,
    *,
    grain: int = 4096,
    start: int = 0,
) -> None:
    """Run a kernel over ``count`` items from ``start`` once, unseen by tapes; see Task."""
    threads, spans = _divided(count, grain, device, start)
    if len(spans) > 1:
        Task(kernel, count, args, device, grain=grain, start=start).run()
    elif spans:
        _load(kernel, device)
        inputs = [wp.vec3i(*spans[0]), *args]
        wp.launch(kernel, threads, inputs, device=device, record_tape=False)


def _load(kernel: wp.Kernel, device: wp.Device) -> None:
    """Compile and load a kernel's module; say so when it takes long."""
    key = (id(kernel.module), device.alias)
    if key in _loaded:
        return
    name = kernel.func.__module__.split(".")[-1]  # a module of Warp's may have a longer one
    notice = threading.Timer(
        NOTICE_AFTER_S,
        lambda: log.warning(
            "compiling kernels (%s) for %s, once; later runs load them", name, device
        ),
    )
    notice.daemon = True
    notice.start()
    try:
        with _quieter():
            wp.load_module(kernel.module, device=device)
    finally:
        notice.cancel()
    _loaded.add(key)


@contextmanager
def _quieter() -> Iterator[None]:
    """Let Warp not tell of every module of abut that it loads, unless it was asked to tell more."""
    usual = wp.config.log_level == wp.LOG_INFO
    if usual:
        wp.config.log_level = wp.LOG_WARNING
    try:
        yield
    finally:
        if usual:
            wp.config.log_level = wp.LOG_INFO


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
    """Whether stage times are being recorded: stages then run one by one."""
    return _timer is not None


def stage(name: str, device: wp.Device) -> AbstractContextManager[None]:
    """Attribute the time of the block to ``name`` while a recording is on."""
    return _NO_STAGE if _timer is None else _stage(name, device)


@contextmanager
def _stage(name: str, device: wp.Device) -> Iterator[None]:
    assert _timer is not None
    wp.synchronize_device(device)
    start = time.perf_counter()
    yield
    wp.synchronize_device(device)
    spent = (time.perf_counter() - start) * 1e3
    _timer.milliseconds[name] = _timer.milliseconds.get(name, 0.0) + spent
