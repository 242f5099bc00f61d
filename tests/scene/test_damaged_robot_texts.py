"""SRDF files and planning scenes with random damage: read, or refused in one line."""

import numpy as np
import pytest
from test_planning_scene import MATRIX, REQUEST, SCENE
from test_planning_scene import URDF as PUSHER
from test_srdf import SRDF
from test_srdf import URDF as ARM

import abut


def damaged(text, rng):
    """Delete, repeat, swap or replace a piece of a text."""
    data = text.encode()
    first, second = sorted(rng.integers(0, len(data), 2).tolist())
    second = min(second, first + int(rng.integers(1, 40)))
    piece = data[first:second]
    other = [b"", piece * 3, piece[::-1], b"\xff\x00", b"1e999", b"-", b"&x", b"null", b"<a/>"]
    return data[:first] + other[rng.integers(len(other))] + data[second:]


def said(call, name):
    """Call; an error has to be one line that names the file."""
    try:
        call()
    except abut.AbutError as error:
        assert name in str(error) and "\n" not in str(error)
        return 1
    return 0


def test_damaged_srdf_files(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    rng, refused = np.random.default_rng(0), 0
    for _ in range(150):
        (tmp_path / "arm.srdf").write_bytes(damaged(SRDF, rng))
        refused += said(
            lambda: abut.Scene.load(tmp_path / "arm.urdf", "cpu", srdf=True), "arm.srdf"
        )
    assert 30 < refused


def test_damaged_planning_scenes(tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "arm.urdf").write_text(PUSHER)
    rng, refused, path = np.random.default_rng(1), 0, tmp_path / "scene.yaml"
    for _ in range(150):
        scene = abut.Scene.load(tmp_path / "arm.urdf", "cpu")
        path.write_bytes(damaged(SCENE + MATRIX, rng))
        failed = said(lambda s=scene: s.add_planning_scene(path), "scene.yaml")
        assert not failed or len(scene) == 3
        refused += failed
        path.write_bytes(damaged(REQUEST, rng))
        said(lambda s=scene: s.robot.read_request(path), "scene.yaml")
    assert 30 < refused
