"""abut field build and query."""

import json
import logging

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from abut.cli import main


@pytest.fixture(autouse=True)
def logger_left_as_it_was():
    log = logging.getLogger("abut")
    handlers, propagate = list(log.handlers), log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fields")
    trimesh.Trimesh(*cases.icosphere(1280), process=False).export(folder / "ball.ply")
    trimesh.Trimesh(*cases.icosphere(320, 0.5), process=False).export(folder / "small.ply")
    hole = cases.icosphere(1280)
    trimesh.Trimesh(hole.vertices, hole.faces[3:], process=False).export(folder / "open.ply")
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[:, 0, 3] = [1.4, 3.0]
    np.savetxt(folder / "one.txt", poses[0])
    np.save(folder / "two.npy", poses)
    assert run("build", folder / "ball.ply", "-o", folder / "ball.npz", "--resolution", 48) == 0
    return folder


def run(*args):
    try:
        return main(["field", *map(str, args), "--device", "cpu"])
    except SystemExit as stop:
        return stop.code


def test_build_report(folder, capsys):
    options = ["--resolution", 20, "--margin", 0.5, "--band", 0.4, "--json"]
    assert run("build", folder / "ball.ply", "-o", folder / "band.npz", *options) == 0
    said = json.loads(capsys.readouterr().out)
    field = abut.DistanceField.load(folder / "band.npz", "cpu")
    assert said["shape"] == list(field.box.shape) == [20, 20, 20]
    assert said["sign"] == "pseudonormal" and said["bytes"] == field.nbytes == 80000
    assert said["most"] == pytest.approx(0.4) and said["least"] == pytest.approx(-0.4)
    assert run("build", folder / "open.ply", "-o", folder / "open.npz", "--spacing", 0.2) == 0
    shown = capsys.readouterr().out
    assert "by winding" in shown and "13 x 13 x 13 samples, 0.2 apart" in shown


def test_query_one_pose_and_many(folder, capsys):
    ask = ["query", folder / "ball.npz", folder / "small.ply", "--pose"]
    assert run(*ask, folder / "one.txt", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["value"] == pytest.approx(-0.1, abs=0.03)
    assert run(*ask, folder / "two.npy", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["value"] == pytest.approx([-0.1, 1.5], abs=0.03)
    assert run(*ask, folder / "one.txt") == 0
    assert "deepest" in capsys.readouterr().out
    assert run(*ask, folder / "two.npy") == 0
    assert "2, 1 of them inside" in capsys.readouterr().out


def test_hints_about_units(folder, capsys):
    trimesh.Trimesh(*cases.icosphere(80, 1e3), process=False).export(folder / "huge.ply")
    ask = ["query", folder / "ball.npz", folder / "huge.ply"]
    assert run(*ask, "--json") == 0
    hint = json.loads(capsys.readouterr().out)["unit_hint"]
    assert hint.startswith("the mesh is ") and "same unit" in hint
    assert run(*ask) == 0
    assert hint in capsys.readouterr().out


def test_errors_are_one_line(folder, capsys):
    normals = ["-o", folder / "x.npz", "--sign", "pseudonormal"]
    assert run("build", folder / "open.ply", *normals) == 2
    assert "is open" in capsys.readouterr().err
    assert run("build", folder / "ball.ply", "-o", folder / "x.vdb", "--resolution", 5) == 2
    assert "should end in .npz or .nvdb" in capsys.readouterr().err
    assert run("query", folder / "ball.ply", folder / "ball.ply") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run("build", folder / "ball.ply") == 2
