"""Models of STEP files: written by OCCT, damaged ones."""

import random
import re
from functools import partial

import numpy as np
import pytest

import abut
from abut.io import read_model

pytest.importorskip("OCP", reason="OCP is missing: pip install 'abut[cad]'")

from abut.io.models.step_mesh import mesh_body
from abut.io.models.step_model import read_step_here
from ifc_files import bounds
from step_files import (
    StepAssembly,
    block,
    compound,
    cone,
    cylinder,
    drilled_block,
    first_face,
    location,
    rounded_block,
    sphere,
    torus,
    vase,
)

CHORD = 0.001


def machine(path, **options):
    """Two turned brackets of two blocks and a pin."""
    made = StepAssembly()
    root, bracket = made.product("machine"), made.product("bracket")
    plate, pin = made.product("plate", block(10, 20, 30)), made.product("pin", cylinder(5, 40))
    made.layer(plate, "steel")
    made.put(bracket, plate, "low")
    made.put(bracket, plate, at=(50, 0, 0))
    made.put(bracket, pin, at=(90, 0, 0))
    made.put(root, bracket, "left")
    made.put(root, bracket, "right", (1000, 0, 0), 90)
    return made.write(path, **options)


def read_here(path, chord=CHORD):
    return read_step_here(path, lambda damaged: None, chord)


def solid(model, part):
    mesh = model.meshes[part.mesh]
    made = abut.Mesh(mesh.vertices, mesh.faces, "cpu")
    return made.watertight and made.oriented


def volume(made):
    a, b, c = np.moveaxis(made.vertices[made.faces], 1, 0)
    return (a * np.cross(b, c)).sum() / 6


def test_an_assembly(tmp_path):
    model = read_model(machine(tmp_path / "machine.step"))
    assert [part.id for part in model.parts] == [
        f"machine/{side}/{name}" for side in ("left", "right") for name in ("low", "pin", "plate")
    ]
    parts = {part.id: part for part in model.parts}
    low, right = parts["machine/left/low"], parts["machine/right/low"]
    assert (low.name, low.layer, low.assembly) == ("plate", "steel", "machine/left")
    assert parts["machine/right/pin"].assembly == "machine/right"
    assert parts["machine/right/pin"].layer == ""
    assert len(model.meshes) == 2 and len({part.mesh for part in model.parts}) == 2
    assert low.mesh == right.mesh == parts["machine/left/plate"].mesh
    assert bounds(model, low) == [[0, 0, 0], [0.01, 0.02, 0.03]]
    assert bounds(model, right) == [[0.98, 0, 0], [1, 0.01, 0.03]]
    assert bounds(model, parts["machine/right/plate"]) == [[0.98, 0.05, 0], [1, 0.06, 0.03]]
    assert model.unit == 0.001 and model.deviation == CHORD and model.skipped == []
    assert all(solid(model, part) for part in model.parts)


@pytest.mark.parametrize(
    ("unit", "metres"), [("M", 1.0), ("INCH", 0.0254), ("FT", 0.3048), ("CM", 0.01)]
)
def test_units(tmp_path, unit, metres):
    made = StepAssembly()
    made.product("plate", block(254, 25.4, 2.54))
    model = read_here(made.write(tmp_path / "plate.stp", unit=unit))
    assert model.unit == metres and model.deviation == 0.0
    points = model.meshes[0].vertices
    np.testing.assert_allclose(np.ptp(points, axis=0), [0.254, 0.0254, 0.00254], rtol=1e-12)


@pytest.mark.parametrize("schema", ["AP203", "AP214CD", "AP242DIS"])
def test_schemas(tmp_path, schema):
    model = read_here(machine(tmp_path / "machine.step", schema=schema))
    assert len(model.parts) == 6 and len(model.meshes) == 2 and model.unit == 0.001


