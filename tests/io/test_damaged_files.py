"""Files that are damaged, hostile or too large: one line that names them."""

import io
import json
import os
import pathlib
import tarfile
import zipfile

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from abut.cli import main
from abut.cli.ccd import frame_count
from abut.cli.operands import read_poses

BALL = trimesh.Trimesh(*cases.icosphere(80), process=False)


def gltf(path, change):
    """Write a ball and a box, with a change of the JSON tree."""
    scene = trimesh.Scene([BALL, trimesh.Trimesh(*cases.box(), process=False)])
    for name, content in scene.export(file_type="gltf").items():
        if name == "model.gltf":
            tree = json.loads(content)
            change(tree)
            path.write_text(json.dumps(tree))
        else:
            (path.parent / name).write_bytes(content)
    return path


def placed(tree):
    return [node for node in tree["nodes"] if "mesh" in node]


def with_cycle(tree):
    first, second = (tree["nodes"].index(node) for node in placed(tree))
    tree["nodes"][first]["children"] = [second]
    tree["nodes"][second]["children"] = [first]


def with_vec2(tree):
    for mesh in tree["meshes"]:
        at = mesh["primitives"][0]["attributes"]["POSITION"]
        tree["accessors"][at]["type"] = "VEC2"


CHANGES = {
    "nan": lambda tree: placed(tree)[0].update(matrix=[float("nan")] * 16),
    "infinite": lambda tree: placed(tree)[0].update(translation=[0, float("inf"), 0]),
    "short": lambda tree: placed(tree)[0].update(matrix=[1.0] * 15),
    "projective": lambda tree: placed(tree)[0].update(matrix=[*[1.0, 0, 0, 0.5] * 4]),
    "cycle": with_cycle,
    "vec2": with_vec2,
    "no mesh": lambda tree: placed(tree)[0].update(mesh=7),
    "negative": lambda tree: placed(tree)[0].update(mesh=-1),
    "no child": lambda tree: placed(tree)[0].update(children=[99]),
    "no scene": lambda tree: tree.update(scene=3),
    "fan": lambda tree: tree["meshes"][0]["primitives"][0].update(mode=6),
    "no buffer": lambda tree: tree["buffers"][0].update(uri="none.bin"),
}


def test_a_good_gltf(tmp_path):
    assert abut.Mesh.load(gltf(tmp_path / "model.gltf", lambda tree: None), "cpu").face_count == 92


@pytest.mark.parametrize("change", CHANGES)
def test_damaged_gltf(tmp_path, change):
    """Regressions: raw errors, and meshes that were left out."""
    path = gltf(tmp_path / "model.gltf", CHANGES[change])
    for load in (abut.Mesh.load, abut.Scene.load):
        with pytest.raises(abut.AbutError, match=r"model\.gltf") as error:
            load(path, "cpu")
        assert "\n" not in str(error.value)


