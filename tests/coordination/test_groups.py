"""Groups of clashes with one cause."""

import numpy as np

import abut
from abut.coordination.groups import clash_groups
from abut.coordination.parts.part_table import PartTable
from blocks import block, model, table


def grouped(clashes):
    """Sets of pairs by group."""
    out = {}
    for row in clashes:
        ends = frozenset(key.partition("/")[2] for key in (row["a"], row["b"]))
        out.setdefault(row["group"], set()).add(ends)
    return list(out.values())


def studs(count=6):
    shapes = {f"stud{k}": block((0.05, 0.1, 2.5), (0.6 * k, 0, 0)) for k in range(count)}
    shapes["duct"] = block((4, 0.06, 0.2), (-0.3, 0.02, 1))
    return shapes, dict.fromkeys(shapes, "IfcMember") | {"duct": "IfcDuctSegment"}


def test_one_duct_through_six_studs_is_one_group():
    shapes, types = studs()
    shapes["sill"], types["sill"] = block((4, 0.1, 0.05), (0, 0, 0)), "IfcPlate"
    found = abut.clash(table(shapes, type=types), device="cpu")
    through = {frozenset(["duct", f"stud{k}"]) for k in range(6)}
    footed = {frozenset(["sill", f"stud{k}"]) for k in range(6)}
    assert sorted(map(len, grouped(found))) == [6, 6]
    assert through in grouped(found) and footed in grouped(found)
    texts = [group.text for group in clash_groups(found)]
    assert "duct with 6 IfcMember: 6 pierce" in texts
    assert [group.id for group in clash_groups(found)] == list(dict.fromkeys(found.group))


def test_a_grid_of_ducts_and_studs_is_a_group_for_each_duct():
    shapes, types = studs(3)
    shapes |= {f"duct{k}": block((4, 0.06, 0.1), (-0.3, 0.02, 0.2 * k + 0.1)) for k in range(4)}
    del shapes["duct"]
    types |= {f"duct{k}": "IfcDuctSegment" for k in range(4)}
    found = abut.clash(table(shapes, type=types), device="cpu")
    hubs = {group.hub for group in clash_groups(found)}
    assert hubs == {f"model/stud{k}" for k in range(3)}, "a stud has more clashes than a duct"


def test_groups_do_not_depend_on_names_of_files_or_their_order(tmp_path):
    shapes, types = studs()
    duct = model({"duct": shapes.pop("duct")}, path="hvac.ifc", type=types)
    frame = model(shapes, path="frame.ifc", type=types)
    one, other = (
        abut.clash(PartTable.of_models(models), device="cpu")
        for models in ([duct, frame], [frame, duct])
    )
    assert grouped(one) == grouped(other) and len(grouped(one)) == 1
    for name, values in one.columns().items():
        np.testing.assert_array_equal(values, getattr(other, name))


def test_duplicates_of_two_files_are_one_group():
    shapes = {str(k): block((1, 1, 1), (3 * k, 0, 0)) for k in range(4)}
    twice = shapes | {"copy": shapes["0"], "again": shapes["0"]}
    first, second = model(shapes, path="a.ifc"), model(shapes, path="b.ifc")
    found = abut.clash(PartTable.of_models([first, second]), device="cpu")
    assert set(found.verdict) == {"duplicate"} and len(set(found.group)) == 1 and len(found) == 4
    assert clash_groups(found)[0].text == "4 duplicate, such as a/0 and b/0"
    found = abut.clash(table(twice), device="cpu")
    assert len(found) == 3 and len(set(found.group)) == 1
    found = abut.clash(table(twice | {"three": shapes["3"], "two": shapes["2"]}), device="cpu")
    assert sorted(map(len, grouped(found))) == [1, 1, 3]


def test_texts_of_groups_have_names_for_people():
    """Regression: they had the keys of parts, which are GlobalIds in IFC files."""
    shapes, types = studs(3)
    found = abut.clash(table(shapes, type=types, name={"duct": "Supply air"}), device="cpu")
    assert [group.text for group in clash_groups(found)] == [
        "Supply air with 3 IfcMember: 3 pierce"
    ]


def test_no_clashes_and_single_ones():
    assert len(clash_groups(abut.clash(table({"a": block((1, 1, 1))}), device="cpu"))) == 0
    pair = {"a": block((1, 1, 1)), "b": block((1, 1, 1), (0.5, 0, 0))}
    groups = clash_groups(abut.clash(table(pair), device="cpu"))
    assert [(g.rows.tolist(), g.text) for g in groups] == [([0], "a and b: 1 protrude")]


def test_groups_keep_their_names_when_clashes_come_and_go(tmp_path):
    """Also where folders are moved, parts have no types, or rows come first that were not there."""
    shapes, types = studs()
    shapes |= {"sill": block((4, 0.1, 0.05), (0, 0, 0)), "cap": block((4, 0.1, 0.05), (0, 0, 2.45))}
    types |= {"sill": "IfcPlate", "cap": "IfcPlate"}
    for kinds in (types, {}):
        first = abut.clash(table(shapes, type=kinds), device="cpu")
        some = {name: shape for name, shape in shapes.items() if name not in ("cap", "stud3")}
        moved = model({"a": block((1, 1, 1)), "b": block((1, 1, 1), (0.5, 0, 0))}, path="0.ifc")
        again = PartTable.of_models([model(some, path="/later/model.ifc", type=kinds), moved])
        second = abut.clash(again, device="cpu")
        before, after = (
            {group.hub: group.id for group in clash_groups(one) if group.hub}
            for one in (first, second)
        )
        assert after["model/duct"] == before["model/duct"]
        assert after["model/sill"] == before["model/sill"]
        assert len(set(before.values()) | set(after.values())) == len(before | after)


def test_groups_of_duplicates_keep_their_names():
    shapes = {str(k): block((1, 1, 1), (3 * k, 0, 0)) for k in range(4)}
    found = []
    for few in (shapes, {key: shapes[key] for key in "123"}):
        files = [model(few, path=path) for path in ("x/a.ifc", "y/b.ifc")]
        found.append(abut.clash(PartTable.of_models(files), device="cpu").group[0])
    assert found[0] == found[1] != ""
    twice = table({"a": shapes["0"], "b": shapes["0"], "c": shapes["1"], "d": shapes["1"]})
    assert len(set(abut.clash(twice, device="cpu").group)) == 2


def test_duplicates_are_groups_of_two_files_and_of_copies_within_one():
    cube = block((1, 1, 1))
    files = [model({"x": cube}, path="a.ifc"), model({"y": cube, "z": cube}, path="b.ifc")]
    files.append(model({"y": cube, "z": cube}, path="c.ifc"))
    found = abut.clash(PartTable.of_models(files), device="cpu")
    sizes = {}
    for row in found:
        ends = frozenset(key.partition("/")[0] for key in (row["a"], row["b"]))
        sizes.setdefault(row["group"], []).append(ends)
    assert sorted((len(rows), len(set(rows))) for rows in sizes.values()) == [
        (1, 1), (1, 1), (2, 1), (2, 1), (4, 1)
    ]  # fmt: skip
