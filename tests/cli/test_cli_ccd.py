"""``abut ccd``: a step, a folder of frames, errors on one line."""

import numpy as np
import pytest
import trimesh
from test_cli import answer, logger_left_as_it_was, run  # noqa: F401

import abut
from abut.cases import icosphere, joined


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Two balls of radius 1 that draw near: apart at first, then one into the other."""
    folder = tmp_path_factory.mktemp("frames")
    for k, apart in enumerate((3.0, 2.5, 1.0)):
        shape = joined(icosphere(80), icosphere(80).turned("x", 10).moved((apart, 0, 0)))
        trimesh.Trimesh(*shape, process=False).export(folder / f"f{9 + k}.ply")
    return folder


def test_a_step(frames, capsys):
    status, said = answer(capsys, "ccd", frames / "f10.ply", frames / "f11.ply")
    start, end = (abut.Mesh.load(frames / f"f{k}.ply", "cpu") for k in (10, 11))
    hits = abut.ccd(abut.Motion(start, end.vertices))
    assert status == 1
    assert said["impact_count"] == len(hits) == len(said["time"]) > 10
    assert said["first"] == said["safe_step"] == hits.first
    assert said["features"] == hits.features.numpy().tolist()
    assert said["vertices"] == start.vertex_count


def test_no_contact(frames, capsys):
    status, said = answer(capsys, "ccd", frames / "f9.ply", frames / "f10.ply")
    assert status == 0
    assert said["first"] is None and said["safe_step"] == 1.0


def test_first_and_gap(frames, capsys):
    files = frames / "f9.ply", frames / "f10.ply"
    assert answer(capsys, "ccd", *files, "--min-distance", "0.6")[0] == 1
    status, said = answer(capsys, "ccd", frames / "f10.ply", frames / "f11.ply", "--first")
    assert status == 1 and said["impact_count"] == 1


def test_a_table(frames, capsys):
    files = frames / "f10.ply", frames / "f11.ply"
    assert run("ccd", *files, "--device", "cpu", "--pairs", "3") == 1
    said = capsys.readouterr().out
    assert "impacts, the first at 0." in said
    assert "vertex-face" in said and "more (--pairs N)" in said


def test_folder_of_frames(frames, capsys):
    assert run("ccd", frames, "--follow", "--device", "cpu") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["f10.ply", "f11.ply"]  # 9, 10, 11
    assert lines[0].endswith("no") and "impacts" in lines[1]
    _, said = answer(capsys, "ccd", frames, "--follow")
    assert [step["impact_count"] > 0 for step in said["steps"]] == [False, True]
    _, same = answer(capsys, "ccd", frames, "--follow", "--method", "front")
    assert same["steps"] == said["steps"]
    _, first = answer(capsys, "ccd", frames, "--follow", "--first")
    assert [step["first"] for step in first["steps"]] == [step["first"] for step in said["steps"]]


@pytest.mark.parametrize("kind", ["obj", "off", "stl", "npz"])
def test_frames_of_any_format(frames, tmp_path, capsys, kind):
    """Numbers in names in order, other files left alone; the answers of the other formats."""
    _, said = answer(capsys, "ccd", frames, "--follow")
    for k in (9, 10, 11):
        mesh = trimesh.load(frames / f"f{k}.ply", process=False)
        if kind == "npz":
            np.savez(tmp_path / f"f{k}.npz", vertices=mesh.vertices, faces=mesh.faces)
        else:
            mesh.export(tmp_path / f"f{k}.{kind}")
    (tmp_path / "notes.txt").write_text("not a frame")
    status, same = answer(capsys, "ccd", tmp_path, "--follow")
    assert status == 1
    assert [step["frame"] for step in same["steps"]] == [f"f10.{kind}", f"f11.{kind}"]
    firsts = [[step["first"] for step in steps] for steps in (said["steps"], same["steps"])]
    assert firsts[0][0] is None and firsts[1][0] is None
    assert abs(firsts[0][1] - firsts[1][1]) < 1e-5  # texts are rounded


def test_one_file_with_all_frames(frames, tmp_path, capsys):
    _, said = answer(capsys, "ccd", frames, "--follow")
    meshes = [trimesh.load(frames / f"f{k}.ply", process=False) for k in (9, 10, 11)]
    shapes = np.array([mesh.vertices for mesh in meshes])
    np.savez(tmp_path / "all.npz", V=shapes, F=meshes[0].faces)
    status, same = answer(capsys, "ccd", tmp_path / "all.npz", "--follow")
    assert status == 1 and [step["frame"] for step in same["steps"]] == ["frame 1", "frame 2"]
    counts = [[step["impact_count"] for step in steps] for steps in (said["steps"], same["steps"])]
    assert counts[0] == counts[1]
    np.savez(tmp_path / "one.npz", V=shapes[0], F=meshes[0].faces)
    np.savez(tmp_path / "bad.npz", V=shapes)
    np.savez(tmp_path / "none.npz", V=shapes, F=meshes[0].faces[:0])
    for name, message in (
        ("one", "has 1 frames; at least 2 are needed"),
        ("bad", "no array faces or F"),
        ("none", "none.npz has no faces"),
    ):
        assert run("ccd", tmp_path / f"{name}.npz", "--follow", "--device", "cpu") == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("ccd {f}/f9.ply", "two frames, or one folder with --follow"),
        ("ccd {f}/f9.ply {f}/other.ply", "does not have the faces of the frame before it"),
        ("ccd {f}/f9.ply --follow", "is not a folder"),
        ("ccd {f}/f9.ply {f}/f10.ply --tolerance 0", "tolerance must be a number"),
    ],
)
def test_errors_are_one_line(frames, capsys, args, message):
    if not (frames / "other.ply").exists() and "other" in args:
        trimesh.Trimesh(np.eye(3), [[0, 1, 2]], process=False).export(frames / "other.ply")
    try:
        assert run(*args.format(f=frames).split(), "--device", "cpu") == 2
    finally:
        (frames / "other.ply").unlink(missing_ok=True)
    said = capsys.readouterr().err
    assert message in said and len(said.strip().splitlines()) == 1
