"""The emulated device: one stream, whose work waits for the host, and what Warp tells of it."""

import ctypes
import sys
import threading
from typing import ClassVar


class Stream:
    """The only stream: work that waits until the host synchronises."""

    cuda_stream = 1

    def __init__(self, device=None, **_) -> None:
        self.device = device

    waiting: ClassVar[list] = []
    captured: list | None = None  # after the thread that captures
    current = None  # within a scope
    lock = threading.RLock()
    runs = False

    @classmethod
    def add(cls, work) -> None:
        """Append work; while work runs, what it adds runs at once."""
        with cls.lock:
            if cls.runs:
                work()
            elif cls.captured is not None and cls.captured[0] == threading.get_ident():
                cls.captured.append(work)
            else:
                cls.waiting.append(work)

    @classmethod
    def wait(cls, until=None) -> None:
        """Do what waits, up to an event."""
        with cls.lock:
            if cls.runs or (until is not None and until not in cls.waiting):
                return
            if cls.captured is not None and cls.captured[0] == threading.get_ident():
                raise RuntimeError("the host waits for the device while a graph is captured")
            left = cls.waiting.count(until)
            while cls.waiting:
                work = cls.waiting.pop(0)
                if isinstance(work, Event):
                    left -= work is until
                    if until is not None and left == 0:
                        return
                    continue
                cls.runs = True
                try:
                    work()
                finally:
                    cls.runs = False

    @property
    def is_capturing(self) -> bool:
        """Whether this thread captures."""
        return Stream.captured is not None and Stream.captured[0] == threading.get_ident()

    def record_event(self, event=None, external=False):
        """Append an event."""
        event = event or Event()
        (Stream.captured if self.is_capturing else Stream.waiting).append(event)
        return event

    def wait_event(self, event) -> None:
        """Do nothing: there is one stream."""

    def wait_stream(self, stream, event=None) -> None:
        """Do nothing: there is one stream."""


class Event:
    """A place in the stream."""

    def __init__(self, device=None, **_) -> None:
        self.device = device


class Capture:
    """Stands for ``wp.ScopedCapture``."""

    def __init__(self, *_, **__) -> None:
        self.graph = None

    def __enter__(self):
        """Begin."""
        if Stream.captured is not None:
            raise RuntimeError("a capture within a capture")
        Stream.captured = [threading.get_ident()]
        return self

    def __exit__(self, *error) -> None:
        """End."""
        self.graph, Stream.captured = Stream.captured[1:], None


class StreamScope:
    """Stands for ``wp.ScopedStream``."""

    def __init__(self, stream, **_) -> None:
        self.stream = stream

    def __enter__(self):
        """Begin."""
        self.before, Stream.current = Stream.current, self.stream or Stream.current

    def __exit__(self, *error) -> None:
        """End."""
        Stream.current = self.before


def replay(graph, stream=None) -> None:
    """Stand for ``wp.capture_launch``."""
    for work in graph:
        if isinstance(work, Event):
            Stream.waiting.append(work)
        else:
            Stream.add(work)


def sees_cuda() -> bool:
    """Whether the caller's caller is not Warp, which sees a CPU device."""
    return not sys._getframe(2).f_globals.get("__name__", "").startswith("warp")


def add_device() -> object:
    """Give Warp a device "cuda:0" that only other code takes for one."""
    import warp as wp
    from warp._src import context

    wp.init()
    runtime = context.runtime
    device = context.Device(runtime, "cuda:0")
    device.sm_count, device.arch, device.name = 8, 90, "emulated"
    runtime.device_map["cuda:0"] = device
    stream = device._stream = Stream(device)
    properties = context.Device
    properties.is_cuda = property(lambda self: self is device and sees_cuda())
    properties.is_cpu = property(lambda self: not (self is device and sees_cuda()))
    properties.stream = property(lambda self: stream)
    properties.__eq__ = lambda self, other: (
        self is other or (isinstance(other, str) and other == self.alias)
    )
    properties.__hash__ = lambda self: hash(self.alias)
    poison_memory(context, device)
    wp.is_cuda_available = lambda: True
    wp.get_cuda_devices = lambda: [device]
    wp.get_devices = lambda: [runtime.cpu_device, device]
    wp.is_mempool_enabled = lambda device: True
    wp.get_mempool_release_threshold = lambda device: 1 << 40
    wp.set_mempool_release_threshold = lambda device, threshold: None
    wp.get_mempool_used_mem_high = lambda device: 0
    wp.Stream, wp.Event, wp.ScopedCapture, wp.capture_launch = Stream, Event, Capture, replay
    wp.get_stream = lambda device=None: Stream.current or stream
    wp.ScopedStream, device.null_stream = StreamScope, Stream(device)
    device.null_stream.cuda_stream = None  # the default stream, which no graph can capture
    wp.record_event = stream.record_event
    wp.get_event_elapsed_time = lambda *events, **_: 0.0
    wp.synchronize_event = Stream.wait
    wp.synchronize_stream = wp.synchronize_device = lambda *_: Stream.wait()
    wp.synchronize = Stream.wait
    return device


def poison_memory(context, device) -> None:
    """Let memory begin with arbitrary bytes; what is freed on the device lasts until its turn."""
    allocator = context.CpuDefaultAllocator
    allocate, deallocate = allocator.allocate, allocator.deallocate

    def allocate_poisoned(self, size):
        start = allocate(self, size)
        ctypes.memset(start, 0xCD, size)
        return start

    def deallocate_in_turn(self, start, size):
        def free():
            ctypes.memset(start, 0xDD, size)
            deallocate(self, start, size)

        if self is device.default_allocator and not Stream.runs:
            Stream.waiting.append(free)
        else:
            free()

    allocator.allocate = context.CpuPinnedAllocator.allocate = allocate_poisoned
    allocator.deallocate = context.CpuPinnedAllocator.deallocate = deallocate_in_turn


def delay_arrays(device) -> None:
    """Let fills, copies and Warp's sorts of arrays on the device wait in the stream."""
    import warp as wp
    from warp._src import context, types

    def delayed(function):
        def add(*args, **options):
            if any(getattr(a, "device", None) is device for a in [*args, *options.values()]):
                return Stream.add(lambda: function(*args, **options))
            return function(*args, **options)

        return add

    types.array.zero_ = delayed(types.array.zero_)
    types.array.fill_ = delayed(types.array.fill_)
    for name in ("radix_sort_pairs", "array_scan", "array_cast", "segmented_sort_pairs"):
        setattr(wp.utils, name, delayed(getattr(wp.utils, name)))
    encode = wp.utils.runlength_encode
    wp.utils.runlength_encode = lambda *a, **k: (Stream.wait(), encode(*a, **k))[1]

    plain = context.copy

    def copy(dest, src, *args, **options):
        hosts = [array for array in (dest, src) if array.device is not device]
        if len(hosts) == 2:
            return plain(dest, src, *args, **options)
        options["stream"] = device._stream  # some paths of Warp ask it whether it captures
        if hosts and not hosts[0].pinned:
            Stream.wait()
            return plain(dest, src, *args, **options)
        return Stream.add(lambda: plain(dest, src, *args, **options))

    context.copy = wp.copy = copy
