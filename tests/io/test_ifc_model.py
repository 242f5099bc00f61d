"""Models of IFC files: written by IfcOpenShell, real ones, damaged ones."""

import numpy as np
import pytest

import abut
from abut.io.read_model import read_model

pytest.importorskip("ifcopenshell", reason="IfcOpenShell is missing: pip install 'abut[bim]'")

from ifc_files import IfcHouse, bounds

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


@pytest.mark.parametrize("name", REAL)
def test_real_files(data, name):
    path = data / "ifc" / f"{name}.ifc"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    model = read_model(path)
    assert (len(model.parts), len(model.skipped)) == REAL[name]
    assert model.unit == 0.001
    assert all(part.layer for part in model.parts)
    assert all(np.isfinite(mesh.vertices).all() for mesh in model.meshes)
