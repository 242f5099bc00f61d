"""Places and sizes in numbers, hints about units, folders and several files, animations."""

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


def export(shape, path):
    trimesh.Trimesh(*shape, process=False).export(path)
    return path


def run(*args):
    try:
        return main([*map(str, args), "--device", "cpu"])
    except SystemExit as stop:
        return stop.code


def answer(capsys, *args):
    status = run(*args, "--json")
    return status, json.loads(capsys.readouterr().out)


@pytest.fixture
def boxes(tmp_path):
    """A cube, and one that reaches half a unit into it along x."""
    export(cases.box((1, 2, 4)), tmp_path / "a.ply")
    export(cases.box((1, 1, 1)).moved((0.5, 0.25, 0.5)), tmp_path / "b.ply")
    return tmp_path / "a.ply", tmp_path / "b.ply"


def test_sizes_and_place_of_a_contact(boxes, capsys):
    status, said = answer(capsys, "collide", *boxes)
    assert status == 1
    assert said["a"]["size"] == [1, 2, 4] and said["b"]["size"] == [1, 1, 1]
    assert np.allclose(said["where"]["lower"], [0.5, -0.25, 0.0])
    assert np.allclose(said["where"]["upper"], [0.5, 0.75, 1.0])
    assert np.allclose(said["where"]["centre"], [0.5, 0.25, 0.5])
    assert run("collide", *boxes) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "12 faces, size 1 x 2 x 4" in out
    assert "where centre (0.5, 0.25, 0.5), box (0.5, -0.25, 0) to (0.5, 0.75, 1)" in out


def test_the_place_is_that_of_the_poses(boxes, tmp_path, capsys):
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 1, 3] = [50, 10, 0]
    np.save(tmp_path / "poses.npy", poses)
    both = ["--pose-a", tmp_path / "poses.npy", "--pose-b", tmp_path / "poses.npy"]
    _, said = answer(capsys, "collide", *boxes, *both)
    assert np.allclose(said["where"]["centre"], [0.5, 50.25, 0.5])
    moved = ["--pose-b", tmp_path / "poses.npy"]
    run("collide", *boxes, *moved)
    assert "centre of pose 2 (0.5, 0.25, 0.5)" in capsys.readouterr().out


def test_no_contact_has_no_place(boxes, tmp_path, capsys):
    export(cases.box().moved((9, 0, 0)), tmp_path / "far.ply")
    _, said = answer(capsys, "collide", boxes[0], tmp_path / "far.ply")
    assert said["where"] is None
    run("collide", boxes[0], tmp_path / "far.ply")
    assert "where" not in capsys.readouterr().out


def test_the_place_of_an_enclosed_mesh(tmp_path, capsys):
    outer = export(cases.icosphere(320, 3.0), tmp_path / "outer.ply")
    inner = export(cases.box().moved((0.5, 0.5, 0.0)), tmp_path / "inner.ply")
    _, said = answer(capsys, "collide", outer, inner, "--solid")
    assert said["contained"] and np.allclose(said["where"]["centre"], [0.5, 0.5, 0.0])
    assert np.allclose(said["where"]["upper"], [1.0, 1.0, 0.5])


@pytest.mark.parametrize("command", ["self", "within", "scene"])
def test_places_of_other_answers(command, boxes, tmp_path, capsys):
    both = cases.shape.joined(*(cases.Shape(*trimesh_arrays(path)) for path in boxes))
    words = {
        "self": ["self", export(both, tmp_path / "both.ply")],
        "within": ["within", *boxes, 0.0],
        "scene": ["scene", *boxes],
    }[command]
    _, said = answer(capsys, *words)
    where = said["contacts"][0]["where"] if command == "scene" else said["where"]
    assert np.allclose(where["centre"], [0.5, 0.25, 0.5], atol=0.26)
    run(*words)
    assert "where" in capsys.readouterr().out


def trimesh_arrays(path):
    mesh = trimesh.load(path, process=False)
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def test_the_place_of_an_impact(tmp_path, capsys):
    still = cases.plane(2, 2, 4.0)
    ends = []
    for k, height in enumerate((1.0, -1.0)):
        tip = np.array([[0.5, 0.25, height], [0.7, 0.25, height + 2], [0.5, 0.45, height + 2]])
        whole = cases.shape.joined(still, cases.Shape(tip, np.array([[0, 1, 2]], np.int32)))
        ends.append(export(whole, tmp_path / f"f{k}.ply"))
    status, said = answer(capsys, "ccd", *ends)
    assert status == 1 and said["first"] == pytest.approx(0.5, abs=1e-5)
    assert np.allclose(said["where"]["centre"], [0.5, 0.25, 0.0], atol=1e-4)
    run("ccd", *ends)
    said = " ".join(capsys.readouterr().out.split())
    assert "first impact vertex 4 and face 0 where centre (0.5, 0.25, " in said
    assert "1 impact, the first at" in said and "box" not in said


