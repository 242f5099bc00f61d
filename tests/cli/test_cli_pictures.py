"""Pictures of answers: the answer is seen, in every command that draws."""

import json
import logging
import subprocess
import sys

import numpy as np
import pytest
import trimesh
from PIL import Image

import abut
from abut import cases, view
from abut.cli import drawings, main
from abut.view.aim import GLASS


@pytest.fixture(autouse=True)
def logger_left_as_it_was():
    log = logging.getLogger("abut")
    handlers, propagate = list(log.handlers), log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate


def export(shape, path):
    trimesh.Trimesh(*shape, process=False).export(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Mesh files, poses, frames and a field."""
    folder = tmp_path_factory.mktemp("pictures")
    for name in ("spheres", "apart", "nested"):
        for side, shape in zip("ab", cases.pair(name, faces=300), strict=True):
            export(shape, folder / f"{name}_{side}.ply")
    export(cases.single("folded_cloth", faces=1200), folder / "cloth.ply")
    export(cases.box(), folder / "box.ply")
    export(cases.box().moved((0.3, 0.2, 1.0)), folder / "above.ply")
    export(cases.icosphere(80, 1e-3), folder / "grain.ply")
    export(cases.icosphere(80).moved((9.0, 0.0, 0.0)), folder / "ball.obj")
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = [9, 0, 1]
    np.save(folder / "poses.npy", poses)
    scene = trimesh.Scene()
    for k in range(5):
        at = trimesh.transformations.translation_matrix((0.9 * k, 0.0, 0.1 * k))
        scene.add_geometry(trimesh.Trimesh(*cases.box()), node_name=f"box{k}", transform=at)
    scene.export(folder / "boxes.glb")
    flat = cases.plane(8, 8, 2.0)
    for k in range(3):
        cloth = flat.vertices.copy()
        cloth[:, 2] = 0.1 * cloth[:, 0] + k * (cloth[:, 0] > 0.4) * 0.1
        pin = cases.icosphere(80, 0.2).moved((0.0, 0.0, 0.6 - 0.25 * k))
        export(cases.shape.joined(cases.Shape(cloth, flat.faces), pin), folder / f"f{k}.off")
    (folder / "frames").mkdir()
    for k in range(3):
        (folder / f"f{k}.off").rename(folder / "frames" / f"f{k}.off")
    assert (
        run("field", "build", folder / "box.ply", "-o", folder / "box.npz", "--resolution", 24)[0]
        == 0
    )
    return folder


def run(*args):
    """Exit status of a command, with a small picture."""
    try:
        return (main([*map(str, args), "--device", "cpu"]),)
    except SystemExit as stop:
        return (stop.code,)


def channels(path):
    """Red, green and blue of all pixels."""
    with Image.open(path) as picture:
        return np.moveaxis(np.asarray(picture).astype(int), -1, 0)


def answer_pixels(path):
    """Number of pixels in the colour of the answer."""
    red, green, blue = channels(path)
    return int(((red > 130) & (red - green > 70) & (red - blue > 50)).sum())


COMMANDS = {
    "collide": "collide {f}/spheres_a.ply {f}/spheres_b.ply",
    "coplanar": "collide {f}/box.ply {f}/above.ply",
    "batch": "collide {f}/spheres_a.ply {f}/spheres_b.ply --pose-b {f}/poses.npy",
    "enclosed": "collide {f}/nested_a.ply {f}/nested_b.ply --solid",
    "self": "self {f}/cloth.ply",
    "several": "self {f}/box.ply {f}/cloth.ply",
    "follow": "self {f}/frames --follow",
    "distance": "distance {f}/apart_a.ply {f}/apart_b.ply",
    "inner distance": "distance {f}/nested_a.ply {f}/nested_b.ply",
    "distances": "distance {f}/apart_a.ply {f}/apart_b.ply --pose-b {f}/poses.npy",
    "within": "within {f}/apart_a.ply {f}/apart_b.ply 0.2",
    "within one": "within {f}/cloth.ply 0.01",
    "scene": "scene {f}/boxes.glb",
    "files": "scene {f}/spheres_a.ply {f}/spheres_b.ply {f}/box.ply",
    "field build": "field build {f}/box.ply -o {f}/b.npz --resolution 24",
    "field query": "field query {f}/box.npz {f}/apart_a.ply",
    "ccd": "ccd {f}/frames/f1.off {f}/frames/f2.off",
    "ccd follow": "ccd {f}/frames --follow",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_answer_is_seen(name, files, tmp_path, capsys):
    path = tmp_path / "new" / "answer.png"
    words = COMMANDS[name].format(f=files).split()
    assert run(*words, "--picture", path, "--size", "180x120")[0] in (0, 1)
    assert capsys.readouterr().err == ""
    with Image.open(path) as picture:
        assert picture.size == (180, 120)
    assert answer_pixels(path) >= 12


@pytest.mark.parametrize("name", ["collide", "within one", "scene", "field query", "ccd"])
def test_reports_name_the_picture(name, files, tmp_path, capsys):
    words = COMMANDS[name].format(f=files).split()
    path = tmp_path / "a.png"
    run(*words, "--picture", path, "--size", "30x20", "--json")
    assert json.loads(capsys.readouterr().out)["picture"] == str(path)
    run(*words, "--picture", path, "--size", "30x20")
    assert str(path) in capsys.readouterr().out


def test_a_contact_behind_everything_is_seen(files, tmp_path, capsys):
    """A grain that touches the far and lower side of a box."""
    pose = np.eye(4)
    for way in ([-0.5, 0.2, -0.1], [0.1, 0.5, 0.2], [0.2, 0.1, -0.5], [0.0, 0.0, 0.5]):
        pose[:3, 3] = way
        np.savetxt(tmp_path / "pose.txt", pose)
        words = [
            "collide",
            files / "box.ply",
            files / "grain.ply",
            "--pose-b",
            tmp_path / "pose.txt",
        ]
        assert run(*words, "--picture", tmp_path / "a.png", "--size", "180x120") == (1,)
        assert answer_pixels(tmp_path / "a.png") >= 12


def test_no_contact_is_drawn_too(files, tmp_path):
    words = ["collide", files / "apart_a.ply", files / "apart_b.ply"]
    assert run(*words, "--picture", tmp_path / "a.png", "--size", "90x60") == (0,)
    assert answer_pixels(tmp_path / "a.png") == 0


@pytest.mark.parametrize("ends", [("nested_a", "nested_b"), ("nested_b", "nested_a")])
def test_a_mesh_that_another_surrounds_is_seen_without_contact(files, ends):
    a, b = (abut.Mesh.load(files / f"{name}.ply", "cpu") for name in ends)
    bodies, lines, points = drawings.of_contacts(
        abut.collide(a, b), {"a": ("a.ply", a), "b": ("b.ply", b)}, {}, None
    )
    assert lines == []
    seen, _ = view.aim(bodies, points, size=(90, 60), device="cpu")
    assert sorted(body.opacity for body in seen) == [GLASS, 0.99]


def test_what_points_up(files, tmp_path):
    """OBJ and glTF have y up, other files z; --up decides."""
    tall = cases.box((0.2, 0.2, 2.0))
    export(tall, tmp_path / "tall.ply")
    export(tall, tmp_path / "tall.obj")
    pictures = {}
    for name in ("tall.ply", "tall.obj"):
        for up in ((), ("--up", "y"), ("--up", "z")):
            path = tmp_path / "a.png"
            assert run("self", tmp_path / name, "--picture", path, "--size", "60x40", *up) == (0,)
            pictures[name, *up[1:]] = np.asarray(Image.open(path)).astype(int)
    same = [(("tall.ply",), ("tall.ply", "z")), (("tall.obj",), ("tall.obj", "y"))]
    assert all(np.array_equal(pictures[a], pictures[b]) for a, b in same)
    assert np.abs(pictures["tall.ply", "z"] - pictures["tall.ply", "y"]).mean() > 2
    shades = np.abs(np.diff(pictures["tall.ply",][:, 20:40].sum(axis=2), axis=1)).sum(axis=1)
    assert (shades > 30).sum() > 20  # upright: many rows have edges


@pytest.mark.parametrize("name", ["collide", "self", "field build", "ccd follow", "scene"])
def test_pictures_are_tried_before_the_work(name, files, tmp_path, capsys):
    words = COMMANDS[name].format(f=files).split()
    for path, message in ((tmp_path / "a.step", ".png"), (files / "box.ply" / "a.png", "written")):
        assert run(*words, "--picture", path) == (2,)
        said = capsys.readouterr()
        assert message in said.err and said.err.count("\n") == 1 and said.out == ""


def test_pictures_are_imported_at_the_point_of_need():
    code = "import sys, abut.cli.collide; sys.exit('abut.view' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_bodies_are_placed_by_their_poses(files):
    from abut.cli.drawings import of_operands
    from abut.cli.operands import pose_of

    meshes = {s: (s, abut.Mesh.load(files / f"spheres_{s}.ply", "cpu")) for s in "ab"}
    poses = np.load(files / "poses.npy")
    bodies = of_operands(meshes, {"pose_a": None, "pose_b": poses}, 2)
    shifted = meshes["b"][1].points.numpy() + np.array([1.0, 0, 0])
    assert np.allclose(bodies[1].shape.vertices, shifted)
    assert pose_of(poses[:0], None) is None and pose_of(poses[:1], 2) is not None
