"""Rules: sets of parts, the check of each pair, and errors that name the rule and the key."""

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.parts.part_table import PartTable
from abut.coordination.rules import LINKS, CheckMatrix, Rules, excluded_by
from abut.coordination.rules_file import read_rules
from abut.errors import FileError, OptionError
from blocks import block, model, table

BOX = block((1, 1, 1))

HOUSE = """
tolerance = 0.001

[sets.ducts]
type = ["IfcDuct*", "ifcpipe*"]

[sets.walls]
type = "IfcWall*"
layer = "Level ?"

[sets.fire]
properties = { "*.FireRating" = ["F30", "F9*"], "Qto.Width" = { min = 0.2 } }

[sets.hvac]
file = "*Hvac*"

[sets.stairs]
assembly = "Stair*"

[[checks]]
a = "ducts"
b = "fire"
clearance = 0.05
touch = true

[[checks]]
name = "all walls"
a = ["ducts", "hvac"]
b = "walls"
tolerance = 0.002

[[checks]]
name = "same"
kind = "duplicate"

[exclude]
links = ["fills"]
same_assembly = true
pairs = [["stairs", "hvac"]]
"""


def house():
    shapes = dict.fromkeys(["duct", "pipe", "wall", "fire wall", "flight", "rail"], BOX)
    types = {"duct": "IfcDuctSegment", "pipe": "IfcPipeFitting", "wall": "IfcWallStandardCase"}
    types |= {"fire wall": "IfcWall", "flight": "IfcStairFlight", "rail": "IfcRailing"}
    properties = {
        "wall": {"Pset.FireRating": "F90", "Qto.Width": 0.1},
        "fire wall": {"Pset.FireRating": "f90-A", "Qto.Width": 0.2, "Load": True},
    }
    house = model(
        shapes,
        path="House.ifc",
        type=types,
        layer={"wall": "Level 1", "fire wall": "level 2"},
        assembly={"flight": "Stair 1", "rail": "Stair 1/Rails"},
        properties=properties,
        links=[("duct", "pipe", "connects"), ("wall", "pipe", "fills")],
    )
    return PartTable.of_models([house, model({"fan": BOX}, path="x/Building-HVAC.ifc")])


def names(parts, mask):
    return {key.split("/")[1] for key in parts.key[mask]}


def asked(rules, parts):
    """Names of the checks by pairs of names of parts."""
    pairs = np.array(list(itertools.combinations(range(len(parts)), 2)))
    which = CheckMatrix(rules, parts).of(pairs)
    short = [key.split("/")[1] for key in parts.key]
    return {
        frozenset((short[i], short[j])): rules.checks[k].check.name
        for (i, j), k in zip(pairs.tolist(), which.tolist(), strict=True)
        if k >= 0
    }


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(HOUSE)
    return read_rules(path, tolerance=0.5)


def test_sets(rules):
    parts = house()
    found = {name: names(parts, one.members(parts)) for name, one in rules.sets.items()}
    assert found == {
        "ducts": {"duct", "pipe"},
        "walls": {"wall", "fire wall"},
        "fire": {"fire wall"},
        "hvac": {"fan"},
        "stairs": {"flight", "rail"},
    }


def test_values_of_properties():
    parts = house()

    def chosen(**properties):
        rules = read_rules({"sets": {"some": {"properties": properties}}})
        return names(parts, rules.sets["some"].members(parts))

    assert chosen(Load=True) == chosen(Load=[False, True]) == {"fire wall"}
    assert chosen(Load=False) == chosen(Load=1) == chosen(Load="*rue") == set()
    assert chosen(**{"qto.*": 0.1}) == {"wall"}
    assert chosen(**{"qto.*": {"max": 0.15}}) == {"wall"}
    assert chosen(**{"qto.*": {"min": 0.05, "max": 0.2}}) == {"wall", "fire wall"}
    assert chosen(**{"*": "F90"}) == {"wall"}


