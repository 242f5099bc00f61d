"""Call: launches that answer one small question, with its numbers in host memory."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import warp as wp

from abut.core.launch import Task


class Call:
    """Launches that answer one small question, prepared once and run any number of times.

    Write ``inputs``, ``run`` and read ``outputs``. On the CPU these are views of the arrays that
    kernels use, and a run is one native call for each launch. On CUDA they are pinned, and a run
    replays one graph (copies in, launches, copies out) and waits for it.

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
        device = outputs[0].device
        self._kept = tasks, inputs, outputs  # kernels and graphs hold addresses only
        if device.is_cpu:
            runs = [task.run for task in tasks]
            self.run = runs[0] if len(runs) == 1 else partial(_run_each, runs)
            hosts_in, hosts_out = inputs, outputs
        else:
            hosts_in = [wp.empty_like(a, device="cpu", pinned=True) for a in inputs]
            hosts_out = [wp.empty_like(a, device="cpu", pinned=True) for a in outputs]
            copies_in = list(zip(inputs, hosts_in, strict=True))
            copies_out = list(zip(hosts_out, outputs, strict=True))
            self.run = partial(_replay, _captured(device, copies_in, tasks, copies_out))
        self.inputs = [a.numpy() for a in hosts_in]
        self.outputs = [a.numpy() for a in hosts_out]


def _run_each(runs: Sequence[Callable[[], object]]) -> None:
    for run in runs:
        run()


Copies = Sequence[tuple[wp.array, wp.array]]  # (to, from)


def _captured(
    device: wp.Device, copies_in: Copies, tasks: Sequence[Task], copies_out: Copies
) -> wp.Graph:
    """Return a graph, captured on a stream of its own: other threads may launch meanwhile."""
    stream = wp.Stream(device)
    with wp.ScopedCapture(stream=stream, force_module_load=False) as capture:
        for to, source in copies_in:
            wp.copy(to, source, stream=stream)
        for task in tasks:
            for command in task.slices:
                command.launch(stream)
        for to, source in copies_out:
            wp.copy(to, source, stream=stream)
    return capture.graph


def _replay(graph: wp.Graph) -> None:
    """Launch a graph on the current stream, after what is pending there, and wait."""
    stream = graph.device.stream
    wp.capture_launch(graph, stream)
    wp.synchronize_stream(stream)
