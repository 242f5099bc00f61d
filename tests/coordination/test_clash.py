"""abut.clash: files in, verdicts out; bad input is a line, and the rest is checked."""

import sys

import numpy as np
import pytest

import abut
from abut.coordination.checks.check_candidates import check_candidates
from abut.coordination.parts.part_candidates import part_candidates
from abut.coordination.rules_file import read_rules
from abut.errors import FileError, OptionError
from blocks import block, table
from ifc_files import IfcHouse


def write(path, *shapes, scale=1.0):
    """A NumPy archive of named parts, a format without a unit."""
    path.parent.mkdir(exist_ok=True)
    arrays = {"names": np.array([name for name, _ in shapes])}
    for k, (_, (vertices, faces)) in enumerate(shapes):
        arrays |= {f"p{k:04d}__V": scale * vertices, f"p{k:04d}__F": faces}
    np.savez(path, **arrays)
    return path


WALL = "wall", block((6, 0.25, 2.5))
DUCT = "duct", block((0.3, 1.5, 0.3), (2, -0.5, 1.8))
SLAB = "slab", block((6, 4, 0.2), (0, 0, -0.2))
NEXT = "next", block((6, 0.25, 2.5), (5.95, 0, 0))  # IfcOpenShell#4594: aligned with the wall


@pytest.fixture
def house(tmp_path):
    return [
        write(tmp_path / "walls.npz", WALL, NEXT),
        write(tmp_path / "ducts.npz", DUCT),
        write(tmp_path / "slabs.npz", SLAB),
    ]


def rows(found):
    return {(row["a"], row["b"]): row["verdict"] for row in found}


EXPECTED = {("ducts/duct", "walls/wall"): "pierce", ("walls/next", "walls/wall"): "protrude"}


def columns(found):
    return [values.tolist() for values in found.columns().values()]


def test_files(house):
    found = abut.clash(house, device="cpu")
    assert rows(found) == EXPECTED
    assert found.depth[1] == pytest.approx(0.05, abs=1e-9), "aligned walls, 50 mm"
    assert found.problems == [] and found.skipped == []
    touching = abut.clash(house, touch=True, device="cpu")
    assert rows(touching) == EXPECTED | {
        ("slabs/slab", "walls/next"): "touch",
        ("slabs/slab", "walls/wall"): "touch",
    }


def test_order_of_files_and_folders_and_repeats(house):
    first = abut.clash(house, device="cpu")
    for files in (house[::-1], house[0].parent, str(house[0].parent), [*house, house[0].parent]):
        again = abut.clash(files, device="cpu")
        assert columns(again) == columns(first)
        assert again.problems == []


def test_order_of_parts(tmp_path):
    shapes = [WALL, NEXT, DUCT, SLAB]
    one = write(tmp_path / "a" / "box.npz", *shapes)
    other = write(tmp_path / "b" / "box.npz", *shapes[::-1])
    found = [abut.clash(path, touch=True, device="cpu") for path in (one, other)]
    assert columns(found[0]) == columns(found[1]) and len(found[0]) == 4


def test_clearance_and_tolerance(house):
    near = write(house[0].parent / "near.npz", ("pipe", block((1, 0.1, 0.1), (0, 0.29, 1))))
    assert len(abut.clash([near, house[0]], device="cpu")) == 1
    found = abut.clash([near, house[0]], clearance=0.05, device="cpu")
    assert rows(found)["near/pipe", "walls/wall"] == "encroach"
    assert found.distance[list(rows(found)).index(("near/pipe", "walls/wall"))] == pytest.approx(
        0.04
    )
    assert len(abut.clash(house[0], tolerance=0.06, device="cpu")) == 0