@pytest.mark.parametrize("times", [1000, 50])
def test_hints_about_units(times, boxes, tmp_path, capsys):
    big = export(cases.box((4 * times,) * 3), tmp_path / "big.ply")
    hint = f"b is {times:,} times as large as a: do both use the same unit?"
    for command in ("collide", "distance"):
        _, said = answer(capsys, command, boxes[0], big)
        assert said.get("unit_hint") == (hint if times == 1000 else None)
        run(command, boxes[0], big)
        assert (hint in capsys.readouterr().out) == (times == 1000)


def test_hints_about_units_of_files_of_a_scene(boxes, tmp_path, capsys):
    big = export(cases.box((4000,) * 3), tmp_path / "big.ply")
    _, said = answer(capsys, "scene", boxes[0], big)
    assert said["unit_hint"].startswith(f"{big} is 1,000 times as large as {boxes[0]}")


@pytest.fixture
def folder(tmp_path):
    """Files whose order is that of their numbers, and one that is no mesh."""
    folder = tmp_path / "parts"
    folder.mkdir()
    export(cases.single("folded_cloth", faces=600), folder / "part10.ply")
    export(cases.box(), folder / "part9.ply")
    export(cases.box().moved((0.5, 0, 0)), folder / "part2.obj")
    (folder / "notes.txt").write_text("not a mesh")
    return folder


def test_self_of_a_folder_and_of_several_files(folder, capsys):
    status, said = answer(capsys, "self", folder)
    names = [str(folder / name) for name in ("part2.obj", "part9.ply", "part10.ply")]
    assert status == 1 and [row["file"] for row in said["files"]] == names
    cloth = abut.Mesh.load(names[2], "cpu")
    counts = [row["pair_count"] for row in said["files"]]
    assert counts == [0, 0, len(abut.self_collide(cloth))]
    assert said["files"][0]["where"] is None and said["files"][2]["where"] is not None
    assert run("self", *names[:2]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{name}: no" for name in names[:2]]
    assert run("self", names[0], names[2]) == 1
    assert f"{counts[2]} pairs, centre (" in capsys.readouterr().out


def test_a_scene_of_a_folder_and_of_several_files(folder, boxes, capsys):
    status, said = answer(capsys, "scene", folder, boxes[0])
    assert status == 1 and said["objects"] == 4
    pairs = {tuple(row["objects"]) for row in said["contacts"]}
    assert ("part2.obj", "part9.ply") in pairs and ("part9.ply", "a.ply") in pairs
    assert run("scene", boxes[0], boxes[0]) == 1
    assert "a.ply #1" in capsys.readouterr().out


def test_files_of_many_objects_keep_their_names(tmp_path, boxes, capsys):
    scene = trimesh.Scene()
    for k in range(2):
        shift = trimesh.transformations.translation_matrix((0, 0, 0.5 * k))
        scene.add_geometry(trimesh.Trimesh(*cases.box()), node_name=f"n{k}", transform=shift)
    scene.export(tmp_path / "parts.glb")
    _, said = answer(capsys, "scene", tmp_path / "parts.glb", boxes[0])
    names = {name for row in said["contacts"] for name in row["objects"]}
    assert names == {"parts.glb/n0", "parts.glb/n1", "a.ply"}


def test_cull_takes_a_folder(folder, capsys):
    status, said = answer(capsys, "cull", folder, "--pixels", 64)
    assert status == 0 and len(said["inputs"]) == 3


def test_folders_without_meshes(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for command in ("self", "scene", "cull"):
        assert run(command, tmp_path / "empty") == 2
        said = capsys.readouterr().err
        assert "empty holds no mesh file" in said and said.count("\n") == 1


@pytest.fixture
def animation(tmp_path):
    """Two balls of one mesh, which meet in the last two of four frames."""
    ball = cases.icosphere(80)
    faces = cases.shape.joined(ball, ball).faces
    shapes = [
        np.concatenate([ball.vertices, ball.moved((x, 0, 0)).vertices]) for x in (4, 3, 1.5, 1)
    ]
    folder = tmp_path / "frames"
    folder.mkdir()
    for k, vertices in enumerate(shapes):
        export(cases.Shape(vertices, faces), folder / f"f{k + 8}.ply")
    np.savez(tmp_path / "all.npz", vertices=np.array(shapes), faces=faces)
    return folder, tmp_path / "all.npz"


def test_self_collisions_of_an_animation(animation, capsys):
    for path in animation:
        status, said = answer(capsys, "self", path, "--follow")
        counts = [row["pair_count"] for row in said["frames"]]
        assert status == 1 and counts[:2] == [0, 0] and min(counts[2:]) > 0
    mesh = abut.Mesh.load(animation[0] / "f10.ply", "cpu")
    assert counts[2] == len(abut.self_collide(mesh))
    assert run("self", animation[0], "--follow") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f8.ply: no", "f9.ply: no"]
    assert lines[2].startswith(f"f10.ply: {counts[2]} pairs, centre (0.75")


def test_animations_that_cannot_be_followed(animation, boxes, tmp_path, capsys):
    (tmp_path / "none").mkdir()
    for words, message in (
        ([*animation], "--follow takes one folder or .npz, not 2"),
        ([boxes[0]], "is not a folder"),
        ([tmp_path / "none"], "has 0 mesh files"),
    ):
        assert run("self", *words, "--follow") == 2
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
