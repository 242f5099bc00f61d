"""Streams that are closed or full, characters that cannot be shown, interrupts."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import trimesh

from abut import cases
from abut.cli import main


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two spheres that meet."""
    folder = tmp_path_factory.mktemp("spheres")
    paths = [str(folder / f"{side}.ply") for side in "ab"]
    for path, shape in zip(paths, cases.pair("spheres", faces=3000), strict=True):
        trimesh.Trimesh(*shape, process=False).export(path)
    return paths


def abut(*words, redirect="", **variables):
    """Run the command in a shell that redirects its streams."""
    command = ["bash", "-c", f'"$0" -m abut "$@" {redirect}', sys.executable, *map(str, words)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, env=environment, check=False, timeout=120)


@pytest.mark.parametrize("buffered", [{"PYTHONUNBUFFERED": ""}, {"PYTHONUNBUFFERED": "1"}])
@pytest.mark.parametrize("words", [["--json"], ["--pairs", "1"], ["--help"]])
def test_a_full_disk_is_an_error(pair, words, buffered):
    """Regression: exit status 1, which means contact, or 120, and no message."""
    done = abut("collide", *pair, "--device", "cpu", *words, redirect="> /dev/full", **buffered)
    assert done.returncode == 2
    assert done.stderr == b"abut: standard output: No space left on device\n"


def test_closed_standard_output(pair):
    done = abut("collide", *pair, "--device", "cpu", redirect=">&-")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"standard output" in done.stderr


def test_closed_standard_error(pair):
    """Regression: an AttributeError on standard output."""
    done = abut("collide", *pair, "--device", "cpu", "--json", redirect="2>&-")
    assert done.returncode == 1 and json.loads(done.stdout)["colliding"]
    done = abut("collide", pair[0], "none.ply", redirect="2>&-")
    assert (done.returncode, done.stdout) == (2, b"")


def test_full_standard_error():
    done = abut("collide", "none.ply", "none.ply", redirect="2> /dev/full")
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_of_few_characters(pair, encoding):
    """Regression: UnicodeEncodeError and exit status 2."""
    done = abut("collide", *pair, "--device", "cpu", PYTHONIOENCODING=encoding)
    assert done.returncode == 1 and b"more (--pairs N)" in done.stdout
    done = abut("collide", "b\u00e4ll\u2026.ply", pair[0], PYTHONIOENCODING=encoding)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("module", ["abut.cli.command", "abut.cli.collide"])
def test_an_interrupt_while_importing(module, monkeypatch, capsys, pair):
    """Regression: a traceback."""

    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name == module:
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert main(["collide", *pair]) == 130
    assert capsys.readouterr().err == "abut: interrupted\n"


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_interrupt_of_brute_force(tmp_path, threads):
    """Regression: it ran on for 45 seconds and more."""
    path = tmp_path / "cloth.ply"
    trimesh.Trimesh(*cases.single("folded_cloth", 200_000), process=False).export(path)
    command = [sys.executable, "-m", "abut", "self", path, "--method", "brute", "--device", "cpu"]
    environment = {**os.environ, "ABUT_THREADS": threads}
    ended = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    time.sleep(10)
    ended.send_signal(signal.SIGINT)
    start = time.monotonic()
    told = ended.communicate()[1]
    assert ended.returncode == 130 and told.endswith(b"abut: interrupted\n")
    assert time.monotonic() - start < 5


def test_outputs_are_tried_before_the_work(tmp_path, pair, capsys, monkeypatch):
    monkeypatch.setattr("abut.cli.field.load", lambda *_: pytest.fail("the work was begun"))
    (tmp_path / "file").touch()
    assert main(["field", "build", pair[0], "-o", str(tmp_path / "file" / "f.npz")]) == 2
    told = capsys.readouterr().err
    assert "f.npz cannot be written" in told and told.count("\n") == 1


def damaged(folder, kind):
    """A file that cannot be read."""
    ball = trimesh.Trimesh(*cases.icosphere(80), process=False)
    if kind == "folder":
        return folder
    path = folder / f"ball.{'step' if kind == 'step' else kind.split()[-1]}"
    whole = ball.export(file_type="stl_ascii" if kind == "ascii stl" else "stl")
    whole = whole if isinstance(whole, bytes) else whole.encode()
    text = {
        "step": b"ISO-10303-21;",
        "far obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
        "zero obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n",
        "header stl": whole[:60],
    }
    path.write_bytes(text.get(kind, whole[: len(whole) // 2]))
    return path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("folder", "is a folder; name a file in it."),
        ("stl", "ball.stl is damaged: it declares 80 faces, but only 39 are there."),
        ("header stl", "it ends after 60 bytes, within its header."),
        ("ascii stl", "a facet is not whole; it may be cut off."),
        (
            "step",
            "ball.step: STEP files need cascadio; pip install cascadio brings it. abut clash "
            "reads their parts with the extra cad.",
        ),
        ("far obj", "ball.obj, line 4: a face refers to vertex 9 but the file has 3 vertices."),
        ("zero obj", "line 4: a face refers to vertex 0; OBJ counts vertices from 1."),
    ],
)
def test_files_that_cannot_be_read(tmp_path, pair, capsys, monkeypatch, kind, message):
    """Regression: a folder did not exist, and STEP had no module named cascadio."""
    monkeypatch.setitem(sys.modules, "cascadio", None)
    if kind == "stl":
        pytest.importorskip("charset_normalizer")  # with which trimesh reads text
    assert main(["distance", pair[0], str(damaged(tmp_path, kind)), "--device", "cpu"]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and said.out == ""