def test_bodies_of_a_product(tmp_path):
    """Solids and free shells are parts of their own."""
    made, plate = StepAssembly(), block(10, 20, 30)
    tops = [first_face(block(1, 1, 1)), first_face(block(2, 2, 2))]
    shape = compound(plate, (plate, location((100, 0, 0), 90)), cylinder(1, 1), *tops)
    made.product("kit", shape)
    model = read_here(made.write(tmp_path / "kit.step"))
    names = ["kit/body 1", "kit/body 2", "kit/body 3", "kit/surface 4", "kit/surface 5"]
    assert [part.id for part in model.parts] == names
    assert {part.assembly for part in model.parts} == {"kit"}
    assert bounds(model, model.parts[1]) == [[0.08, 0, 0], [0.1, 0.01, 0.03]]
    assert [solid(model, part) for part in model.parts] == [True, True, True, False, False]
    assert len(model.meshes[model.parts[3].mesh].faces) == 2 and model.skipped == []


def distance_of(points, kind):
    """Distance from a surface with a formula."""
    across = np.hypot(points[:, 0], points[:, 1])
    if kind == "sphere":
        return np.abs(np.linalg.norm(points, axis=1) - 7)
    if kind == "torus":
        return np.abs(np.hypot(across - 20, points[:, 2]) - 3)
    caps = np.minimum(np.abs(points[:, 2]), np.abs(points[:, 2] - 10))
    if kind == "cylinder":
        return np.minimum(np.abs(across - 5), caps)
    side = np.abs(across - 5 + points[:, 2] / 2) / np.hypot(1, 0.5)  # a cone of 5, 0 and 10
    return np.minimum(side, caps)


CURVED = {
    "sphere": partial(sphere, 7),
    "torus": partial(torus, 20, 3),
    "cylinder": partial(cylinder, 5, 10),
    "cone": partial(cone, 5, 0, 10),
}


@pytest.mark.parametrize("chord", [1.0, 0.03])
@pytest.mark.parametrize("kind", CURVED)
def test_meshes_keep_the_chord(kind, chord):
    """No point of a mesh is farther from the surface than its deviation, and it comes close."""
    made = mesh_body(CURVED[kind](), chord)
    share = np.array([(i, j, 8 - i - j) for i in range(9) for j in range(9 - i)]) / 8
    points = np.einsum("sc,ncx->nsx", share, made.vertices[made.faces]).reshape(-1, 3)
    farthest = distance_of(points, kind).max()
    slant = 0.3 if kind == "cone" else 0.75  # points are compared with their own triangle alone
    assert slant * made.deviation <= farthest <= made.deviation <= chord
    mesh = abut.Mesh(made.vertices, made.faces, "cpu")
    assert mesh.watertight and mesh.oriented and volume(made) > 0


@pytest.mark.parametrize("make", [drilled_block, partial(rounded_block, (10, 20, 30), 2), vase])
def test_solids_are_closed(make):
    """Rims of faces are the same vertices; finer meshes come closer to the same volume."""
    volumes = []
    for chord in (0.3, 0.03):
        made = mesh_body(make(), chord)
        mesh = abut.Mesh(made.vertices, made.faces, "cpu")
        assert mesh.watertight and mesh.oriented and 0 < made.deviation <= chord
        volumes.append(volume(made))
    assert abs(volumes[0] - volumes[1]) < 0.03 * volumes[1]


def test_a_mesher_that_misses_the_chord(monkeypatch):
    """A body is meshed again with a smaller deflection."""
    from OCP import BRepMesh

    mesher, asked = BRepMesh.BRepMesh_IncrementalMesh, []

    def careless(body, deflection, *others):
        asked.append(deflection)
        return mesher(body, 5 * deflection, *others)

    monkeypatch.setattr(BRepMesh, "BRepMesh_IncrementalMesh", careless)
    assert mesh_body(sphere(100), 0.5).deviation <= 0.5
    assert len(asked) > 1 and asked[1] < asked[0] == 0.5


