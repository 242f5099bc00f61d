"""A small procedural house with every verdict, for tests of reports."""

from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.parts.part_table import PartTable
from abut.coordination.report.report_columns import PartFacts, columns_of
from blocks import all_pairs, block, model

HOSTILE = "<script>window.hurt=1</script><img src=x onerror=hurt=2>\"'&\u202etxt\x07\x00]]>"
CHECK = Check("all", CheckKind.CLEARANCE, clearance=0.05, tolerance=1e-3)


def guid(number):
    """A GlobalId of a part."""
    return f"{number:022d}"


SHAPES = {
    guid(1): ("Wall north", "IfcWall", block((6, 0.25, 2.5))),
    guid(2): ("Slab", "IfcSlab", block((6, 4, 0.2), (0, 0, -0.19))),
    guid(3): ("Duct 7", "IfcDuctSegment", block((0.3, 1.5, 0.3), (2, -0.5, 1.8))),
    guid(4): ("Beam", "IfcBeam", block((8, 0.3, 0.3), (-1, 0.2, 1))),
    guid(5): ("Sleeve", "IfcBuildingElementProxy", block((0.1, 0.1, 0.1), (5, 0.08, 1.0))),
    guid(6): (HOSTILE, "IfcWall", block((6, 0.25, 2.5))),
    guid(7): ("Radiator", "IfcSpaceHeater", block((1, 0.1, 0.6), (3.5, 0.53, 0.3))),
    guid(8): ("Column far away", "IfcColumn", block((0.3, 0.3, 2.5), (9, 9, 0))),
}


def make_house():
    """Parts of two files."""
    names = {key: name for key, (name, _, _) in SHAPES.items()}
    types = {key: kind for key, (_, kind, _) in SHAPES.items()}
    shapes = {key: shape for key, (_, _, shape) in SHAPES.items()}
    layers = dict.fromkeys(shapes, "Level 1")
    keys = list(shapes)
    models = []
    for path, some in (("house.ifc", keys[::2]), ("services.obj", keys[1::2])):
        few = {key: shapes[key] for key in some}
        models.append(model(few, path, name=names, type=types, layer=layers))
    return PartTable.of_models(models)


def facts_in(parts):
    """The function that ``columns_of`` takes."""

    def facts_of(key):
        row = int(parts.rows_of([key])[0])
        file, name, kind = parts.file[row], parts.name[row], parts.type[row]
        return PartFacts(file, key.partition("/")[2], name, kind, parts.layer[row])

    return facts_of


def house_clashes():
    """The clashes of the house, in groups, and their columns."""
    parts = make_house()
    clashes = check_pairs(parts, all_pairs(parts), [CHECK], device="cpu")
    clashes.group[:] = [f"group{k // 2}" for k in range(len(clashes))]
    clashes.problems.append(f"{HOSTILE}.ifc is damaged")
    return clashes, columns_of(clashes, facts_in(parts))
