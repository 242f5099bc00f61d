"""tools/emulate_cuda.py: kernels and host code of CUDA on the CPU."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).parents[1]
DIVERGENT = '''
"""Kernels that CUDA does not allow."""

import numpy as np
import warp as wp

from abut.core.lanes import lane_index, warp_rank, warp_sync
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def kernel(span: wp.vec3i, odd: wp.bool, ranks_out: wp.array[wp.int32]):
    """Rank lanes, within a branch if odd."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if not odd or lane_index() % 2 == 1:
            ranks_out[i] = warp_rank(True)
        warp_sync()


@wp.kernel
def index_kernel(span: wp.vec3i, numbers_out: wp.array[wp.int32]):
    """Write beyond the end."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        numbers_out[i + 1] = i


def run(kernel, *args):
    device = wp.get_device("cuda:0")
    out = wp.zeros(64, dtype=wp.int32, device=device)
    launch(kernel, 64, [*args, out], device)
    return out.numpy()


def test_all_lanes():
    assert run(kernel, False).tolist() == [*range(32), *range(32)]


def test_some_lanes():
    run(kernel, True)


def test_index():
    run(index_kernel)


def test_host_reads_too_early():
    device = wp.get_device("cuda:0")
    host = wp.zeros(4, dtype=wp.int32, device="cpu", pinned=True)
    wp.copy(host, wp.full(4, 7, dtype=wp.int32, device=device))
    assert not host.numpy().any()
    wp.synchronize_device(device)
    assert host.numpy().tolist() == [7, 7, 7, 7]
'''

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(which("gcc") is None, reason="the emulation needs GCC"),
]


def emulated(*arguments, folder):
    command = [sys.executable, "tools/emulate_cuda.py", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "EMULATE_CACHE": str(folder), "EMULATE_THREADS": "128"}
    options = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(command, check=False, **options)
    return done.returncode, done.stdout + done.stderr


def test_errors_of_kernels_are_found(tmp_path):
    file = tmp_path / "test_divergent.py"
    file.write_text(DIVERGENT)
    status, said = emulated(str(file), folder=tmp_path)
    assert status == 1 and "2 failed, 2 passed" in said, said
    assert "lanes wait for ever: thread" in said
    assert "index 64 of 64 in" in said


def test_calls_robots_and_teams(tmp_path):
    """Each of these failed on CUDA, or might have waited for ever."""
    status, said = emulated(
        "--device",
        "cuda:0",
        "tests/core/test_call.py",
        "tests/scene/test_robot_motions.py::test_known_times",
        "tests/query/test_distance_strategies.py::test_nearest[cuda:0-apart-rounds1-aabb-False]",
        folder=tmp_path,
    )
    assert status == 0, said