def test_files_match_by_name_or_path():
    parts = house()
    for pattern, wanted in (("x/*", {"fan"}), ("building-hvac.ifc", {"fan"}), ("Hvac", set())):
        rules = read_rules({"sets": {"some": {"file": pattern}}})
        assert names(parts, rules.sets["some"].members(parts)) == wanted


def test_checks(rules):
    first, second, third = rules.check_list
    clearance = CheckKind.CLEARANCE
    assert first == Check("ducts, fire", clearance, clearance=0.05, tolerance=0.001, touch=True)
    assert second == Check("all walls", CheckKind.HARD, tolerance=0.002)
    assert third == Check("same", CheckKind.DUPLICATE, tolerance=0.001)


def test_the_first_check_that_matches(rules):
    found = asked(rules, house())
    assert found[frozenset(["duct", "fire wall"])] == "ducts, fire"
    assert found[frozenset(["pipe", "wall"])] == found[frozenset(["fan", "wall"])] == "all walls"
    assert found[frozenset(["wall", "fire wall"])] == "same"
    assert frozenset(["fan", "rail"]) not in found
    assert len(found) == 7 * 6 // 2 - 2


def test_exclusions_of_pairs_of_parts(rules):
    parts = house()
    pairs = np.array(list(itertools.permutations(range(len(parts)), 2)))
    reasons = excluded_by(rules.exclusions, parts, pairs)
    found = {}
    for pair, reason in zip(pairs, reasons, strict=True):
        found.setdefault(reason, set()).add(frozenset(names(parts, pair)))
    assert found.pop("fills") == {frozenset(["wall", "pipe"])}
    assert found.pop("same assembly") == {frozenset(["flight", "rail"])}
    assert set(found) == {""}


def test_an_assembly_of_another_file_or_of_a_longer_name_is_another():
    def one(name, path, assembly):
        return model({name: BOX}, path=path, assembly={name: assembly})

    models = [one("a", "a.ifc", "S"), one("b", "b.ifc", "S"), one("c", "c.ifc", "S2")]
    parts = PartTable.of_models(models)
    both = PartTable.of_models([model(dict.fromkeys("ab", BOX), assembly={"a": "S", "b": "S2"})])
    exclusions = read_rules({"exclude": {"same_assembly": True}}).exclusions
    for some in (parts, both):
        assert set(excluded_by(exclusions, some, np.array([[0, 1]]))) == {""}


def test_without_rules():
    rules = read_rules(None, clearance=0.1, tolerance=0.01, touch=True)
    assert rules.check_list == [Check("all", CheckKind.CLEARANCE, 0.1, 0.01, True)]
    assert rules.exclusions.links == LINKS and not rules.exclusions.same_assembly
    assert read_rules(None).check_list == [Check("all")]
    assert read_rules({}).check_list == [Check("all")]
    assert read_rules({"clearance": 0.2}, tolerance=0.01).check_list == [
        Check("all", CheckKind.CLEARANCE, 0.2, 0.01)
    ]
    assert read_rules({"exclude": {"links": False}}).exclusions.links == ()
    assert isinstance(read_rules(rules), Rules)


def test_rules_that_name_nothing_are_problems():
    given = {
        "sets": {"ducts": {"type": "IfcDuct*"}, "beams": {"type": "IfcBeam"}},
        "checks": [
            {"a": "ducts", "b": "beams"},
            {"name": "alone", "a": "ducts"},
            {"name": "all"},
            {"name": "late", "a": "ducts", "b": "*"},
        ],
    }
    problems = CheckMatrix(read_rules(given), house()).problems
    assert problems == [
        "rules: set 'beams' names no part.",
        "rules: check 'alone' names no pair of parts.",
        "rules: check 'late' gets no pair: checks before it have all of them.",
    ]
    given = {"sets": given["sets"], "checks": [{"a": "ducts", "b": "*"}]}
    given["exclude"] = {"pairs": [["ducts", "*"]]}
    problems = CheckMatrix(read_rules(given), house()).problems
    assert problems[1] == "rules: check 'ducts, *' gets no pair: all of them are excluded."
    assert CheckMatrix(read_rules(None), table({"a": BOX})).problems == []


