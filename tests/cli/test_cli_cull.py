"""``abut cull``: the answers of the library, and a picture."""

import json
import logging
import re

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from abut.cli import main
from abut.visibility.gl.driver import unavailable

KNOT, BALL = cases.pair("knot", 600)


@pytest.fixture(autouse=True)
def logger_left_as_it_was():
    log = logging.getLogger("abut")
    handlers, propagate = list(log.handlers), log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("meshes")
    shapes = {"knot": KNOT, "ball": BALL, "far": BALL.moved((9.0, 0.0, 0.0))}
    parts = {name: trimesh.Trimesh(*shape, process=False) for name, shape in shapes.items()}
    for name, part in parts.items():
        part.export(folder / f"{name}.ply")
    trimesh.Scene([parts["knot"], parts["ball"]]).export(folder / "both.glb")
    return folder


def run(*args):
    try:
        return main([str(arg) for arg in args])
    except SystemExit as stop:
        return stop.code


def answer(capsys, *args):
    status = run("cull", *args, "--json", "--device", "cpu")
    return status, json.loads(capsys.readouterr().out)


def test_matches_the_library(files, capsys):
    names = ("knot", "ball", "far")
    paths = [files / f"{name}.ply" for name in names]
    status, said = answer(capsys, *paths, "--pixels", 200, "--views", "xZ")
    culled = abut.cull([abut.Mesh.load(path, "cpu") for path in paths], pixels=200, views="xZ")
    assert status == 0
    for name, rows in culled.numpy().items():
        assert said[name] == rows.tolist()
    assert said["objects"] == [0, 1]
    assert [row["view"] for row in said["passes"] if row["pixels"] == 200] == ["x", "Z"]
    assert said["options"]["method"] == "far"
    assert {"kernels", "face", "pairs"} <= set(said["milliseconds"])


@pytest.mark.parametrize("method", ["cullide", "quick_cullide"])
def test_methods_and_levels(files, capsys, method):
    paths = files / "knot.ply", files / "ball.ply"
    options = ("--method", method, "--pixels", 128, "--level", "object")
    status, said = answer(capsys, *paths, *options)
    assert (status, said["objects"], said["object_pairs"]) == (0, [0, 1], [[0, 1]])
    assert {row["level"] for row in said["passes"]} == {"object"}


def test_objects_of_one_file(files, capsys):
    status, said = answer(capsys, files / "both.glb", "--pixels", 64)
    assert status == 0
    assert said["objects"] == [0, 1]
    assert {row["faces"] for row in said["inputs"]} == {len(KNOT.faces), len(BALL.faces)}


def test_table_and_picture(files, capsys, tmp_path):
    from PIL import Image

    picture = tmp_path / "out.png"
    paths = files / "knot.ply", files / "ball.ply"
    options = ("--pixels", 64, "--size", "90x60", "--device", "cpu")
    assert run("cull", *paths, *options, "--picture", picture) == 0
    out = capsys.readouterr().out
    assert "2 of 2 may collide" in out
    assert str(picture) in out
    assert "visible in both" in out and re.search(r"time +\d+\.\d\d ms \(cull ", out)
    with Image.open(picture) as image:
        pixels = np.asarray(image).astype(int)
    red = (pixels[..., 0] > 110) & (pixels[..., 1:].max(axis=2) < pixels[..., 0] - 60)
    assert pixels.shape == (60, 90, 3)
    assert red.sum() > 50
    run("cull", paths[0], files / "far.ply", *options, "--picture", picture)
    with Image.open(picture) as image:
        pixels = np.asarray(image).astype(int)
    red = (pixels[..., 0] > 110) & (pixels[..., 1:].max(axis=2) < pixels[..., 0] - 60)
    assert red.sum() == 0


def test_errors(files, capsys):
    path = files / "knot.ply"
    assert run("cull", path, path, "--views", "xw", "--device", "cpu") == 2
    assert run("cull", path, path, "--pixels", "no") == 2
    assert run("cull", files / "missing.ply") == 2
    lines = capsys.readouterr().err.splitlines()
    assert all("Traceback" not in line for line in lines)
    assert "views must be" in lines[0]


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
def test_graphics_pipeline(files, capsys):
    paths = files / "knot.ply", files / "ball.ply"
    _, theirs = answer(capsys, *paths, "--pixels", 128, "--backend", "gl")
    _, ours = answer(capsys, *paths, "--pixels", 128, "--order", "drawn")
    assert theirs["options"]["backend"] == "gl"
    assert 0.8 < len(theirs["faces"]) / len(ours["faces"]) < 1.25
