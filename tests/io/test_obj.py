"""OBJ files: every form of vertices and faces, and every line that is refused."""

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

import abut
from abut import cases
from abut.io import decimals, obj, read_model
from abut.io.obj import read_obj

SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


def read(tmp_path, text):
    path = tmp_path / "shape.obj"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    file = read_obj(path)
    return file.vertices.tolist(), file.faces.tolist()


def relative_text(shape):
    """Each face after its own three vertices, which it names by negative indices."""
    rows = shape.vertices[shape.faces].reshape(-1, 9).tolist()
    lines = ["v {} {} {}\nv {} {} {}\nv {} {} {}\nf -3 -2 -1\n".format(*row) for row in rows]
    return "".join(lines)


def test_relative_indices_count_from_their_line(tmp_path, device):
    """Resolved at the end of the file, every face was the last one and nothing met."""
    a, b = cases.icosphere(80), cases.icosphere(80)
    b = b._replace(vertices=b.vertices + np.array([1.5, 0.1, 0.2]))
    meshes = []
    for name, shape in {"a": a, "b": b}.items():
        (tmp_path / f"{name}.obj").write_text(relative_text(shape))
        meshes.append(abut.Mesh.load(tmp_path / f"{name}.obj", device))
    expected = abut.collide(abut.Mesh(*a, device), abut.Mesh(*b, device)).pairs.numpy()
    assert len(expected) > 10
    np.testing.assert_array_equal(abut.collide(*meshes).pairs.numpy(), expected)


@pytest.mark.parametrize(
    ("faces", "expected"),
    [
        ("f 1 2 3", [[0, 1, 2]]),
        ("f 1/5/7 2/6/8 3/7/9", [[0, 1, 2]]),
        ("f 1//7 2//8 3//9", [[0, 1, 2]]),
        ("f 1/7 2/8 3/9", [[0, 1, 2]]),
        ("f 1/-1/-1 2 3//4", [[0, 1, 2]]),
        ("f -4 -3 -1", [[0, 1, 3]]),
        ("f\t1  2\t 3 \r", [[0, 1, 2]]),
        ("  f 1 2 3", [[0, 1, 2]]),
        ("f 1 2 3 4", [[0, 1, 2], [2, 3, 0]]),
        ("f 1 2 3 4 2", [[0, 1, 2], [0, 2, 3], [0, 3, 1]]),
        ("f 1 2 3\nf 4 3 2 1\nf -1 -2 -3", [[0, 1, 2], [3, 2, 1], [1, 0, 3], [3, 2, 1]]),
        ("f 1 2 \\\n 3", [[0, 1, 2]]),
        ("f 1 \\\r\n2 \\\r\n 3", [[0, 1, 2]]),
        ("f 1 2 3 # a face", [[0, 1, 2]]),
        ("# not continued \\\nf 1 2 3", [[0, 1, 2]]),
        ("fo 1 2 3", [[0, 1, 2]]),
        ("f +1 2 3", [[0, 1, 2]]),
        ("o name\ng a b\ns off\nusemtl m\nvt 0 0\nvn 0 0 1\nl 1 2\np 1\nf 1 2 3", [[0, 1, 2]]),
    ],
)
def test_faces(tmp_path, faces, expected):
    vertices, found = read(tmp_path, SQUARE + faces)
    assert found == expected
    assert vertices == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]


def test_faces_may_stand_above_their_vertices(tmp_path):
    assert read(tmp_path, "f 1 2 3\n" + SQUARE)[1] == [[0, 1, 2]]