def archive(path, **members):
    """Write a ZIP or TAR archive; names have ``_`` for the dot."""
    files = {name.replace("_", "."): content for name, content in members.items()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, content in files.items():
                out.writestr(name, content)
        return path
    with tarfile.open(path, "w:gz") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return path


OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\nv 5 0 0\nv 6 0 0\nv 5 1 0\nf -3 -2 -1\n"


@pytest.mark.parametrize("name", ["meshes.zip", "meshes.tar.gz"])
def test_archives_are_read_by_the_same_readers(tmp_path, name):
    """Regression: trimesh misreads OBJ, and leaves out members that it cannot read."""
    stl = BALL.export(file_type="stl")
    path = archive(tmp_path / name, a_obj=OBJ, b_stl=stl, notes_txt=b"words")
    mesh = abut.Mesh.load(path, "cpu")
    assert mesh.face_count == 82 and mesh.parts.tolist() == [0, 2, 82]
    assert mesh.vertices.numpy()[mesh.faces.numpy()[1]].max() == 6
    assert list(abut.Scene.load(path, "cpu").names) == ["a.obj", "b.stl"]
    archive(path, a_obj=OBJ, b_stl=stl[:-60])
    with pytest.raises(abut.FileError, match=rf"{name}: b\.stl is damaged"):
        abut.Mesh.load(path, "cpu")
    archive(path, a_zip=b"words")
    with pytest.raises(abut.FileError, match=rf"{name} holds an archive, a\.zip"):
        abut.Mesh.load(path, "cpu")
    archive(path, notes_txt=b"words")
    with pytest.raises(abut.FileError, match=rf"{name} holds no triangle mesh"):
        abut.Mesh.load(path, "cpu")


def test_a_tar_whose_second_header_is_damaged(tmp_path):
    """Regression: Python's reader stops there, silently."""
    path = archive(tmp_path / "meshes.tar.gz", a_obj=OBJ, b_obj=OBJ)
    import gzip

    content = bytearray(gzip.decompress(path.read_bytes()))
    content[1024 + 100] ^= 0xFF
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(abut.FileError, match=r"meshes\.tar\.gz .*header"):
        abut.Mesh.load(path, "cpu")


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz"])
def test_bombs_are_refused(tmp_path, name, monkeypatch):
    path = archive(tmp_path / name, a_obj=OBJ + b"#" * 400_000)
    assert abut.Mesh.load(path, "cpu").face_count == 2
    monkeypatch.setenv("ABUT_UNPACK_LIMIT", "100000")
    with pytest.raises(abut.FileError, match=rf"{name} unpacks to 400,.* ABUT_UNPACK_LIMIT"):
        abut.Mesh.load(path, "cpu")
    monkeypatch.setenv("ABUT_UNPACK_LIMIT", "much")
    with pytest.raises(abut.OptionError, match="ABUT_UNPACK_LIMIT"):
        abut.Mesh.load(path, "cpu")


def test_bombs_of_arrays_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ABUT_UNPACK_LIMIT", "100000")
    arrays = {"vertices": np.zeros((2, 90_000, 3)), "faces": np.array([[0, 1, 2]])}
    np.savez_compressed(tmp_path / "bomb.npz", **arrays)
    np.savez(tmp_path / "large.npz", **arrays)
    with pytest.raises(abut.FileError, match=r"bomb\.npz unpacks to"):
        frame_count(tmp_path / "bomb.npz")
    with pytest.raises(abut.FileError, match=r"bomb\.npz unpacks to"):
        abut.DistanceField.load(tmp_path / "bomb.npz", "cpu")
    assert frame_count(tmp_path / "large.npz") == 2


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_frames(tmp_path, share, save):
    """Regression: BadZipFile, zlib.error, EOFError and others."""
    path = tmp_path / "frames.npz"
    save(path, vertices=np.stack([BALL.vertices] * 3), faces=BALL.faces)
    content = path.read_bytes()
    at = int(len(content) * share)
    for damaged in (content[:at], content[:at] + b"\xff" * 40 + content[at + 40 :]):
        path.write_bytes(damaged)
        with pytest.raises(abut.FileError, match=r"frames\.npz"):
            frame_count(path)


@pytest.mark.parametrize(
    ("vertices", "faces", "why"),
    [
        (np.zeros((2, 5, 2)), [[0, 1, 2]], "shape"),
        (np.full((2, 5, 3), "x"), [[0, 1, 2]], "shape"),
        (np.full((2, 5, 3), np.nan), [[0, 1, 2]], "not finite"),
        (np.zeros((2, 5, 3)), [[0, 1, 9]], "vertex 9"),
        (np.zeros((2, 5, 3)), np.float32(3), "no array faces"),
        (np.zeros((2, 5, 3)), np.zeros((0, 3), int), "no faces"),
    ],
)
def test_frames_that_are_no_meshes(tmp_path, capsys, vertices, faces, why):
    path = tmp_path / "frames.npz"
    np.savez(path, vertices=vertices, faces=faces)
    assert main(["ccd", "--follow", str(path), "--device", "cpu"]) == 2
    told = capsys.readouterr().err
    assert "frames.npz" in told and why in told and told.count("\n") == 1


def test_damaged_poses(tmp_path):
    path = tmp_path / "poses.npy"
    for held in (np.eye(4, dtype=complex), np.array(["x"]), np.zeros((3, 5)), np.float64(2)):
        np.save(path, held)
        with pytest.raises(abut.FileError, match=r"poses\.npy"):
            read_poses(path)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(abut.FileError, match=r"poses\.npy cannot be read as poses"):
        read_poses(path)
    with path.open("wb") as file:
        np.savez(file, a=np.eye(4))
    with pytest.raises(abut.FileError, match=r"poses\.npy cannot be read as poses"):
        read_poses(path)


def test_folders_that_cannot_be_read(tmp_path, monkeypatch):
    """As other users see them; root may read all."""

    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(pathlib.Path, "iterdir", refuse)
    with pytest.raises(abut.FileError, match="Permission denied"):
        frame_count(tmp_path)
    monkeypatch.setattr(pathlib.Path, "is_file", refuse)
    for load in (abut.Mesh.load, abut.Scene.load):
        with pytest.raises(abut.FileError, match=r"ball\.stl cannot be read: Permission denied"):
            load(tmp_path / "ball.stl", "cpu")


NAN = '<mujoco><worldbody><geom size="nan" pos="nan 0 0"/></worldbody></mujoco>'


@pytest.mark.parametrize("kind", ["tar.gz", "dae", "stl", "xml", "urdf"])
def test_errors_of_readers_are_one_line(tmp_path, capfd, kind, monkeypatch):
    """Regression: logs, warnings and errors of several lines on standard error."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"file.{kind}"
    content = {
        "tar.gz": b"\x1f\x8b" + bytes(400),
        "dae": BALL.export(file_type="dae")[:3000],
        "stl": BALL.export(file_type="stl_ascii").replace("vertex", "vertex nan", 5).encode(),
        "xml": NAN.encode(),
        "urdf": b'<robot name="r"><link name="a"><collision>',
    }
    path.write_bytes(content[kind])
    assert main(["scene", str(path), "--device", "cpu"]) == 2
    told = capfd.readouterr().err
    assert told.count("\n") == 1 and path.name in told
    assert os.listdir(tmp_path) == [path.name]
