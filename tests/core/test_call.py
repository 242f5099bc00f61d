"""Calls: kernels that answer one small question, with its numbers in host memory."""

import gc
import threading

import numpy as np
import warp as wp

from abut.core.call import Call
from abut.core.launch import Task

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def scale_kernel(
    # in
    span: wp.vec3i,
    values: wp.array[wp.float64],
    factor: wp.array[wp.float64],
    # out
    scaled_out: wp.array[wp.float64],
):
    """Multiply every value."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        scaled_out[i] = factor[0] * values[i]


@wp.kernel
def sum_kernel(
    # in
    span: wp.vec3i,
    values: wp.array[wp.float64],
    # out
    sum_out: wp.array[wp.float64],
    count_out: wp.array[wp.int64],
):
    """Add all values."""
    for _ in range(span[0] + wp.tid(), span[1], span[2]):
        total = wp.float64(0.0)
        for i in range(values.shape[0]):
            total += values[i]
        sum_out[0] = total
        count_out[0] += wp.int64(1)


def scaled_sum(device, launches=2):
    """Return a call that multiplies four numbers by another one and adds the products."""
    at = wp.get_device(device)
    values, scaled = (wp.zeros(4, dtype=wp.float64, device=device) for _ in range(2))
    factor, total = (wp.zeros(1, dtype=wp.float64, device=device) for _ in range(2))
    count = wp.zeros(1, dtype=wp.int64, device=device)
    if launches == 1:
        tasks = [Task(scale_kernel, 4, [values, factor, scaled], at)]
        return Call(tasks, [values, factor], [scaled])
    tasks = [
        Task(scale_kernel, 4, [values, factor, scaled], at),
        Task(sum_kernel, 1, [scaled, total, count], at),
    ]
    return Call(tasks, [values, factor], [total, count])


def test_a_call_answers_for_every_input_written(device):
    call = scaled_sum(device)
    values, factor = call.inputs
    total, count = call.outputs
    for k in range(1, 5):
        values[:], factor[0] = np.arange(4) + k, k
        call.run()
        assert (total[0], count[0]) == (k * (6 + 4 * k), k)


def test_a_call_of_one_launch_keeps_what_it_refers_to(device):
    call = scaled_sum(device, launches=1)
    gc.collect()
    call.inputs[0][:], call.inputs[1][0] = [1.0, 2.0, 3.0, 4.0], 0.5
    call.run()
    assert call.outputs[0].tolist() == [0.5, 1.0, 1.5, 2.0]


def test_threads_make_and_run_calls_at_once(device):
    wrong = []

    def ask(start):
        call = scaled_sum(device)
        for k in range(start, start + 50):
            call.inputs[0][:], call.inputs[1][0] = k, 2.0
            call.run()
            if call.outputs[0][0] != 8 * k:
                wrong.append(k)

    threads = [threading.Thread(target=ask, args=(100 * t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_call_runs_on_untested_releases_of_warp(monkeypatch):
    monkeypatch.setattr("abut.core.launch.KNOWN_WARP", "no release.")
    call = scaled_sum("cpu")
    call.inputs[0][:], call.inputs[1][0] = 1.0, 3.0
    call.run()
    assert call.outputs[0][0] == 12.0


def test_inputs_that_are_never_written_keep_the_values_of_their_arrays(device):
    at = wp.get_device(device)
    values = wp.array([1.0, 2.0, 3.0], dtype=wp.float64, device=device)
    factor = wp.full(1, 2.0, dtype=wp.float64, device=device)
    scaled = wp.zeros(3, dtype=wp.float64, device=device)
    task = Task(scale_kernel, 3, [values, factor, scaled], at)
    call = Call([task], [values, factor], [scaled])
    for _ in range(3):
        call.run()
        assert call.outputs[0].tolist() == [2.0, 4.0, 6.0]
