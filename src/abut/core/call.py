"""Call: launches that answer one small question, with its numbers in host memory."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import capture_lock, note_cuda_thread
from abut.core.launch import KNOWN_WARP, Task

Copies = Sequence[tuple[wp.array, wp.array]]  # (to, from)


class Call:
    """Launches that answer one small question, prepared once and run any number of times.

    Write ``inputs``, which begin with the values of their arrays, ``run`` and read ``outputs``. On
    the CPU these are views of the arrays that kernels use, and a run is one native call for each
    launch. On CUDA they are pinned, and from the second time on a run replays one graph (copies in,
    launches, copies out) and waits for it.

    Args:
        tasks: The launches, in order.
        inputs: Arrays that kernels read.
        outputs: Arrays that kernels write.

    Attributes:
        inputs, outputs: NumPy views of the arrays, or of their pinned copies.
        run: Answers the question.
    """

    inputs: list[np.ndarray]
    outputs: list[np.ndarray]
    run: Callable[[], object]

    def __init__(
        self, tasks: Sequence[Task], inputs: Sequence[wp.array], outputs: Sequence[wp.array]
    ) -> None:
        self._kept = tasks, inputs, outputs  # packed arguments hold addresses only
        if outputs[0].device.is_cpu:
            runs = [task.run for task in tasks]
            self.run = runs[0] if len(runs) == 1 else partial(_run_each, runs)
            hosts = inputs, outputs
        else:
            hosts = _pinned(inputs), _pinned(outputs)
            for host, array in zip(hosts[0], inputs, strict=True):
                wp.copy(host, array)
            wp.synchronize_stream(outputs[0].device.stream)
            copies_in = list(zip(inputs, hosts[0], strict=True))
            copies_out = list(zip(hosts[1], outputs, strict=True))
            self.run = _Replay(outputs[0].device, copies_in, tasks, copies_out).run
        self.inputs, self.outputs = ([array.numpy() for array in arrays] for arrays in hosts)


def _run_each(runs: Sequence[Callable[[], object]]) -> None:
    for run in runs:
        run()


def _pinned(arrays: Sequence[wp.array]) -> list[wp.array]:
    return [wp.empty_like(array, device="cpu", pinned=True) for array in arrays]


class _Replay:
    """Copies and launches on a CUDA device; a graph from the second time on."""

    def __init__(
        self, device: wp.Device, copies_in: Copies, tasks: Sequence[Task], copies_out: Copies
    ) -> None:
        self._device, self._copies_in, self._copies_out = device, copies_in, copies_out
        self._commands = [command for task in tasks for command in task.slices]
        self._ran, self._graph = False, None

    def run(self) -> None:
        """Run on the current stream, after what is pending there, and wait."""
        stream = self._device.stream
        if note_cuda_thread() and self._graph is None and self._ran:
            self._graph = _captured(self._device, self._launch)
        if self._graph is None:
            self._launch(stream)
            self._ran = True
        else:
            wp.capture_launch(self._graph, stream)
        wp.synchronize_stream(stream)

    def _launch(self, stream: wp.Stream) -> None:
        for to, source in self._copies_in:
            wp.copy(to, source, stream=stream)
        for command in self._commands:
            command.launch(stream)
        for to, source in self._copies_out:
            wp.copy(to, source, stream=stream)


def _captured(device: wp.Device, launch: Callable[[wp.Stream], None]) -> Any:
    """Return the graph of launches, captured on a stream of its own.

    While Warp knows of a capture, no thread may wait for the device. So it is not told: its own
    functions are called, except on untested versions.
    """
    stream = wp.Stream(device)
    if not wp.config.version.startswith(KNOWN_WARP):
        with wp.ScopedCapture(stream=stream, force_module_load=False) as capture:
            launch(stream)
        return capture.graph
    runtime, context = wp._src.context.runtime, device.context
    handle = ctypes.c_void_p()
    with capture_lock:
        mode = int(wp.CaptureMode.THREAD_LOCAL)
        begun = runtime.core.wp_cuda_graph_begin_capture(context, stream.cuda_stream, 0, mode)
        try:
            launch(stream)
        finally:
            ended = runtime.core.wp_cuda_graph_end_capture(
                context, stream.cuda_stream, ctypes.byref(handle)
            )
    if not (begun and ended):
        raise RuntimeError(runtime.get_error_string())
    graph = wp.Graph(device)
    graph.graph = handle
    return graph
