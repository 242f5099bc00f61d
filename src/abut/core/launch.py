"""Launches: kernels over spans of items, CPU slices on a thread pool, module loading."""

import ctypes
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from functools import cache, partial
from itertools import pairwise
from typing import Any

import warp as wp

from abut.core.device import thread_count
from abut.core.kernel_cache import load_kernels, without_messages
from abut.core.progress import Bar, present_bar

log = logging.getLogger("abut")

NOTICE_AFTER_S = 0.5
SLICES_PER_THREAD = 4  # uneven slices even out
STEPS_PER_SLICE = 20_000_000  # pairs of faces, say: less than a second
CUDA_THREADS = 1 << 17  # enough to fill any current GPU
UNKNOWN_COUNT = 2**31 - 1
KNOWN_WARP = "1.19."  # see _slice_call

_loaded: set[tuple[int, str, int | None]] = set()
_ready: set[tuple[int, str]] = set()  # kernels whose functions Warp has looked up
_lock = threading.RLock()  # threads must not load modules or look up functions at once


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="abut")


class Task:
    """A kernel over ``count`` items from ``start``, prepared once and run any number of times.

    The kernel's first parameter is a span (first, stop, step): thread t handles first + t,
    first + t + step, … below stop. On CUDA one launch covers all items; where the host does not
    know the count (``UNKNOWN_COUNT``), a fixed number of ``threads`` strides over them, in blocks
    of ``block``. On the CPU, where Warp runs a launch on one thread, slices of at least ``grain``
    items share the work. An item may have many ``steps``; slices of at most STEPS_PER_SLICE end
    soon enough for an interrupt.
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
        block: int | None = None,
        steps: int = 1,
    ) -> None:
        dim, spans = _slice_spans(count, grain, device, start, threads, steps)
        record = partial(wp.launch, kernel, dim, device=device, record_cmd=True, block_dim=block)
        with _lock:
            _load(kernel, device, block)
            self.slices = [record(inputs=[wp.vec3i(*s), *args]) for s in spans[:1]]
        self.slices += [_with_span(self.slices[0], span) for span in spans[1:]]
        self._calls = [_slice_call(command) for command in self.slices]

    def set_arg(self, index: int, value: Any) -> None:
        """Replace an argument by another array or struct of the same type."""
        for command in self.slices:
            command.set_param_at_index(index + 1, value)  # after the span
        self._calls = [_slice_call(command) for command in self.slices]

    def run(self) -> None:
        """Launch all slices and, on the CPU, wait for them."""
        if self._calls:
            run_parallel(self._calls)


def _with_span(command: wp.Launch, span: tuple[int, int, int]) -> wp.Launch:
    """Return a copy of a slice with another span, several times as fast as recording it."""
    other = copy(command)
    other.params = list(command.params)
    other.set_param_at_index(0, wp.vec3i(*span))
    return other


def _slice_call(command: wp.Launch) -> Callable[[], None]:
    """Return a function that launches a slice.

    On the CPU the arguments are packed once; ``wp.Launch.launch`` packs them at every call. The
    way Warp calls CPU kernels is internal, so untested Warp versions use ``wp.Launch.launch``.
    """
    known = wp.config.version.startswith(KNOWN_WARP)
    if command.device.is_cuda or command.block_dim > 1 or not known:
        return command.launch
    values = command.params[1:]
    packed = _argument_struct(*map(type, values))(*values)
    return partial(command.hooks.forward, ctypes.byref(command.bounds), ctypes.byref(packed))


@cache
def _argument_struct(*types: Any) -> type[ctypes.Structure]:
    """Return the C structure of a kernel's arguments."""
    fields = [(f"argument_{i}", kind) for i, kind in enumerate(types)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


def _slice_spans(
    count: int,
    grain: int,
    device: wp.Device,
    start: int,
    threads: int | None = None,
    steps: int = 1,
) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the threads of a launch and the spans of its slices."""
    if device.is_cuda:
        dim = count if count < UNKNOWN_COUNT else threads or CUDA_THREADS
        return dim, [(start, start + count, dim)] if count else []
    slices = 1
    if thread_count() > 1:
        slices = max(1, min(thread_count() * SLICES_PER_THREAD, count // grain))
    if steps > 1:
        slices = max(slices, min(count, count * steps // STEPS_PER_SLICE))
    edges = [start + count * s // slices for s in range(slices + 1)]
    return 1, [(low, high, 1) for low, high in pairwise(edges)]


def run_parallel(calls: Sequence[Callable[[], None]]) -> None:
    """Make the calls on this thread and on the pool's threads that are free in time."""
    if len(calls) == 1:
        calls[0]()
        return
    queue = enumerate(calls)  # taking the next one is atomic
    outer = present_bar()
    bar = outer or Bar()

    def work() -> None:
        for _, call in queue:
            call()

    helpers = []
    try:
        for _ in range(min(thread_count(), len(calls)) - 1):
            helpers.append(_pool(thread_count()).submit(work))
        for number, call in queue:
            bar.show(number / len(calls))
            call()
    finally:
        if outer is None:
            bar.clear()
        for _ in queue:  # after an interrupt nothing more is begun, and nothing is left running
            pass
        _wait_for(helpers)


def _wait_for(helpers: Sequence[Future[None]]) -> None:
    """Wait until all helpers that have begun are done, even if there is an interrupt meanwhile."""
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
    steps: int = 1,
) -> None:
    """Run a kernel over ``count`` items from ``start`` once; tapes do not record it. See Task."""
    dim, spans = _slice_spans(count, grain, device, start, steps=steps)
    if len(spans) > 1:
        Task(kernel, count, args, device, grain=grain, start=start, steps=steps).run()
    elif spans:
        inputs = [wp.vec3i(*spans[0]), *args]
        if (id(kernel), device.alias) not in _ready:
            with _lock:
                _load(kernel, device)
                wp.launch(kernel, dim, inputs, device=device, record_cmd=True)
                _ready.add((id(kernel), device.alias))
        wp.launch(kernel, dim, inputs, device=device, record_tape=False)


def _load(kernel: wp.Kernel, device: wp.Device, block: int | None = None) -> None:
    """Compile and load a kernel's module; log a notice when it takes long."""
    key = (id(kernel.module), device.alias, block)
    if key in _loaded:
        return
    name = kernel.func.__module__.split(".")[-1]  # Warp's own module name may be longer
    notice = threading.Timer(
        NOTICE_AFTER_S,
        lambda: log.warning(
            "compiling kernels (%s) for %s, once; later runs load them", name, device
        ),
    )
    notice.daemon = True
    notice.start()
    try:
        with without_messages():
            load_kernels(kernel.module, device, block)
    finally:
        notice.cancel()
    _loaded.add(key)
