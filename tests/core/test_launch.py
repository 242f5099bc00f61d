"""Devices, threads, launches, timers and atomics."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.core import device as devices
from abut.core import launch as launching
from abut.core import timing
from abut.core.atomics import atomic_add_aggregated, atomic_min_int64

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def add_kernel(
    # in
    span: wp.vec3i,
    counter: wp.array[wp.int64],
    # out
    slots_out: wp.array[wp.int64],
):
    """Add one to three to one counter per item."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        slots_out[i] = atomic_add_aggregated(counter, 1 + i % 3)


@wp.kernel
def gather_kernel(
    # in
    span: wp.vec3i,
    faces: wp.array[wp.vec3i],
    order: wp.array[wp.int32],
    # out
    faces_out: wp.array[wp.vec3i],
):
    """Gather faces by an order."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        faces_out[i] = faces[order[i]]


@wp.kernel
def lower_kernel(
    # in
    span: wp.vec3i,
    values: wp.array[wp.int64],
    # out
    least_out: wp.array[wp.int64],
):
    """Lower one of few values per item."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        atomic_min_int64(least_out, i % least_out.shape[0], values[i])


@pytest.fixture
def many_threads(monkeypatch):
    """Use more threads than there may be cores."""
    monkeypatch.setenv("ABUT_THREADS", "4")
    devices.thread_count.cache_clear()
    yield
    monkeypatch.undo()
    devices.thread_count.cache_clear()


def first_slots(count, device, grain):
    """Return the first slot of each item; check that the slots of all items leave no gap."""
    counter = wp.zeros(1, dtype=wp.int64, device=device)
    slots = wp.full(count, -1, dtype=wp.int64, device=device)
    launching.launch(add_kernel, count, [counter, slots], wp.get_device(device), grain=grain)
    slots, sizes = slots.numpy(), 1 + np.arange(count) % 3
    order = np.argsort(slots)
    np.testing.assert_array_equal(slots[order], np.cumsum(sizes[order]) - sizes[order])
    assert counter.numpy()[0] == sizes.sum()


def test_counters_lose_nothing(many_threads, device):
    """A million additions from several threads are all counted."""
    first_slots(1_000_000, device, grain=1000)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 4096, 100_003])
def test_a_launch_covers_every_item_once(count, many_threads, device):
    first_slots(count, device, grain=10)


def test_minima_lose_nothing(many_threads, device):
    """Decreasing values: every one of them is the minimum for a moment."""
    count, lanes = 1_000_000, 3
    falling = np.arange(count)[::-1].astype(np.int64) - count // 2
    values = wp.array(falling, device=device)
    least = wp.full(lanes, 2**62, dtype=wp.int64, device=device)
    launching.launch(lower_kernel, count, [values, least], wp.get_device(device), grain=1000)
    assert least.numpy().tolist() == [falling[lane::lanes].min() for lane in range(lanes)]


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5", "", "²", "٣"])
def test_bad_thread_counts_are_refused(asked, monkeypatch):
    monkeypatch.setenv("ABUT_THREADS", asked)
    devices.thread_count.cache_clear()
    with pytest.raises(abut.OptionError, match="ABUT_THREADS must be a whole number"):
        devices.thread_count()
    monkeypatch.undo()
    assert devices.thread_count() >= 1


def test_devices():
    assert devices.resolve_device("cpu").is_cpu
    assert devices.resolve_device(wp.get_device("cpu")).is_cpu
    with pytest.raises(abut.DeviceError, match="there is no device 'nowhere' here; there are: cpu"):
        devices.resolve_device("nowhere")


def test_stage_times(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("spheres", 500))
    with timing.recording() as timer:
        abut.collide(a, b)
    first = dict(timer.milliseconds)
    assert {"hierarchy", "search", "exact", "sort"} <= set(first)
    assert all(spent > 0 for spent in first.values())
    abut.collide(a, b)
    assert timer.milliseconds == first, "times are taken inside the block only"


def test_stage_times_add_up_and_nest(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("spheres", 500))
    with timing.recording() as outer:
        abut.collide(a, b)
        before = outer.milliseconds["search"]
        with timing.recording() as inner:
            abut.collide(a, b)
        assert outer.milliseconds["search"] == before
        abut.collide(a, b)
    assert "hierarchy" not in inner.milliseconds, "trees are kept"
    assert outer.milliseconds["search"] > before


