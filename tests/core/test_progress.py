"""Progress bars: on a terminal, after two seconds, and gone at the end."""

import io
import os
import pty
import re
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import abut
from abut import cases
from abut.core import progress
from abut.core.launch import run_parallel
from abut.core.progress import Bar, Progress, present_bar, tracked


class Terminal(io.StringIO):
    def isatty(self):
        return True

    @property
    def shares(self):
        return [int(share) for share in re.findall(r"(\d+) %", self.getvalue())]


@pytest.fixture
def clock(monkeypatch):
    """Seconds, which a test lets pass."""
    now = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("ABUT_PROGRESS", raising=False)
    return stream


def work(clock, count=10, seconds=1.0):
    for _ in tracked(range(count), count):
        clock[0] += seconds


def test_long_work_is_shown_and_taken_away(clock, terminal):
    work(clock)
    assert terminal.shares == [20, 30, 40, 50, 60, 70, 80, 90]
    assert "abut [######                        ]  20 %, 8 s left" in terminal.getvalue()
    last = terminal.getvalue().split("\r")[-2:]
    assert last[0].isspace() and last[1] == "", "the line is blank"


def test_short_work_is_not_shown(clock, terminal):
    work(clock, seconds=0.1)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("why", ["a pipe", "ABUT_PROGRESS", "TERM", "a thread", "no stream"])
def test_nothing_is_shown_where_it_would_disturb(clock, terminal, monkeypatch, why):
    if why == "a pipe":
        monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    elif why == "no stream":
        progress.sys.stderr = None
    elif why != "a thread":
        monkeypatch.setenv(why, {"TERM": "dumb"}.get(why, "0"))
    if why == "a thread":
        thread = threading.Thread(target=work, args=(clock,))
        thread.start()
        thread.join()
    else:
        work(clock)
    assert terminal.getvalue() == ""


def test_a_terminal_that_goes_away_is_no_error(clock, terminal, monkeypatch):
    write = Terminal.write
    monkeypatch.setattr(Terminal, "write", lambda self, text: (write(self, text), self.close()))
    work(clock)
    assert terminal.closed and present_bar() is None


def test_steps_within_steps_fill_them(clock, terminal):
    for _ in tracked(range(2), 2):
        with Progress() as inner:
            for k in range(4):
                inner.step(k / 4, (k + 1) / 4)
                clock[0] += 3.0
    assert terminal.shares == [12, 25, 38, 50, 62, 75, 88]
    assert present_bar() is None


def test_the_bar_never_goes_back(clock, terminal):
    bar = Bar()
    clock[0] += 3.0
    for share in (0.5, 0.2, 0.7):
        bar.show(share)
        clock[0] += 1.0
    assert terminal.shares == [50, 50, 70]


def test_an_error_or_a_break_ends_the_bar(clock, terminal):
    with pytest.raises(ZeroDivisionError):
        for _ in tracked(range(5), 5):
            clock[0] += 3.0
            if terminal.shares:
                raise ZeroDivisionError
    for _ in tracked(range(5), 5):
        break
    assert present_bar() is None and terminal.getvalue().endswith("\r")


def test_slices_of_a_launch_are_shown(clock, terminal, threads):
    threads(1)
    done = []

    def call():
        clock[0] += 1.0
        done.append(None)

    run_parallel([call] * 8)
    assert len(done) == 8 and terminal.shares == [25, 38, 50, 62, 75, 88]


def brute_ccd(device):
    sheet = cases.plane(12, 12, size=2.0)
    noise = 0.3 * np.random.default_rng(0).normal(size=sheet.vertices.shape)
    return abut.ccd(abut.Motion(abut.Mesh(*sheet, device), sheet.vertices + noise), method="brute")


def turning(device):
    ball = abut.Mesh(*cases.icosphere(320), device)
    turn = abut.Motion(ball, end_pose=np.diag([-1.0, -1.0, 1.0, 1.0]))
    return abut.ccd(turn, abut.Motion(ball, ball.vertices))


def steps_of_a_scene(device):
    ball = abut.Mesh(*cases.icosphere(320), device)
    scene = abut.Scene([ball, ball])
    return scene.ccd(np.tile(scene.poses.numpy(), (3, 1, 1, 1)), min_distance=0.1)


@pytest.mark.parametrize("ask", [brute_ccd, turning, steps_of_a_scene])
def test_queries_show_their_steps(monkeypatch, terminal, ask, device):
    want = ask(device).numpy()
    monkeypatch.setattr(progress, "WAIT_S", 0.0)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    got = ask(device).numpy()
    assert max(terminal.shares) > 0 and terminal.getvalue().endswith("\r")
    for column in want:
        np.testing.assert_array_equal(got[column], want[column])


SCRIPT = """
import sys, abut, numpy as np
from abut import cases
from abut.core import progress
progress.WAIT_S = 0.0
mesh = abut.Mesh(*cases.icosphere(320), "cpu")
abut.ccd(abut.Motion(mesh, mesh.vertices.numpy() * 1.1), method="brute")
"""


@pytest.mark.parametrize(("setting", "shown"), [("1", True), ("0", False)])
def test_on_a_real_terminal(setting, shown):
    reader, writer = pty.openpty()
    environment = {**os.environ, "ABUT_PROGRESS": setting, "TERM": "xterm"}
    command = [sys.executable, "-c", SCRIPT]
    how = {"stdin": writer, "stdout": subprocess.PIPE, "stderr": writer, "env": environment}
    done = subprocess.run(command, check=True, timeout=120, **how)
    os.close(writer)
    os.set_blocking(reader, False)
    try:
        written = os.read(reader, 1 << 20)
    except OSError:  # nothing was written
        written = b""
    os.close(reader)
    assert (b" %" in written) == shown
    assert done.stdout == b""


def test_a_pipe_gets_nothing():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, timeout=120, capture_output=True
    )
    assert b"%" not in done.stderr and done.stdout == b""
