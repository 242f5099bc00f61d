"""Mesh files, written by trimesh."""

import numpy as np
import pytest
import trimesh

import abut
from abut import cases

# coordinates that every format holds exactly
BOX = cases.box((2.0, 4.0, 0.5))


def written(path, shape=BOX):
    trimesh.Trimesh(*shape, process=False).export(path)
    return path


@pytest.mark.parametrize("ending", ["obj", "ply", "off", "glb", "stl"])
def test_formats(ending, tmp_path, device):
    mesh = abut.Mesh.load(written(tmp_path / f"box.{ending}"), device)
    corners = mesh.vertices.numpy()[mesh.faces.numpy()]
    np.testing.assert_array_equal(corners, BOX.vertices[BOX.faces])
    assert mesh.parts is None and str(mesh.device) == device
    assert mesh.vertex_count == (36 if ending == "stl" else 8)
    assert abut.self_collide(mesh).colliding is False


def test_names_are_paths_too(tmp_path):
    assert abut.Mesh.load(str(written(tmp_path / "box.ply")), "cpu").face_count == 12


def test_vertices_are_not_merged(tmp_path):
    """The file's vertices are the mesh's, unused and double ones included."""
    vertices = np.concatenate([BOX.vertices, BOX.vertices])
    path = written(tmp_path / "box.ply", (vertices, BOX.faces))
    np.testing.assert_array_equal(abut.Mesh.load(path, "cpu").vertices.numpy(), vertices)


def test_several_objects_become_parts(tmp_path, device):
    scene = trimesh.Scene()
    sizes = {"box": trimesh.creation.box(), "ball": trimesh.creation.icosphere(1)}
    for k, (name, shape) in enumerate(sizes.items()):
        scene.add_geometry(
            shape, name, transform=trimesh.transformations.translation_matrix([8 * k, 0, 0])
        )
    scene.export(tmp_path / "scene.glb")
    mesh = abut.Mesh.load(tmp_path / "scene.glb", device)
    assert mesh.parts[0] == 0 and mesh.parts[-1] == mesh.face_count == 92
    corners = mesh.vertices.numpy()[mesh.faces.numpy()]
    centres = {}
    for start, stop in zip(mesh.parts[:-1], mesh.parts[1:], strict=True):
        centres[int(stop - start)] = corners[start:stop].mean(axis=(0, 1)).round(6).tolist()
    assert centres == {12: [0, 0, 0], 80: [8, 0, 0]}


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(abut.FileError, match=r"there is no file .*none\.ply"):
        abut.Mesh.load(tmp_path / "none.ply")
    with pytest.raises(abut.FileError, match="there is no file"):
        abut.Mesh.load(tmp_path)


@pytest.mark.parametrize("ending", ["ply", "obj", "stl", "off", "glb", "abc", ""])
@pytest.mark.parametrize("content", [b"", b"not a mesh at all, but some words"])
def test_files_that_are_no_meshes(ending, content, tmp_path):
    path = tmp_path / f"words.{ending}"
    path.write_bytes(content)
    with pytest.raises(abut.FileError, match="words"):
        abut.Mesh.load(path)


def test_points_alone_are_no_mesh(tmp_path):
    trimesh.PointCloud(BOX.vertices).export(tmp_path / "points.ply")
    with pytest.raises(abut.FileError, match=r"points\.ply holds no triangle mesh"):
        abut.Mesh.load(tmp_path / "points.ply")


def test_models(data):
    cow = abut.Mesh.load(data / "models" / "cow_5k.ply", "cpu")
    assert (cow.vertex_count, cow.face_count, cow.watertight) == (2903, 5804, True)
    bunny = abut.Mesh.load(data / "models" / "bunny_69k.ply", "cpu")
    assert (bunny.vertex_count, bunny.face_count, bunny.watertight) == (35947, 69451, False)
