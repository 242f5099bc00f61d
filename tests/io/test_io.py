"""Mesh files: written by trimesh, cut short, damaged."""

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
    with pytest.raises(abut.FileError, match=r"is a folder; name a file in it\."):
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


def ball(path, **options):
    """A mesh of 42 vertices and 80 faces."""
    trimesh.Trimesh(*cases.icosphere(80), process=False).export(path, **options)
    return path


def cut(path, size):
    """Keep the first bytes of a file."""
    path.write_bytes(path.read_bytes()[:size])
    return path


def test_an_ascii_ply_that_ends_early(tmp_path):
    path = ball(tmp_path / "ball.ply", encoding="ascii")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-65]))
    with pytest.raises(abut.FileError, match=r"ball\.ply .*declares 80 faces, but holds 15"):
        abut.Mesh.load(path, "cpu")


def test_an_off_that_ends_early(tmp_path):
    path = ball(tmp_path / "ball.off")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-65]))
    with pytest.raises(abut.FileError, match=r"ball\.off .*declares 80 faces, but holds 15"):
        abut.Mesh.load(path, "cpu")


@pytest.mark.parametrize("ending", ["off", "ply"])
@pytest.mark.parametrize("index", ["1.7", "1e0", "x", ""])
def test_indices_that_are_not_integers(tmp_path, ending, index):
    path = ball(tmp_path / f"ball.{ending}", **({"encoding": "ascii"} if ending == "ply" else {}))
    lines = path.read_text().splitlines()
    lines[-1] = " ".join([*lines[-1].split()[:-1], index])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(abut.FileError, match=rf"ball\.{ending}"):
        abut.Mesh.load(path, "cpu")


@pytest.mark.parametrize("ending", ["ply", "stl", "glb", "off"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.7, 0.98])
def test_files_cut_short(tmp_path, ending, share):
    path = ball(tmp_path / f"ball.{ending}")
    cut(path, int(path.stat().st_size * share))
    with pytest.raises(abut.FileError, match=rf"ball\.{ending}") as error:
        abut.Mesh.load(path, "cpu")
    assert "\n" not in str(error.value)
    with pytest.raises(abut.FileError, match=rf"ball\.{ending}"):
        abut.Scene.load(path, "cpu")


def test_a_binary_stl_of_another_size(tmp_path):
    pytest.importorskip("charset_normalizer")  # with which trimesh reads text
    path = ball(tmp_path / "ball.stl")
    cut(path, 84 + 50 * 15)
    with pytest.raises(abut.FileError, match="declares 80 faces, but only 15 are there"):
        abut.Mesh.load(path, "cpu")


def test_an_ascii_stl_whose_last_solid_is_cut(tmp_path):
    path = tmp_path / "balls.stl"
    solid = trimesh.Trimesh(*cases.icosphere(80)).export(file_type="stl_ascii")
    path.write_text(solid + solid)
    assert abut.Mesh.load(path, "cpu").face_count == 160
    path.write_text(solid + solid[:-300])
    with pytest.raises(abut.FileError, match=r"balls\.stl is damaged: a facet is not whole"):
        abut.Mesh.load(path, "cpu")


HEADER = """ply
format ascii 1.0
element vertex 5
property float x
property float y
property float z
element face 3
property uchar red
property list uchar int vertex_indices
property float quality
end_header
0 0 0
1 0 0
1 1 0
0 1 0
2 2 0
"""


def test_polygons_and_properties_in_ply(tmp_path):
    """Faces are counted as triangles, whatever else a row holds."""
    path = tmp_path / "polygons.ply"
    path.write_text(HEADER + "7 3 0 1 2 0.5\n8 4 0 1 2 3 1.5\n9 5 0 1 2 4 3 2.5\n")
    assert abut.Mesh.load(path, "cpu").face_count == 6
    path.write_text(HEADER + "7 3 0 1 2 0.5\n8 4 0 1 2 3 1.5\n9 5 0 1 2 4\n")
    with pytest.raises(abut.FileError, match=r"polygons\.ply"):
        abut.Mesh.load(path, "cpu")


def test_binary_ply_of_mixed_polygons_is_not_misread(tmp_path):
    """4 + 3 + 5 corners fill the bytes of 4 + 4 + 4."""
    path = tmp_path / "mixed.ply"
    header = HEADER.partition("end_header")[0] + "end_header\n"
    for line in ("property uchar red\n", "property float quality\n"):
        header = header.replace(line, "")
    body = np.zeros((5, 3), "<f4").tobytes()
    for face in ([0, 1, 2, 3], [0, 1, 2], [0, 1, 2, 3, 4]):
        body += bytes([len(face)]) + np.array(face, "<i4").tobytes()
    path.write_bytes(header.replace("ascii", "binary_little_endian").encode() + body)
    with pytest.raises(abut.FileError, match=r"mixed\.ply"):
        abut.Mesh.load(path, "cpu")


@pytest.mark.parametrize("encoding", ["ascii", "binary_little_endian"])
def test_quads_in_ply(tmp_path, encoding):
    path = tmp_path / "quads.ply"
    header = HEADER.partition("end_header")[0].replace("element face 3", "element face 2")
    rows = np.array([[0, 1, 2, 3], [0, 1, 2, 4]])
    if encoding == "ascii":
        body = HEADER.partition("end_header\n")[2].encode()
        body += b"".join(b"1 4 %d %d %d %d 0.5\n" % tuple(row) for row in rows.tolist())
    else:
        kind = [("red", "u1"), ("size", "u1"), ("corners", "<i4", 4), ("quality", "<f4")]
        faces = np.zeros(2, kind)
        faces["size"], faces["corners"] = 4, rows
        body = np.eye(5, 3, dtype="<f4").tobytes() + faces.tobytes()
    path.write_bytes((header.replace("ascii", encoding) + "end_header\n").encode() + body)
    assert abut.Mesh.load(path, "cpu").face_count == 4


@pytest.mark.parametrize("text", ["OFF\n0 0 0\n", "OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n"])
def test_off_without_faces(tmp_path, text):
    (tmp_path / "none.off").write_text(text)
    with pytest.raises(abut.FileError, match=r"none\.off"):
        abut.Mesh.load(tmp_path / "none.off")


def test_off_with_comments_and_polygons(tmp_path):
    path = tmp_path / "square.off"
    path.write_text(
        "OFF # a square\n4 2 0\n0 0 0\n\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2 255 0 0\n4 0 1 2 3\n"
    )
    assert abut.Mesh.load(path, "cpu").face_count == 3


def test_real_files_have_what_they_declare(data):
    files = sorted((data / "models").glob("*.ply"))[:4]
    for path in files:
        if path.stat().st_size < 10_000_000:
            assert abut.Mesh.load(path, "cpu").face_count > 0
