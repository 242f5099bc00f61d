"""Moving demos run, are timed, checked and filmed."""

import json
import logging

import numpy as np
import pytest
import trimesh

from abut import cases
from abut.cli import demo, main
from abut.sim import cloth_scenes


@pytest.fixture(autouse=True)
def logger_left_as_it_was():
    log = logging.getLogger("abut")
    handlers, propagate = list(log.handlers), log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate


TINY = {
    "dragons": 7200,
    "cloth-table": 200,
    "cloth-ball": 200,
    "leaves": 1500,
    "balls": 1500,
    "crank": 600,
    "fracture": 1500,
}


def run(*args):
    try:
        return main(["demo", *map(str, args)])
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("name", demo.ANIMATED)
def test_each_demo(name, device, tmp_path, capsys):
    small = ["--faces", TINY[name], "--frames", 2, "--size", "60x40", "--device", device]
    status = run(name, *small, "--out", tmp_path, "--check", "--json")
    out, err = capsys.readouterr()
    assert status == 0, err
    said = json.loads(out)
    assert (said["frames"], said["checked"], said["wrong"]) == (2, 2, 0)
    assert all((tmp_path / f"{name}.{kind}").is_file() for kind in ("png", "gif"))
    assert said["files"] == [str(tmp_path / f"{name}.{kind}") for kind in ("png", "gif")]
    stages = {stage: ms["mean"] for stage, ms in said["milliseconds"].items()}
    frame = stages.pop("frame")
    assert 0 < sum(stages.values()) <= frame * 1.01


def test_table_for_people(capsys):
    assert run("cloth-ball", "--faces", 200, "--frames", 1, "--no-film", "--device", "cpu") == 0
    said = capsys.readouterr().out
    assert "a cloth falls over a ball" in said
    for word in ("ms a frame", "near", "motion", "safe way", "meeting"):
        assert word in said


def test_check_reports_wrong_frames(monkeypatch, capsys):
    right = cloth_scenes.near_face_rows
    monkeypatch.setattr(
        cloth_scenes, "near_face_rows", lambda c, m: right(c, m)[: 7 if m == "far" else 8]
    )
    args = ["--faces", 200, "--frames", 2, "--no-film", "--check", "--json", "--device", "cpu"]
    assert run("cloth-table", *args) == 1
    assert json.loads(capsys.readouterr().out)["wrong"] == 2


@pytest.mark.parametrize("name", ["cloth-table", "leaves"])
def test_brute_force_finds_the_same(name, capsys):
    small = ["--faces", TINY[name], "--frames", 4, "--no-film", "--device", "cpu", "--json"]
    assert run(name, *small, "--check", "brute") == 0
    assert json.loads(capsys.readouterr().out)["checked"] == 4


def test_given_meshes(tmp_path, capsys):
    files = []
    for name, shape in {"whole": cases.torus(24, 12), "falling": cases.icosphere(80, 0.3)}.items():
        files += ["--mesh", tmp_path / f"{name}.ply"]
        trimesh.Trimesh(*shape, process=False).export(files[-1])
    small = ["--faces", 1500, "--frames", 3, "--no-film", "--device", "cpu", "--json", "--check"]
    assert run("fracture", *files, *small) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["bodies"]["most"] > 5
    assert run("fracture", *files[:2], *small) == 2
    assert run("balls", *files, *small) == 2
    assert "takes no meshes" in capsys.readouterr().err


def test_still_demos_have_no_frames(capsys):
    assert run("knot", "--frames", 3) == 2
    assert "does not move" in capsys.readouterr().err


def test_parts_have_distinct_colours():
    thing = demo.Seen(None, "piece", np.array([0, 1, 2]))
    colors = demo._color(thing)
    assert len({tuple(c) for c in colors.round(3).tolist()}) == 3
    assert colors.min() >= 0 and colors.max() <= 1
