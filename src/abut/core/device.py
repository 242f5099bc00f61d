"""Devices, their memory pools and the number of CPU threads."""

import os
import threading
from functools import cache
from typing import Any

import warp as wp

from abut.core.kernel_cache import init_warp
from abut.errors import DeviceError, OptionError

POOL_BYTES = 1 << 30


def resolve_device(device: Any = None) -> wp.Device:
    """Return a Warp device; ``None`` means the first CUDA device, else the CPU."""
    init_warp()
    if device is None:
        device = "cuda:0" if wp.is_cuda_available() else "cpu"
    try:
        found = wp.get_device(device)
    except Exception as error:
        names = ", ".join(d.alias for d in wp.get_devices())
        raise DeviceError(f"there is no device {device!r} here; there are: {names}.") from error
    _raise_release_threshold(found.alias)
    return found


@cache
def _raise_release_threshold(alias: str) -> None:
    """Keep freed device memory in the pool, so that the next query allocates at once."""
    device = wp.get_device(alias)
    if device.is_cuda and wp.is_mempool_enabled(device):
        threshold = wp.get_mempool_release_threshold(device)
        wp.set_mempool_release_threshold(device, max(threshold, POOL_BYTES))


def can_capture(device: wp.Device) -> bool:
    """Return whether a graph can be captured now: on CUDA, and not on its default stream.

    Warp reads arrays on the default stream, and threads that do so at once stay on it.
    """
    return bool(
        device.is_cuda and wp.is_mempool_enabled(device) and wp.get_stream(device).cuda_stream
    )


capture_lock = threading.Lock()
_cuda_threads: set[int] = set()


def note_cuda_thread() -> bool:
    """Note that this thread uses CUDA. Return whether no other thread has, ever.

    A Call captures its graph only then, under ``capture_lock``: launches of another thread would
    make the capture fail.
    """
    thread = threading.get_ident()
    if thread not in _cuda_threads:
        with capture_lock:
            _cuda_threads.add(thread)
    return len(_cuda_threads) == 1


def require_same_device(*operands: Any) -> wp.Device:
    """Return the one device of all operands that are not None."""
    devices = [operand.device for operand in operands if operand is not None]
    for device in devices[1:]:
        if device != devices[0]:
            raise DeviceError(
                f"operands live on {devices[0]} and {device}; bring them together with .to(device)."
            )
    return devices[0]


@cache
def thread_count() -> int:
    """Return the CPU threads to use: ``ABUT_THREADS``, else the cores this process may run on."""
    asked = os.environ.get("ABUT_THREADS")
    if asked is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not (asked.isascii() and asked.isdigit()) or int(asked) < 1:
        raise OptionError(f"ABUT_THREADS must be a whole number from 1 up, not {asked!r}.")
    return int(asked)
