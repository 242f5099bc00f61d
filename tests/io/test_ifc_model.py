"""Models of IFC files: written by IfcOpenShell, real ones, damaged ones."""

import random
import re
import zipfile

import numpy as np
import pytest

import abut
from abut.io import read_model
from abut.io.models.ifc_file import failures

pytest.importorskip("ifcopenshell", reason="IfcOpenShell is missing: pip install 'abut[bim]'")

from ifc_files import IfcHouse, bounds, world

# parts, skipped products
REAL = {
    "Building-Architecture": (11, 3),
    "Building-Hvac": (5, 1),
    "Building-Landscaping": (6, 1),
    "Building-Structural": (16, 1),
}


def wall_with_door(path, schema="IFC4"):
    """A wall with a door in an opening, in millimetres."""
    house = IfcHouse(schema, "MILLI")
    wall = house.element("IfcWall", "wall", house.body(house.block((4000, 200, 3000))))
    hole = house.body(house.block((1000, 400, 2000)))
    opening = house.element("IfcOpeningElement", "hole", hole, (1000, -100, 0), stored=False)
    door = house.element(
        "IfcDoor", "door", house.body(house.block((1000, 50, 2000))), (1000, 75, 0)
    )
    house.rooted("IfcRelVoidsElement", RelatingBuildingElement=wall, RelatedOpeningElement=opening)
    house.rooted("IfcRelFillsElement", RelatingOpeningElement=opening, RelatedBuildingElement=door)
    return house.write(path)


@pytest.mark.parametrize("schema", ["IFC2X3", "IFC4", "IFC4X3"])
def test_a_door_in_its_wall(tmp_path, schema):
    model = read_model(wall_with_door(tmp_path / "house.ifc", schema))
    parts = {part.name: part for part in model.parts}
    assert model.unit == 0.001 and model.deviation == 0.0 and model.skipped == []
    assert {name: part.type for name, part in parts.items()} == {
        "wall": "IfcWall",
        "door": "IfcDoor",
    }
    assert {part.layer for part in parts.values()} == {"ground floor"}
    assert model.links == [(parts["door"].id, parts["wall"].id, "fills")]
    assert bounds(model, parts["wall"]) == [[0, 0, 0], [4, 0.2, 3]]
    assert bounds(model, parts["door"]) == [[1, 0.075, 0], [2, 0.125, 2]]
    for part in model.parts:
        mesh = model.meshes[part.mesh]
        assert abut.Mesh(mesh.vertices, mesh.faces, "cpu").watertight
    assert [part.id for part in model.parts] == sorted(part.id for part in model.parts)


def solid(model, part):
    mesh = model.meshes[part.mesh]
    return abut.Mesh(mesh.vertices, mesh.faces, "cpu").watertight


def by_name(model):
    return {part.name: part for part in model.parts}


def reasons(model):
    return {row.name: row.reason for row in model.skipped}


@pytest.mark.parametrize("at", [(0, 0, 0), (5, 0, 0)], ids=["plain", "shifted"])
def test_mapped_items_are_instances(tmp_path, at):
    house = IfcHouse()
    use = house.mapped(house.body(house.block((1, 2, 3))), at)
    house.element("IfcColumn", "first", use())
    house.element("IfcColumn", "second", use(), (10, 0, 0), turned=True)
    model = read_model(house.write(tmp_path / "columns.ifc"))
    first, second = by_name(model)["first"], by_name(model)["second"]
    assert first.mesh == second.mesh and len(model.meshes) == 1
    x = at[0]
    assert bounds(model, first) == [[x, 0, 0], [x + 1, 2, 3]]
    assert bounds(model, second) == [[8, x, 0], [10, x + 1, 3]]


