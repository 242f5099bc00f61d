"""Models of mesh and scene files, units, and the choice of readers."""

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from abut.io.models.mesh_pool import MeshPool, unique_ids, welded
from abut.io.models.read_model import UNITS, model_files, read_model

BOX = cases.box((2.0, 4.0, 0.5))


def shape():
    return trimesh.Trimesh(*BOX, process=False)


@pytest.mark.parametrize("ending", ["obj", "ply", "off", "stl"])
def test_files_of_one_mesh(tmp_path, ending):
    path = tmp_path / f"part.{ending}"
    shape().export(path)
    model = read_model(path)
    (part,) = model.parts
    assert (part.id, part.name, part.type, part.layer) == ("part", "part", "", "")
    assert model.unit is None and model.deviation == 0.0 and model.skipped == []
    mesh = model.meshes[part.mesh]
    assert mesh.vertices.dtype == np.float64 and mesh.faces.dtype == np.int32
    np.testing.assert_array_equal(mesh.vertices[mesh.faces], BOX.vertices[BOX.faces])


def test_instances_of_a_scene_share_a_mesh(tmp_path):
    scene = trimesh.Scene()
    turn = trimesh.transformations.rotation_matrix(0.5, [0, 0, 1], [1, 2, 3])
    scene.add_geometry(shape(), node_name="left", geom_name="box")
    scene.graph.update("right", geometry="box", matrix=turn)
    scene.graph.update("large", geometry="box", matrix=np.diag([2.0, 2.0, -2.0, 1.0]))
    scene.export(tmp_path / "scene.glb")
    model = read_model(tmp_path / "scene.glb", unit="mm")  # glTF is in metres
    parts = {part.id: part for part in model.parts}
    assert list(parts) == ["large", "left", "right"] and model.unit == 1.0
    assert parts["left"].mesh == parts["right"].mesh != parts["large"].mesh
    np.testing.assert_allclose(parts["right"].pose, turn, atol=1e-6)
    for part in model.parts:
        np.testing.assert_allclose(part.pose[:3, :3] @ part.pose[:3, :3].T, np.eye(3), atol=1e-12)
        assert abut.Mesh(*_arrays(model, part), "cpu").oriented


def _arrays(model, part):
    mesh = model.meshes[part.mesh]
    return mesh.vertices, mesh.faces


@pytest.mark.parametrize("unit", [*UNITS, 0.125])
def test_units(tmp_path, unit):
    shape().export(tmp_path / "part.ply")
    model = read_model(tmp_path / "part.ply", unit=unit)
    assert model.unit == UNITS.get(unit, unit)
    np.testing.assert_array_equal(model.meshes[0].vertices, BOX.vertices * model.unit)


@pytest.mark.parametrize("option", [{"unit": "yard"}, {"unit": 0}, {"unit": -1.0}, {"chord": 0.0}])
def test_bad_options(tmp_path, option):
    shape().export(tmp_path / "part.ply")
    with pytest.raises(abut.OptionError, match=next(iter(option))):
        read_model(tmp_path / "part.ply", **option)


def test_files_of_folders(tmp_path):
    for name in ("b/two.ply", "b/a/one.stl", "c.off"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shape().export(tmp_path / name)
    (tmp_path / "b" / "notes.txt").write_text("no model")
    found = model_files([tmp_path / "c.off", tmp_path / "b", tmp_path])
    names = [str(path.relative_to(tmp_path)) for path in found]
    assert names == ["c.off", "b/a/one.stl", "b/two.ply"]


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "notes.txt").write_text("no model")
    with pytest.raises(abut.FileError, match=r"notes\.txt is no model"):
        model_files([tmp_path / "notes.txt"])
    with pytest.raises(abut.FileError, match=r"notes\.txt is no model"):
        read_model(tmp_path / "notes.txt")
    with pytest.raises(abut.FileError, match="holds no model"):
        model_files([tmp_path])
    with pytest.raises(abut.FileError, match="there is no file"):
        model_files([tmp_path / "none.ifc"])


def test_repeated_ids():
    assert unique_ids(["a", "a", "b", "a"]) == ["a", "a#2", "b", "a#3"]
    assert unique_ids(["a", "a", "a#2"]) == ["a", "a#3", "a#2"]


def test_equal_meshes_are_one():
    pool = MeshPool()
    first, second = pool.add(*BOX), pool.add(BOX.vertices.copy(), BOX.faces.copy())
    assert first == second != pool.add(BOX.vertices + 1, BOX.faces) and len(pool.meshes) == 2


def test_welding_keeps_corners():
    corners = BOX.vertices[BOX.faces].reshape(-1, 3)
    vertices, faces = welded(corners, np.arange(36).reshape(-1, 3))
    assert len(vertices) == 8
    np.testing.assert_array_equal(vertices[faces].reshape(-1, 3), corners)


def test_numpy_archives(tmp_path):
    path = tmp_path / "parts.npz"
    arrays = {}
    for k in range(2):
        arrays |= {f"p{k:04d}__V": BOX.vertices.astype(np.float32) + k, f"p{k:04d}__F": BOX.faces}
    np.savez(path, names=np.array(["IfcWall:a", "plain"]), **arrays)
    model = read_model(path, unit="mm")
    assert [(part.id, part.type) for part in model.parts] == [("a", "IfcWall"), ("plain", "")]
    np.testing.assert_array_equal(model.meshes[1].vertices, (BOX.vertices + 1) * 0.001)
    np.savez(path, **arrays)
    assert [part.id for part in read_model(path).parts] == ["p0000", "p0001"]


@pytest.mark.parametrize(
    "arrays",
    [
        {"numbers": np.zeros(3)},
        {"p0000__V": np.zeros((3, 3))},
        {"p0000__V": np.zeros((3, 2)), "p0000__F": np.zeros((1, 3), int)},
        {"p0000__V": np.zeros((3, 3)), "p0000__F": np.zeros((1, 3))},
        {"p0000__V": np.zeros((3, 3)), "p0000__F": np.zeros((1, 3), int), "names": ["a", "b"]},
    ],
)
def test_numpy_archives_that_are_no_models(tmp_path, arrays):
    np.savez(tmp_path / "parts.npz", **arrays)
    with pytest.raises(abut.FileError, match=r"parts\.npz"):
        read_model(tmp_path / "parts.npz")


@pytest.mark.parametrize(("name", "count"), [("2CylinderEngine", 115), ("Ifc4_SampleHouse", 58)])
def test_real_assemblies(data, name, count):
    path = data / "assemblies" / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    assert len(read_model(path).parts) == count