def test_rules(house, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(
        """
[sets.ducts]
name = "duct"
[sets.pipes]
type = "IfcPipe*"
[[checks]]
name = "ducts in anything"
a = "ducts"
b = "*"
[[checks]]
a = "pipes"
b = "*"
"""
    )
    found = abut.clash(house, path, device="cpu")
    assert rows(found) == {("ducts/duct", "walls/wall"): "pierce"}
    assert set(found.check) == {"ducts in anything"}
    assert found.problems == [f"{path}: set 'pipes' names no part."]
    assert found.settings["rules"] == str(path) and found.settings["pairs"] == 1


def test_scenes_and_tables():
    meshes = {name: abut.Mesh(*shape, device="cpu") for name, shape in (WALL, DUCT, SLAB)}
    found = abut.clash(abut.Scene(meshes), device="cpu")
    assert rows(found) == {("scene/duct", "scene/wall"): "pierce"}
    parts = table(dict([WALL, DUCT, SLAB]), links=[("duct", "wall", "fills")])
    found = abut.clash(parts, device="cpu")
    assert len(found) == 0 and found.settings["excluded"] == {"fills": 1}
    found = abut.clash(parts, {"exclude": {"links": False}}, device="cpu")
    assert rows(found) == {("model/duct", "model/wall"): "pierce"}


def test_bad_files_are_lines(house):
    folder = house[0].parent
    broken = folder / "broken.ifc"
    broken.write_text("ISO-10303-21;\nHEADER;")
    cut = folder / "cut.ply"
    cut.write_bytes(b"ply\nformat ascii 1.0\nelement vertex 3\n")
    empty = folder / "empty"
    empty.mkdir()
    found = abut.clash([folder, empty, folder / "gone.npz", folder / "notes.txt"], device="cpu")
    assert rows(found) == EXPECTED
    lines = sorted(found.problems)
    assert len(lines) == 5 and all("\n" not in line for line in lines)
    for name in ("broken.ifc", "cut.ply", "empty", "gone.npz", "notes.txt"):
        assert sum(name in line for line in lines) == 1
    assert found.problems == abut.clash([folder, empty, folder / "gone.npz", folder / "notes.txt"],
                                        device="cpu").problems  # fmt: skip


def test_all_files_are_bad(tmp_path):
    found = abut.clash(tmp_path / "gone.npz", device="cpu")
    assert len(found) == len(found.parts) == 0 and len(found.problems) == 1


def test_a_missing_package_is_a_line(house, monkeypatch):
    (house[0].parent / "model.ifc").write_text("ISO-10303-21;")
    monkeypatch.setitem(sys.modules, "ifcopenshell", None)
    found = abut.clash(house[0].parent, device="cpu")
    assert rows(found) == EXPECTED
    assert len(found.problems) == 1 and "model.ifc" in found.problems[0]


def test_parts_that_are_no_mesh():
    nan = block((1, 1, 1))
    nan[0][0, 0] = np.nan
    far = block((1, 1, 1))[0], np.array([[0, 1, 99]])
    shapes = {"nan": nan, "far": far, "none": (np.zeros((3, 3)), np.zeros((0, 3), int))}
    found = abut.clash(table(dict([WALL, DUCT]) | shapes), device="cpu")
    assert rows(found) == {("model/duct", "model/wall"): "pierce"}
    assert {one.id for _, one in found.skipped} == {"nan", "far", "none"}
    assert len(found.problems) == 2, "a part without a surface is no damage"


def test_units_that_disagree(house):
    large = write(house[0].parent / "mm.npz", ("pipe", block((1, 1, 1))), scale=1e4)
    found = abut.clash(house[0].parent, device="cpu")
    assert len(found.problems) == 4 and str(large) in " ".join(found.problems)
    assert "units may disagree" in found.problems[0]
    write(large, ("pipe", block((1, 1, 1))), scale=1e-4)
    found = abut.clash(large, device="cpu")
    assert "its unit is in doubt; the format states no unit, so give it" in found.problems[0]
    assert abut.clash(large, unit=100, device="cpu").problems == []


def test_origins_that_disagree(house):
    write(house[0].parent / "far.npz", ("far", block((1, 1, 1), (5e5, 0, 0))))
    found = abut.clash(house[0].parent, device="cpu")
    assert len(found.problems) == 1 and "500 km from all other files" in found.problems[0]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"clearance": -1}, "clearance must be a length"),
        ({"tolerance": "1 mm"}, "tolerance must be a length"),
        ({"unit": "feet"}, "unit must be one of"),
        ({"chord": 0}, "chord must be a positive length"),
        ({"touch": 1}, "touch must be true or false"),
    ],
)
def test_bad_options(house, options, why):
    with pytest.raises(OptionError, match=why):
        abut.clash(house, device="cpu", **options)


def test_bad_operands(tmp_path):
    for files in ([], 3, [3], None):
        with pytest.raises(OptionError, match="files must be paths"):
            abut.clash(files, device="cpu")
    with pytest.raises(FileError, match=r"rules\.toml"):
        abut.clash(tmp_path, tmp_path / "rules.toml", device="cpu")
    with pytest.raises(TypeError, match="tolerance"):
        abut.clash(tmp_path, tol=1)


def test_a_pair_that_fails_is_a_line(monkeypatch):
    import abut.coordination.checks.check_candidates as module

    parts = table({str(k): block((1, 1, 1), (0.5 * k, 0, 0)) for k in range(6)})
    found = part_candidates(parts, read_rules(None), "cpu")
    whole, problems = check_candidates(parts, found, device="cpu")
    assert problems == [] and len(whole) > 4
    plain = module.check_pairs

    def fails(parts, pairs, *args, **options):
        if [1, 2] in np.asarray(pairs).tolist():
            raise abut.MeshError("no\nluck")
        return plain(parts, pairs, *args, **options)

    monkeypatch.setattr(module, "check_pairs", fails)
    done = []
    some, problems = check_candidates(parts, found, device="cpu", done=done.append)
    assert problems == ["model/1 and model/2 could not be checked: no luck"]
    assert len(some) == len(whole) - 1 and done[-1] == len(found)


def test_a_missing_reference_is_a_line(tmp_path):
    """An IFC file in which an entity refers to one that is not there, a door in its wall too."""
    pytest.importorskip("ifcopenshell", reason="needs ifcopenshell, of abut's extra bim")
    house = IfcHouse()
    wall = house.element("IfcWall", "wall", house.body(house.block((6, 0.25, 2.5))))
    place = house.element("IfcBeam", "beam", house.body(house.block((1, 1, 1))), (2, 0, 0))
    house.element("IfcColumn", "column", house.body(house.block((0.2, 2, 0.2))), (4, -1, 1))
    path = house.write(tmp_path / "house.ifc")
    lines = path.read_text().splitlines()
    cut = f"#{place.ObjectPlacement.RelativePlacement.Location.id()}="
    path.write_text("\n".join(line for line in lines if not line.startswith(cut)))
    found = abut.clash(path, device="cpu")
    assert found.verdict.tolist() == ["pierce"] and len(found.parts) == 2
    assert len(found.problems) == 1 and str(path) in found.problems[0]
    assert "IfcBeam 'beam'" in found.problems[0] and "missing" in found.problems[0]
    assert wall.GlobalId in "".join([*found.a, *found.b])
