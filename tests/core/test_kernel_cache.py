"""Compiled kernels: damaged, without room, in folders that cannot be written."""

import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import warp as wp

import abut
from abut.core import kernel_cache
from abut.core.kernel_cache import load_kernels
from limits import files_limited_to

CPU = "cpu"


def make_kernel(number):
    """Make a kernel that writes a number, in a module of its own."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def number_kernel(
        # out
        numbers_out: wp.array[wp.int32],
    ):
        """Write the number."""
        numbers_out[wp.tid()] = wp.static(number)

    return number_kernel


def answer_of(kernel):
    out = wp.zeros(3, dtype=wp.int32, device=CPU)
    wp.launch(kernel, 3, outputs=[out], device=CPU)
    return out.numpy().tolist()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of kernels."""
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "kernels"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(wp.config, "log_level", wp.LOG_WARNING)
    return tmp_path / "kernels"


def load(kernel):
    kernel.module.unload()
    load_kernels(kernel.module, wp.get_device(CPU))


def flip(content):
    half = len(content) // 2
    return content[:64] + bytes(b ^ 0x5A for b in content[64:half]) + content[half:]


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) * 2 // 3],
    "flipped": flip,
    "garbage": lambda content: np.random.default_rng(0).bytes(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["*.o", "*.meta"])
def test_a_damaged_kernel_is_compiled_again(folder, caplog, capfd, damage, file):
    """Regression: it failed every start, or crashed."""
    kernel = make_kernel(3 + len(damage))
    load(kernel)
    (path,) = folder.glob(f"wp_*/{file}")
    good = path.read_bytes()
    path.write_bytes(DAMAGES[damage](good))
    with caplog.at_level(logging.WARNING, "abut"):
        load(kernel)
    assert answer_of(kernel) == [3 + len(damage)] * 3
    assert "damaged kernels in" in caplog.text and str(folder) in caplog.text
    assert path.is_file() and path.stat().st_size == len(good)


@pytest.mark.parametrize("damage", ["empty", "cut"])
def test_damage_without_a_seal(folder, capfd, damage):
    """A kernel of an earlier version."""
    kernel = make_kernel(20 + len(damage))
    load(kernel)
    for seal in folder.glob("wp_*/*.crc32"):
        seal.unlink()
    (path,) = folder.glob("wp_*/*.o")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    load(kernel)
    assert answer_of(kernel) == [20 + len(damage)] * 3


def test_good_kernels_are_loaded(folder, caplog, monkeypatch):
    kernel = make_kernel(30)
    load(kernel)
    monkeypatch.setattr(kernel_cache, "_require_room", lambda: pytest.fail("compiled again"))
    load(kernel)
    assert answer_of(kernel) == [30] * 3 and "damaged" not in caplog.text


def test_a_folder_that_cannot_be_written(folder, caplog, tmp_path, monkeypatch):
    folder.touch()  # a file
    kernel = make_kernel(40)
    with caplog.at_level(logging.WARNING, "abut"):
        load(kernel)
    assert answer_of(kernel) == [40] * 3
    assert re.search(rf"kept in {tmp_path}/abut-kernels-\d+, because {folder}", caplog.text)
    assert "WARP_CACHE_PATH" in caplog.text
    (private,) = tmp_path.glob("abut-kernels-*")
    assert private.stat().st_mode & 0o077 == 0


def test_a_full_disk(folder):
    """Regression: LLVM ended the process."""
    kernel = make_kernel(50)
    with files_limited_to(1 << 20), pytest.raises(abut.ToolError, match="WARP_CACHE_PATH") as error:
        load(kernel)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)
    load(kernel)  # there is room again
    assert answer_of(kernel) == [50] * 3


def test_folders_of_others_are_not_used(folder, tmp_path):
    """Native code that another user can write must not be loaded."""
    folder.touch()
    open_folder = tmp_path / f"abut-kernels-{os.getuid()}"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    load(make_kernel(60))
    assert list(open_folder.iterdir()) == []
    assert Path(wp.config.kernel_cache_dir).is_relative_to(tmp_path)


def test_a_home_that_cannot_be_written(tmp_path):
    """Regression: even ``abut info`` failed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("WARP_CACHE_PATH",)}
    environment |= {"HOME": "/proc/none", "TMPDIR": str(tmp_path)}
    environment.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-m", "abut", "info"]
    done = subprocess.run(command, capture_output=True, env=environment, text=True, check=False)
    assert done.returncode == 0 and str(tmp_path) in done.stdout
    assert done.stderr.count("\n") == 1 and "WARP_CACHE_PATH" in done.stderr


PROGRAM = """
import abut
from abut import cases
print(abut.Mesh(*cases.box(), "cpu"))
"""


@pytest.mark.slow
def test_killed_while_compiling(tmp_path):
    """The next start compiles again."""
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    for delay in (0.6, 0.9, 1.2, 1.5, 2.0):
        killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(delay)
        killed.kill()
        killed.wait()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "12 faces" in done.stdout