def test_a_failed_query_ends_the_recording(device):
    a = abut.Mesh(*cases.box(), device)
    with pytest.raises(abut.OptionError), timing.recording() as timer:
        abut.collide(a, a, method="none")
    abut.collide(a, a)
    assert timer.milliseconds == {}


@pytest.mark.parametrize("known", [launching.KNOWN_WARP, "none"])
@pytest.mark.parametrize("count", [10, 100_000])
def test_a_task_takes_another_array(count, known, device, monkeypatch):
    monkeypatch.setattr(launching, "KNOWN_WARP", known)
    device = wp.get_device(device)
    arrays = [wp.zeros(count, dtype=wp.vec3i, device=device) for _ in range(2)]
    arrays[1].fill_(wp.vec3i(1, 2, 3))
    order = wp.array(np.arange(count, dtype=np.int32)[::-1].copy(), device=device)
    out = wp.zeros(count, dtype=wp.vec3i, device=device)
    task = launching.Task(gather_kernel, count, [arrays[0], order, out], device)
    task.run()
    assert not out.numpy().any()
    task.set_arg(0, arrays[1])
    task.run()
    assert (out.numpy() == [1, 2, 3]).all()


def test_first_use_in_a_program_is_quiet():
    """abut writes nothing to standard output; only Warp's greeting is there."""
    script = (
        "import abut; from abut import cases; a = abut.Mesh(*cases.box(), 'cpu');"
        "print('so much:', len(abut.collide(a, a)));"
        "import warp as wp; assert wp.config.log_level == wp.LOG_INFO"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    greeting, said = run.stdout.split("so much:")
    assert "Module" not in greeting and int(said) > 0


def test_a_slow_compilation_is_logged(monkeypatch):
    """The notice names the module whose kernels are compiled."""
    logged, said = threading.Event(), []

    def record(message, *words):
        said.append(message % words)
        logged.set()

    monkeypatch.setattr(launching, "NOTICE_AFTER_S", 0.0)
    monkeypatch.setattr(launching, "_loaded", set())
    monkeypatch.setattr(launching.log, "warning", record)
    monkeypatch.setattr(wp, "load_module", lambda module, **_: logged.wait(60))
    launching._load(add_kernel, wp.get_device("cpu"))
    assert said == ["compiling kernels (test_launch) for cpu, once; later runs load them"]


def test_queries_without_graph_capture(device):
    """CUDA's default stream cannot be captured; threads that read arrays at once stay on it."""
    shapes = cases.pair("knot", faces=400)

    def answers():
        a, b = (abut.Mesh(*shape, device) for shape in shapes)
        culled = [abut.cull([a, b], pixels=64).faces.numpy().tolist() for _ in range(3)]
        field = abut.DistanceField(b, resolution=24)
        return culled, [float(field.closest(a).value) for _ in range(2)]

    usual = answers()
    with wp.ScopedStream(wp.get_device(device).null_stream if "cuda" in str(device) else None):
        assert not devices.can_capture(wp.get_device(device))
        assert answers() == usual


def adding_kernel(amount):
    """A kernel in a module of its own, which no thread has loaded."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def adding_kernel(span: wp.vec3i, sums_out: wp.array[wp.int32]):
        for i in range(span[0] + wp.tid(), span[1], span[2]):
            sums_out[i] += wp.static(amount)

    return adding_kernel


def test_threads_load_modules_at_once(device):
    kernels, found = [adding_kernel(k) for k in range(1, 5)], []
    where, start = wp.get_device(device), threading.Barrier(4)

    def add_all():
        sums = wp.zeros(3, dtype=wp.int32, device=device)
        start.wait()
        for kernel in kernels:
            launching.Task(kernel, 3, [sums], where).run()
            launching.launch(kernel, 3, [sums], where)
        found.append(sums.numpy().tolist())

    threads = [threading.Thread(target=add_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[20, 20, 20]] * 4


def test_slices_of_many_steps_are_short(threads):
    """An interrupt waits for the slice that runs."""
    for count in (1, 2):
        threads(count)
        cpu = wp.get_device("cpu")
        _, spans = launching._slice_spans(1000, 1, cpu, 0, None, launching.STEPS_PER_SLICE // 10)
        assert len(spans) == 100 and spans[0][0] == 0 and spans[-1][1] == 1000
        _, spans = launching._slice_spans(1000, 1, cpu, 0, None, 10 * launching.STEPS_PER_SLICE)
        assert len(spans) == 1000
