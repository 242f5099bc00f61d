"""``abut overlap``."""

import json

import numpy as np
import pytest
import trimesh

from abut.cli import main


@pytest.fixture
def files(tmp_path):
    slab, duct = tmp_path / "slab.stl", tmp_path / "duct.stl"
    trimesh.creation.box((4, 4, 0.5)).export(slab)
    trimesh.creation.box((1, 1, 4)).export(duct)
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = 1.75, 2.5, 4
    np.save(tmp_path / "poses.npy", poses)
    np.savetxt(tmp_path / "pose.txt", poses[0])
    return tmp_path


def run(*words):
    return main([str(word) for word in words])


def test_numbers_of_one_pose(files, capsys):
    one = ["overlap", files / "slab.stl", files / "duct.stl", "--pose-b", files / "pose.txt"]
    assert run(*one, "--volume", "--json", "--device", "cpu") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["relation"] == "crossing"
    assert found["inside_a"] == pytest.approx(0.25, abs=1e-5)
    assert found["separation"] == pytest.approx([0.75, 0, 0], abs=1e-5)
    assert found["volume"] == pytest.approx(0.75 * 0.5, rel=1e-12)
    assert found["regions"] == 1
    assert run(*one, "--along", 0, 0, -1, "--device", "cpu") == 1
    assert "move b by (-0, -0, -2.25)" in capsys.readouterr().out.replace("(0, 0,", "(-0, -0,")


def test_a_batch_and_its_picture(files, capsys):
    words = [files / "slab.stl", files / "duct.stl", "--pose-b", files / "poses.npy"]
    picture = files / "overlap.png"
    assert run("overlap", *words, "--picture", picture, "--size", "90x60", "--device", "cpu") == 1
    text = capsys.readouterr().out
    assert "1 crossing, 1 touching, 1 apart" in text
    assert picture.stat().st_size > 500


def test_apart_and_open(files, capsys, monkeypatch):
    np.savetxt(files / "pose.txt", [[1, 0, 0, 9], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    words = ["overlap", files / "slab.stl", files / "duct.stl", "--device", "cpu"]
    assert run(*words, "--pose-b", files / "pose.txt") == 0
    assert "apart" in capsys.readouterr().out
    whole = trimesh.creation.box()
    trimesh.Trimesh(whole.vertices, whole.faces[1:]).export(files / "duct.stl")
    monkeypatch.setattr("abut.cli.overlap.run_timed", None)  # nothing is loaded or measured
    assert run(*words) == 2
    assert f"b ({files / 'duct.stl'}) is open" in capsys.readouterr().err
