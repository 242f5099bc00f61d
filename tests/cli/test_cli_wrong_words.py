"""Wrong commands, options and files: one line that names the right one."""

import pytest

from abut import cases
from abut.cli import main
from abut.cli.view import load_objects
from abut.view.picture import MOST_PIXELS
from ifc_files import IfcHouse


@pytest.fixture
def box(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "box.stl"
    trimesh.Trimesh(*cases.box(), process=False).export(path)
    return path


def said(capsys, *words):
    status = main([str(word) for word in words])
    output = capsys.readouterr()
    return status, output.out, output.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("colide a b", "abut: there is no command 'colide'; did you mean collide? See abut --help"),
        ("bench", "abut: name a benchmark, or all of them: abut bench all --quick."),
        ("xyzzy", "abut: there is no command 'xyzzy'; see abut --help"),
        (
            "collide a b --pose_b p.txt",
            "abut collide: unrecognized arguments: --pose_b p.txt; did you mean --pose-b? See abut "
            "collide --help",
        ),
        (
            "distance a b --max-distance 3",
            "abut distance: unrecognized arguments: --max-distance 3; did you mean --upper-bound? "
            "See abut distance --help",
        ),
        ("self a --xyzzy", "abut self: unrecognized arguments: --xyzzy; see abut self --help"),
    ],
)
def test_wrong_words_name_the_right_one(capsys, words, line):
    assert said(capsys, *words.split()) == (2, "", line + "\n")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("notes.txt", "no mesh that abut reads; it reads .ply, .obj, .stl, .off, .glb, "),
        ("part", "no mesh that abut reads"),
        ("house.ifc", "a model of parts; abut clash reads it, and abut.io.read_model its meshes"),
        ("house.usdz", "a model of parts; abut clash reads it"),
    ],
)
@pytest.mark.parametrize("command", ["collide", "scene", "self"])
def test_files_of_other_formats(capsys, tmp_path, box, command, name, why):
    """Regression: "cannot be read as a mesh: file_type '/tmp/part' not supported"."""
    other = tmp_path / name
    other.write_text("nothing")
    words = (command, box, other) if command == "collide" else (command, other)
    status, out, err = said(capsys, *words, "--device", "cpu")
    assert (status, out) == (2, "") and err.startswith(f"abut: {other} is {why}"), err


def test_a_picture_that_is_too_large(capsys, tmp_path, box):
    """Regression: a MemoryError after all the work."""
    options = ("--picture", tmp_path / "p.png", "--size", "100000x100000")
    status, out, err = said(capsys, "collide", box, box, *options)
    assert (status, out) == (2, "") and f"at most {MOST_PIXELS:,} pixels" in err


def test_one_pair_of_objects_is_one(capsys, box, tmp_path):
    status, out, _ = said(capsys, "scene", box, box, "--device", "cpu")
    assert status == 1 and "1 pair of objects\n" in "\n".join(map(str.rstrip, out.splitlines()))


def test_no_number_is_minus_zero(capsys, box):
    _, out, _ = said(capsys, "overlap", box, box, "--device", "cpu")
    assert "towards (" in out and "-0," not in out and "-0)" not in out


def test_view_takes_the_options_of_pictures(capsys, tmp_path, box):
    """Regression: --vertical in one command, --up in all others; the help of --size was wrong."""
    pytest.importorskip("viser")
    picture = tmp_path / "p.png"
    words = ("view", box, "--up", "y", "--picture", picture, "--size", "60x40", "--device", "cpu")
    assert said(capsys, *words)[0] == 0 and picture.exists()
    main(["view", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "of the picture (default: 1200x800)" in text and "--vertical" not in text


def test_view_of_a_folder(capsys, tmp_path, box):
    """Regression: unlike meshes were refused as frames; an empty folder was an IndexError."""
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.icosphere(1).export(tmp_path / "ball.stl")
    picture = tmp_path / "parts.png"
    words = ("--picture", picture, "--size", "60x40", "--device", "cpu")
    assert said(capsys, "view", tmp_path, *words) == (0, "", "")
    status, _, err = said(capsys, "view", tmp_path, "--frames", *words)
    assert status == 2 and "does not have the faces of the frame before it" in err
    (empty := tmp_path / "empty").mkdir()
    status, _, err = said(capsys, "view", empty, *words)
    assert status == 2 and err.startswith(f"abut: {empty} holds no mesh file (")


def test_view_shows_the_parts_of_a_model(tmp_path):
    """Regression: IFC files were refused."""
    pytest.importorskip("ifcopenshell")
    house = IfcHouse()
    for at in (0.0, 3.0):
        house.element("IfcWall", "wall", house.body(house.block((1.0, 1.0, 2.0))), (at, 0.0, 0.0))
    house.element("IfcSlab", "slab", house.body(house.block((4.0, 1.0, 0.2))))
    scene, messages = load_objects([str(house.write(tmp_path / "house.ifc"))], "cpu")
    assert messages == [] and len(scene) == 3 and "house/slab" in scene.names
    assert sum(name.startswith("house/wall ") for name in scene.names) == 2
    assert len(scene.collide(first=True).object_pairs) == 2


def test_help_begins_with_a_first_command(capsys):
    main(["--help"])
    text = capsys.readouterr().out
    assert "abut demo knot" in text and "abut COMMAND --help" in text