def test_the_same_bytes(tmp_path):
    path = machine(tmp_path / "machine.step")
    one, two = read_here(path), read_model(path)
    for a, b in zip(one.parts, two.parts, strict=True):
        assert a.id == b.id and a.pose.tobytes() == b.pose.tobytes()
    for a, b in zip(one.meshes, two.meshes, strict=True):
        assert a.vertices.tobytes() == b.vertices.tobytes()
        assert a.faces.tobytes() == b.faces.tobytes()


def one_line(path, match):
    with pytest.raises(abut.FileError, match=match) as error:
        read_model(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)


def test_files_that_are_no_models(tmp_path, capfd):
    path = machine(tmp_path / "machine.step")
    text = path.read_text()
    capfd.readouterr()
    path.write_text(text[: len(text) // 2])
    one_line(path, "is cut short or no STEP file")
    path.write_text("nothing of the kind END-ISO-10303-21;")
    one_line(path, "cannot be read as a STEP file")
    head = text[: text.index("DATA;")]
    path.write_text(f"{head}DATA;\nENDSEC;\nEND-ISO-10303-21;\n")
    one_line(path, "holds no shape|holds no surface")
    assert capfd.readouterr() == ("", "")


def test_missing_references(tmp_path):
    """The solid without its corner is skipped, the pins are still parts."""
    path = machine(tmp_path / "machine.step")
    text = path.read_text()
    user, corner = re.search(r"(#\d+) = VERTEX_POINT\('',(#\d+)\);", text).groups()
    path.write_text(re.sub(rf"\n{corner} = .*", "", text))
    model = read_model(path)
    assert {part.name for part in model.parts} == {"pin"}
    reasons = {row.id: row.reason for row in model.skipped}
    assert reasons[user] == f"{user} refers to {corner}, which is missing."
    assert reasons["machine/left/low"] == "it has no surface."


def damaged(text, chance):
    """Delete a line, cut it, or change a number, a reference or a character of it."""
    lines = text.split("\n")
    for _ in range(chance.choice([1, 1, 2, 5])):
        k, kind = chance.randrange(len(lines)), chance.randrange(5)
        line = lines[k]
        cut = chance.randrange(len(line) + 1)
        lines[k] = [
            "",
            line[:cut],
            re.sub(r"-?\d+\.\d*", lambda _: chance.choice(["0.", "1E30", "-1.", "$"]), line),
            re.sub(r"#\d+(?!=)", lambda _: f"#{chance.randrange(1, 99)}", line),
            line[:cut] + chr(chance.randrange(32, 255)) + line[cut + 1 :],
        ][kind]
    return "\n".join(lines)


def try_damaged(path, text, seeds):
    crashed = 0
    for seed in seeds:
        path.write_text(damaged(text, random.Random(seed)), encoding="latin-1")
        try:
            model = read_model(path)
            assert all(np.isfinite(mesh.vertices).all() for mesh in model.meshes)
        except abut.FileError as error:
            assert "\n" not in str(error) and str(path) in str(error)
            crashed += "its reader crashed; " in str(error)
    return crashed


def test_damaged_files(tmp_path):
    """A model or one line that names the file, also where OCCT itself crashes."""
    path = machine(tmp_path / "machine.step")
    assert try_damaged(path, path.read_text(), [9, 12, 14]) > 0


@pytest.mark.slow
def test_many_damaged_files(tmp_path):
    path = machine(tmp_path / "machine.step")
    try_damaged(path, path.read_text(), range(100, 140))


def test_a_missing_package(tmp_path, monkeypatch):
    path = machine(tmp_path / "machine.step")
    monkeypatch.setattr("abut.io.models.reader_process.find_spec", lambda name: None)
    with pytest.raises(abut.ToolError, match=r"STEP files need OCP; pip install 'abut\[cad\]'"):
        read_model(path)