BAD = {
    "check = 1": "there is no key 'check'; did you mean 'checks'?",
    "tolerance = -1": "tolerance must be a length in metres from 0 up, not -1",
    "tolerance = true": "tolerance must be a length",
    "clearance = inf": "clearance must be a length",
    "touch = 1": "touch must be true or false, not 1",
    "sets = 1": "sets must be a table, not 1",
    "checks = {}": r"checks must be an array, written \[\[checks\]\]",
    "[sets.a]": "set 'a' has no criterion",
    "[sets.a]\ntypes = 'x'": "set 'a': there is no key 'types'; did you mean 'type'?",
    "[sets.a]\ntype = 1": "set 'a': type must be a text or a list of texts, not 1",
    "[sets.a]\ntype = []": "set 'a': type must be .* not empty",
    "[sets.a]\nproperties = 1": "set 'a': properties must be a table",
    "[sets.a]\nproperties.x = {}": "properties: x must be a text, number",
    "[sets.a]\nproperties.x = {low = 1}": "properties: 'x': there is no key 'low'",
    "[sets.a]\nproperties.x = []": "properties: x must be a text, number",
    "[sets.'*']\ntype = 'x'": "is that of all parts",
    "[[checks]]\na = 'duct'": r"checks, entry 1: a names the set 'duct'; define it",
    "[sets.ducts]\ntype = 'x'\n[[checks]]\nname = 'n'\nb = 'duct'": (
        "check 'n': b names the set 'duct'; did you mean 'ducts'?"
    ),
    "[[checks]]\nkind = 'soft'": "kind must be one of hard, clearance, duplicate, not 'soft'",
    "[[checks]]\nkind = 'clearance'": "clearance must be above 0",
    "[[checks]]\nkind = 'hard'\nclearance = 1.0": "clearance needs the kind clearance",
    "[[checks]]\nname = ''": "name must be a text",
    "[[checks]]\n[[checks]]": "two checks have the name",
    "[exclude]\nlinks = ['door']": "exclude: links must be true, false or some of connects",
    "[exclude]\npairs = [['*']]": "exclude: pairs must be a list of pairs",
    "[exclude]\npairs = [['*', 'a']]": "exclude: pairs names the set 'a'",
    "[exclude]\nassembly = true": "exclude: there is no key 'assembly'; did you mean",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_rules(tmp_path, text):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(OptionError, match=BAD[text]) as error:
        read_rules(path)
    assert str(error.value).startswith(str(path))


def test_bad_files(tmp_path):
    path = tmp_path / "rules.toml"
    with pytest.raises(FileError, match=r"no file .*rules\.toml"):
        read_rules(path)
    path.write_text("[sets\n")
    with pytest.raises(FileError, match=r"rules\.toml cannot be read as rules: .*line 1"):
        read_rules(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"rules\.toml cannot be read as rules"):
        read_rules(path)
    with pytest.raises(OptionError, match="must be a TOML file or a table, not int"):
        read_rules(3)
    with pytest.raises(OptionError, match="clearance must be a length in metres from 0 up"):
        read_rules(None, clearance=-1)
    assert Path(path).exists()


def test_the_rules_on_the_page_are_rules():
    page = (Path(__file__).parents[2] / "docs" / "clash.md").read_text("utf-8")
    rules = read_rules(tomllib.loads(page.partition("```toml\n")[2].partition("```")[0]))
    assert [check.name for check in rules.check_list] == [
        "ducts near fire walls",
        "ducts, walls+stairs",
        "double parts",
    ]
    assert rules.exclusions.pairs == (("stairs", "walls"),)