def tetrahedron(house, corners=4):
    points = house.file.createIfcCartesianPointList3D(
        ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    faces = ((1, 3, 2), (1, 2, corners), (2, 3, 4), (1, 4, 3))
    return house.file.createIfcTriangulatedFaceSet(points, None, True, faces)


def test_tessellations_are_read_as_they_are(tmp_path):
    """Instances by a scaled map share the numbers of the file; a bad index loses one part."""
    house = IfcHouse(prefix="MILLI")
    use = house.mapped(house.body(tetrahedron(house), "Tessellation"), (7, 0, 0))
    house.element("IfcPlate", "first", use(), (1000, 0, 0))
    house.element("IfcPlate", "second", use(), (2000, 0, 0))
    house.element("IfcPlate", "bad", house.body(tetrahedron(house, 5), "Tessellation"))
    model = read_model(house.write(tmp_path / "plates.ifc"))
    parts = by_name(model)
    assert parts["first"].mesh == parts["second"].mesh and set(parts) == {"first", "second"}
    assert "does not have" in reasons(model)["bad"]
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * 0.001
    assert sorted(model.meshes[0].vertices.tolist()) == sorted(points.tolist())
    np.testing.assert_allclose(world(model, parts["second"]).min(axis=0), [2.007, 0, 0], atol=1e-15)
    assert solid(model, parts["first"])


def test_slivers_stay(tmp_path):
    """Regression: IfcOpenShell leaves out a face without area, and the solid is open."""
    house = IfcHouse()
    points = ((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    faces = ((1, 3, 5), (5, 3, 2), (1, 2, 4), (2, 3, 4), (1, 4, 3), (1, 5, 2))
    points = house.file.createIfcCartesianPointList3D(points)
    item = house.file.createIfcTriangulatedFaceSet(points, None, True, faces)
    house.element("IfcPlate", "plate", house.body(item, "Tessellation"))
    model = read_model(house.write(tmp_path / "sliver.ifc"))
    assert len(model.meshes[0].faces) == 6 and solid(model, model.parts[0])


def test_curved_shapes_keep_the_chord(tmp_path):
    house = IfcHouse()
    house.element("IfcColumn", "column", house.body(house.cylinder(0.5, 3.0)))
    path = house.write(tmp_path / "column.ifc")
    counts = []
    for chord in (0.01, 0.001):
        model = read_model(path, chord=chord)
        assert model.deviation == chord and solid(model, model.parts[0])
        mesh = model.meshes[0]
        corners = mesh.vertices[mesh.faces]
        sides = np.ptp(corners[..., 2], axis=1) > 0
        middles = (corners + np.roll(corners, 1, axis=1))[sides] / 2
        radii = np.hypot(middles[..., 0], middles[..., 1])
        assert 0.5 - chord <= radii.min() and radii.max() <= 0.5 + 1e-12
        counts.append(len(mesh.faces))
    assert counts[0] < counts[1]


def test_assemblies_properties_and_containers(tmp_path):
    house = IfcHouse()
    stairs = [house.element("IfcStair", "stair") for _ in range(2)]
    for k, stair in enumerate(stairs):
        flight = house.element(
            "IfcStairFlight", f"flight {k}", house.body(house.block((1, 1, 1))), stored=False
        )
        house.aggregate(stair, [flight])
        value = house.file.create_entity("IfcLabel", "EI 30")
        rows = [
            house.file.createIfcPropertySingleValue("FireRating", None, value),
            house.file.createIfcPropertySingleValue("Risers", None, house.file.createIfcInteger(7)),
        ]
        pset = house.rooted("IfcPropertySet", "Pset_Stair", HasProperties=rows)
        house.rooted(
            "IfcRelDefinesByProperties",
            RelatedObjects=[flight],
            RelatingPropertyDefinition=pset,
        )
    flight.Tag = "F1"
    model = read_model(house.write(tmp_path / "stairs.ifc"))
    parts = by_name(model)
    assert set(parts) == {"flight 0", "flight 1"} and model.skipped == []
    assert {part.assembly for part in parts.values()} == {
        f"stair [{stair.GlobalId}]" for stair in stairs
    }, "two assemblies of one name are two"
    assert {part.layer for part in parts.values()} == {"ground floor"}
    wanted = {"Pset_Stair.FireRating": "EI 30", "Pset_Stair.Risers": 7}
    assert parts["flight 0"].properties == wanted
    assert parts["flight 1"].properties == wanted | {"Tag": "F1"}


def test_links_of_ports_paths_and_coverings(tmp_path):
    house = IfcHouse()
    names = ["pipe", "bend", "wall", "other", "tiles"]
    kinds = ["IfcPipeSegment", "IfcPipeFitting", "IfcWall", "IfcWall", "IfcCovering"]
    body = house.body(house.block((1, 1, 1)))
    made = {
        name: house.element(kind, name, body, (2 * k, 0, 0))
        for k, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    ports = [house.rooted("IfcDistributionPort", "port") for _ in range(2)]
    for name, port in zip(("pipe", "bend"), ports, strict=True):
        house.aggregate(made[name], [port], "IfcRelNests")
    house.rooted("IfcRelConnectsPorts", RelatingPort=ports[0], RelatedPort=ports[1])
    house.rooted(
        "IfcRelConnectsPathElements",
        RelatingElement=made["wall"],
        RelatedElement=made["other"],
        RelatedConnectionType="ATEND",
        RelatingConnectionType="ATSTART",
    )
    house.rooted(
        "IfcRelCoversBldgElements",
        RelatingBuildingElement=made["wall"],
        RelatedCoverings=[made["tiles"]],
    )
    model = read_model(house.write(tmp_path / "links.ifc"))
    name_of = {part.id: part.name for part in model.parts}
    found = {(name_of[link.a], name_of[link.b], link.kind) for link in model.links}
    assert found == {
        ("pipe", "bend", "connects"),
        ("wall", "other", "connects"),
        ("wall", "tiles", "hosts"),
    }
    assert len(model.meshes) == 1


def test_products_that_cannot_be_meshed_are_listed(tmp_path):
    house = IfcHouse()
    flat, whole = house.block((1, 1, 0)), house.block((1, 1, 1))
    house.element("IfcColumn", "whole", house.body(whole))
    house.element("IfcColumn", "empty")
    house.element("IfcColumn", "flat", house.body(flat))
    both = house.file.createIfcShapeRepresentation(
        house.context, "Body", "SweptSolid", [whole, flat]
    )
    house.element("IfcColumn", "half", both)
    house.element("IfcGrid", "grid")
    house.element("IfcSpace", "room", house.body(whole), stored=False)
    model = read_model(house.write(tmp_path / "skipped.ifc"))
    assert set(by_name(model)) == {"whole", "half"}
    found = reasons(model)
    assert set(found) == {"empty", "flat", "half"}
    assert found["empty"] == "it has no representation."
    assert found["flat"].startswith("Non-positive extrusion height (IfcExtrudedAreaSolid #")
    assert found["half"].startswith("its mesh is incomplete: Non-positive extrusion height")


def without(path, pattern):
    """Remove the first entity that matches from a file."""
    text = path.read_text()
    found = re.search(rf"^#\d+={pattern}.*\n", text, re.MULTILINE)
    path.write_text(text.replace(found[0], "", 1))
    return path


def test_missing_references(tmp_path):
    """The door is skipped with its shape, the wall is still a part."""
    path = wall_with_door(tmp_path / "house.ifc")
    text = path.read_text()
    number = re.search(r"^#\d+=IFCDOOR\(.*,(#\d+),\S*,\S*,\S*,\S*,\S*,\S*\);", text, re.MULTILINE)[
        1
    ]
    shape = re.search(
        rf"^{number}=IFCPRODUCTDEFINITIONSHAPE\(\$,\$,\((#\d+)\)", text, re.MULTILINE
    )[1]
    path.write_text(re.sub(rf"\n{shape}=.*", "", text))
    model = read_model(path)
    assert set(by_name(model)) == {"wall"}
    assert reasons(model)["door"] == f"{number} refers to {shape}, which is missing."


def test_a_missing_opening(tmp_path):
    """The wall is skipped, since its shape is unknown; the relation of the door is listed."""
    path = without(wall_with_door(tmp_path / "house.ifc"), "IFCOPENINGELEMENT")
    model = read_model(path)
    assert set(by_name(model)) == {"door"} and model.links == []
    assert {row.type for row in model.skipped} == {"IfcWall", "IfcRelFillsElement"}
    assert all(row.reason.endswith("which is missing.") for row in model.skipped)


def test_equal_global_ids(tmp_path):
    house = IfcHouse()
    body = house.body(house.block((1, 1, 1)))
    first, second = (house.element("IfcColumn", name, body) for name in "ab")
    second.GlobalId = first.GlobalId
    model = read_model(house.write(tmp_path / "twice.ifc"))
    assert [part.id for part in model.parts] == [first.GlobalId, f"{first.GlobalId}#2"]


def test_parts_do_not_depend_on_threads(tmp_path, monkeypatch):
    house = IfcHouse()
    for k in range(12):
        house.element("IfcColumn", str(k), house.body(house.cylinder(0.1 + k, 2)), (3 * k, 0, 0))
    path = house.write(tmp_path / "many.ifc")
    models = []
    for threads in (1, 4):
        monkeypatch.setattr("os.cpu_count", lambda count=threads: count)
        models.append(read_model(path))
    one, four = models
    assert [part.id for part in one.parts] == [part.id for part in four.parts]
    for a, b in zip(one.parts, four.parts, strict=True):
        assert a.mesh == b.mesh and a.pose.tobytes() == b.pose.tobytes()
        for name in ("vertices", "faces"):
            first, second = (getattr(m.meshes[a.mesh], name) for m in models)
            assert first.tobytes() == second.tobytes()


def test_feet(tmp_path):
    house = IfcHouse()
    metre, none = house.file.by_type("IfcSIUnit")[0], house.file.createIfcReal(0.3048)
    size = house.file.createIfcMeasureWithUnit(none, metre)
    powers = house.file.createIfcDimensionalExponents(1, 0, 0, 0, 0, 0, 0)
    foot = house.file.createIfcConversionBasedUnit(powers, "LENGTHUNIT", "FOOT", size)
    house.file.by_type("IfcUnitAssignment")[0].Units = [foot]
    house.element("IfcColumn", "column", house.body(house.block((1, 2, 10))), (100, 0, 0))
    points = house.file.createIfcCartesianPointList3D(
        ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    faces = ((1, 3, 2), (1, 2, 4), (2, 3, 4), (1, 4, 3))
    item = house.file.createIfcTriangulatedFaceSet(points, None, True, faces)
    house.element("IfcPlate", "plate", house.body(item, "Tessellation"), (0, 0, 10))
    model = read_model(house.write(tmp_path / "feet.ifc"))
    parts = by_name(model)
    assert model.unit == 0.3048
    assert bounds(model, parts["column"]) == [[30.48, 0, 0], [30.7848, 0.6096, 3.048]]
    assert bounds(model, parts["plate"]) == [[0, 0, 3.048], [0.3048, 0.3048, 3.3528]]


@pytest.mark.parametrize("prefix", [None, "MILLI"])
def test_far_from_the_origin(tmp_path, prefix):
    """Blocks side by side at map coordinates touch; the meshes are those at the origin."""
    scale = 1000.0 if prefix else 1.0
    house, corner = IfcHouse(prefix=prefix), np.array([458_000.25, 5_439_000.5, 112.125])
    body = house.body(house.block(scale * np.array([0.5, 0.25, 2])))
    for k in range(2):
        house.element("IfcColumn", str(k), body, scale * (corner + np.array([0.5 * k, 0, 0])))
    model = read_model(house.write(tmp_path / "far.ifc"))
    assert len(model.meshes) == 1 and np.abs(model.meshes[0].vertices).max() == 2
    for k, part in enumerate(sorted(model.parts, key=lambda part: part.name)):
        low = world(model, part).min(axis=0)
        np.testing.assert_allclose(low, corner + np.array([0.5 * k, 0, 0]), rtol=0, atol=1e-9)


def test_ifczip(tmp_path):
    path = wall_with_door(tmp_path / "house.ifc")
    with zipfile.ZipFile(tmp_path / "house.ifczip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, "house.ifc")
    packed, plain = read_model(tmp_path / "house.ifczip"), read_model(path)
    assert [part.id for part in packed.parts] == [part.id for part in plain.parts]
    with zipfile.ZipFile(tmp_path / "empty.ifczip", "w") as archive:
        archive.writestr("notes.txt", "nothing")
    with pytest.raises(abut.FileError, match=r"empty\.ifczip holds 0 \.ifc files"):
        read_model(tmp_path / "empty.ifczip")


def test_a_file_that_is_cut_short(tmp_path):
    path = wall_with_door(tmp_path / "house.ifc")
    text = path.read_text()
    for share in (0.0, 0.01, 0.3, 0.9, 0.99):
        path.write_text(text[: int(share * len(text))])
        with pytest.raises(abut.FileError, match=r"house\.ifc is cut short") as error:
            read_model(path)
        assert "\n" not in str(error.value)


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


@pytest.mark.parametrize("seed", range(5))
def test_damaged_files(tmp_path, seed):
    """A model or one line that names the file; nothing else."""
    path = wall_with_door(tmp_path / "house.ifc")
    text, chance = path.read_text(), random.Random(seed)
    for _ in range(20):
        path.write_text(damaged(text, chance), encoding="latin-1")
        try:
            model = read_model(path)
            assert all(np.isfinite(mesh.vertices).all() for mesh in model.meshes)
        except abut.FileError as error:
            line = str(error)
            assert "\n" not in line and str(path) in line and line.encode("utf-8")


def test_errors_of_logs():
    log = (
        "[error] [GEO1] [time] {id} Bad height encountered for:\n#26=IfcX()\n[warning] [t] y:\n#3=A"
    )
    assert failures(log) == {26: "Bad height"}


@pytest.mark.parametrize("name", REAL)
def test_real_files(data, name):
    path = data / "ifc" / f"{name}.ifc"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    model = read_model(path)
    assert (len(model.parts), len(model.skipped)) == REAL[name]
    assert model.unit == 0.001 and model.deviation == 0.0
    assert all(part.layer for part in model.parts)
    assert all(solid(model, part) for part in model.parts)


@pytest.mark.parametrize("name", REAL)
def test_tessellations_lie_as_in_ifcopenshell(data, name):
    """IfcOpenShell places the same points."""
    path = data / "ifc" / f"{name}.ifc"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    import ifcopenshell
    from ifcopenshell import geom

    settings = geom.settings()
    model, file = read_model(path), ifcopenshell.open(path)
    for part in model.parts[:4]:
        made = geom.create_shape(settings, file.by_guid(part.id))
        points = np.array(made.geometry.verts).reshape(-1, 3)
        matrix = np.array(made.transformation.matrix).reshape(4, 4).T
        np.testing.assert_array_equal(part.pose, matrix)
        mesh = model.meshes[part.mesh].vertices
        for low_or_high in (np.min, np.max):
            np.testing.assert_array_equal(low_or_high(mesh, axis=0), low_or_high(points, axis=0))