@pytest.mark.parametrize(
    "line", ["v 1 2 3", "v 1 2 3 0.5", "v 1 2 3 .1 .2 .3", "v 1 2 3 1 .1 .2 .3"]
)
def test_weights_and_colours_are_ignored(tmp_path, line):
    assert read(tmp_path, f"v 0 0 0\n{line}\n{SQUARE}f 1 2 3")[0][1] == [1, 2, 3]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_ends_of_lines(tmp_path, end, start):
    text = (SQUARE + "f 1 2 3\nf 1 3 4").replace("\n", end)
    vertices, faces = read(tmp_path, start + text.encode())
    assert (len(vertices), faces) == (4, [[0, 1, 2], [0, 2, 3]])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("f 1 2 0", 5, "refers to vertex 0; OBJ counts vertices from 1"),
        ("f 1 2 5", 5, "refers to vertex 5 but the file has 4 vertices"),
        ("f 1 2 99999999999", 5, "refers to vertex 99999999999 but"),
        ("f 1 2 4294967297", 5, "refers to vertex 4294967297 but"),
        ("f 1 2 99999999999999999999999", 5, "refers to vertex 99999999999999999999999 but"),
        ("f 1 2 3\nf -1 -2 -5", 6, "vertex -5, but 4 vertices stand above it"),
        ("f 1 2", 5, "a face has 3 corners or more, not 2"),
        ("f", 5, "a face has 3 corners or more, not 0"),
        ("f 1 2 1.7", 5, "'1.7' is not an index"),
        ("f 1 2 3e0", 5, "'3e0' is not an index"),
        ("f 1 2 x", 5, "'x' is not an index"),
        ("f 1 2 3/x", 5, "'3/x' is not an index"),
        ("f 1 2 /3", 5, "'/3' is not an index"),
        ("f 1 2 3/1/1/1", 5, "more than three indices"),
        ("f 1 2 3_0", 5, "'3_0' is not an index"),
        ("f 1 2\x00 3", 5, "is not an index"),
        ("v 1 2", 5, "a vertex has 3 coordinates, not 2"),
        ("v", 5, "a vertex has 3 coordinates, not 0"),
        ("v 1 2 3 4 5", 5, "a vertex has 3 coordinates, not 5"),
        ("v 1 2 3,5", 5, "'3,5' is not a number"),
        ("v 1 2 3.5.7", 5, "'3.5.7' is not a number"),
        ("v 1 2 .-5", 5, "'.-5' is not a number"),
        ("v 1 2 -", 5, "'-' is not a number"),
        ("v 1 2 -.", 5, "'-.' is not a number"),
        ("v 1 - 2", 5, "'-' is not a number"),
        ("f 1 2 -", 5, "'-' is not an index"),
        ("f 1 - 2 3", 5, "'-' is not an index"),
        ("v 1 2 .", 5, "'.' is not a number"),
        ("v 1 2 1_000", 5, "'1_000' is not a number"),
        ("v 1 2 3-4", 5, "'3-4' is not a number"),
        ("v 1 2 x", 5, "'x' is not a number"),
        ("f 1 \\\n2 \\\n3\n\n# words\nf 1 2 0", 10, "vertex 0"),
    ],
)
def test_refused_lines(tmp_path, text, line, message):
    with pytest.raises(abut.FileError, match=r"shape\.obj") as error:
        read(tmp_path, SQUARE + text + "\nf 1 2 3\n")
    assert f"shape.obj, line {line}: " in str(error.value) and message in str(error.value)
    assert "\n" not in str(error.value)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(repr),
    st.floats(-1e6, 1e6).map("{:.6f}".format),
    st.floats(-1e6, 1e6).map("{:.25f}".format),
    st.decimals(-10, 10, places=21).map("{:f}".format),
    st.integers(-(10**22), 10**22).map(str),
    st.sampled_from(["-0", "-0.0", "+.5", "5.", "1E3", "0.1e-320", "-.0", "9007199254740993"]),
    st.sampled_from(["9007199254740992.5", "0.50000000000000005551", "1e400", "00012.50"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_numbers_are_those_of_float(words):
    text = np.frombuffer((" " + " ".join(words) + "\n").encode(), np.uint8)
    values, starts = decimals.parse_decimals(text)
    np.testing.assert_array_equal(
        values.view(np.int64), np.array(list(map(float, words))).view(np.int64)
    )
    assert len(starts) == len(words)


def test_ties_between_two_numbers():
    """Long decimals beside the middle of two float64 numbers, which is hard to round."""
    rng = np.random.default_rng(0)
    middles = rng.integers(2**53, 2**54, 2000, dtype=np.int64) * 2 + 1
    words = [f"{m}{d}" for m in middles.tolist() for d in ("", ".0", ".01")]
    words += [
        f"{m // 10**9}.{m % 10**9:09d}" for m in rng.integers(10**17, 9 * 10**18, 20000).tolist()
    ]
    text = np.frombuffer((" " + " ".join(words) + "\n").encode(), np.uint8)
    assert decimals.parse_decimals(text)[0].tolist() == list(map(float, words))


STATEMENTS = st.one_of(
    st.tuples(*[st.floats(-9, 9).map("{:.4f}".format)] * 3).map(lambda v: "v " + " ".join(v)),
    st.lists(st.sampled_from(["1", "-1", "2/1/1", "-2//1", "3/2", "0", "9", "-7"]), min_size=2,
             max_size=6).map(lambda f: "f " + " ".join(f)),
    st.sampled_from(["", "# v 1 2 3", "vn 0 0 1", "  v 1 1 1", "v 1e-3 0 1 # c"]),
    st.sampled_from(["f 1 \\\n 2 3", "f 1 2 3 -1", "o v"]),
    st.sampled_from(["g", " o a \t b#c", "g \xe4\\\n d", "off"]),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(STATEMENTS, max_size=40), size=st.integers(1, 60))
def test_chunks_read_as_line_by_line(lines, size, tmp_path_factory):
    """The vectorised reader, at any size of its chunks, is the plain one."""
    path = tmp_path_factory.mktemp("obj") / "shape.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "\n".join(lines))

    def outcome():
        try:
            file = read_obj(path)
            return [file.vertices.tolist(), file.faces.tolist(), file.names]
        except abut.FileError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(obj, "CHUNK", size)
        cut = outcome()
        patch.setattr(obj, "_attempt", lambda chunk: None)
        assert outcome() == cut
        patch.setattr(obj, "CHUNK", 1 << 20)
        whole = outcome()
    assert outcome() == whole
    assert type(cut) is type(whole) and (isinstance(whole, str) or cut == whole)


CUBE = cases.box((1.0, 1.0, 1.0))


def cubes_text(*names):
    """Cubes one beside the other, each after its lines of names."""
    lines = []
    for k, name in enumerate(names):
        rows = CUBE.vertices + np.array([k, 0.0, 0.0])
        lines += ["v {} {} {}".format(*row) for row in rows.tolist()]
        lines += name and name.split(";")
        lines += ["f {} {} {}".format(*row) for row in (CUBE.faces + 1 + 8 * k).tolist()]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["o a", "o b"], ["a", "b"]),
        (["o a b;usemtl red", "", "o c"], ["a b 2", "c 1"]),
        (["", "o a"], ["shape", "a"]),
        (["o a", "o a"], ["a", "a#2"]),
        (["o all;g a", "g b"], ["a", "b"]),
        (["g a", "g b", "g a"], ["a 2", "b 1"]),
        (["o a;g x", "g y", "o b"], ["a 2", "b 1"]),
        (["g", "g b"], ["shape", "b"]),
        (["o empty;o a", "o b"], ["a", "b"]),
        (["o a", ""], ["shape 2"]),
        (["", ""], ["shape 2"]),
    ],
)
def test_objects_or_groups_are_parts(tmp_path, names, expected):
    path = tmp_path / "shape.obj"
    path.write_text(cubes_text(*names))
    model = read_model(path, unit="m")
    found = {part.id: model.meshes[part.mesh] for part in model.parts}
    counts = {key: len(mesh.faces) // len(CUBE.faces) for key, mesh in found.items()}
    wanted = {}
    for text in expected:
        name, number = text.rsplit(" ", 1) if text[-1].isdigit() and " " in text else (text, 1)
        wanted[name] = int(number)
    assert counts == wanted
    assert sum(len(mesh.vertices) for mesh in found.values()) == 8 * len(names)
    assert abut.Mesh.load(path, "cpu").face_count == len(names) * len(CUBE.faces)


def test_many_faces(tmp_path):
    """Several chunks of a mesh, written with all digits."""
    shape = cases.icosphere(20_480)
    path = tmp_path / "ball.obj"
    lines = ["v {!r} {!r} {!r}".format(*row) for row in shape.vertices.tolist()]
    path.write_text("\n".join(lines + ["f {} {} {}".format(*row) for row in shape.faces + 1]))
    vertices, faces, _ = read_obj(path)
    assert path.stat().st_size > 3 * obj.CHUNK
    np.testing.assert_array_equal(vertices, shape.vertices)
    np.testing.assert_array_equal(faces, shape.faces)


def test_real_files_read_as_by_trimesh(data):
    """Both readers give the same triangles; trimesh splits vertices by normals and materials."""
    files = sorted(data.rglob("*.obj"))
    if not files:
        pytest.skip("there are no OBJ files in the data folder")
    for path in files:
        loaded = trimesh.load(path, process=False)
        if isinstance(loaded, trimesh.Scene):
            loaded = loaded.to_mesh()
        vertices, faces, _ = read_obj(path)
        triangles = [np.sort(corners.reshape(-1, 9), axis=0) for corners in
                     (vertices[faces], loaded.vertices[loaded.faces])]  # fmt: skip
        np.testing.assert_array_equal(*triangles, err_msg=str(path))
