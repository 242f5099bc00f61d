"""Rooms import down the floors, never up or sideways."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "abut"

FLOORS = [
    {"core", "options"},
    {"geometry", "io"},
    {"bounds", "mesh", "results", "cases"},
    {"bvh", "motion"},
    {"operands"},
    {"traversal", "narrow"},
    {"broad", "point", "visibility"},
    {"query"},
    {"scene", "sdf", "primitives"},
    {"sim", "hardware", "adapters", "view", "scale"},
    {"coordination"},
    {"cli"},
]
GROUND = {"errors"}  # every room may import it
MOST_LOOSE_MODULES = 8
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FLOOR_OF |= dict.fromkeys(GROUND, -1)
LOBBY = {"__init__", "__main__"}  # public names, and the way in
OPTIONAL = "amaranth moderngl meshlib coal fcl igl ipctk torch jax".split()
OPTIONAL += ["mujoco", "yourdfpy", "imageio_ffmpeg", "viser"]
OPTIONAL += ["ifcopenshell", "OCP", "pxr", "dask", "distributed", "pyarrow"]
HEAVY = "trimesh rich PIL".split()
QUESTION_WORD = re.compile(r"(what|how|who|whom|those|likewise)\b", re.I)
# Verbs for arrays of primitives that have the names of the device functions they launch.
SHARED_NAMES = {"distance_tri_tri"}


def room_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(tree):
    """(line, room) for everything imported from abut, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "abut"]
        elif isinstance(node, ast.ImportFrom) and node.module == "abut":
            names = [f"abut.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("abut."):
            names = [node.module]
        else:
            assert not (isinstance(node, ast.ImportFrom) and node.level), "write imports in full"
            continue
        for name in names:
            yield node.lineno, name.partition(".")[2].split(".")[0]


def upward(path):
    room = room_of(path)
    for line, other in imports(ast.parse(path.read_text())):
        if other == room:
            continue
        if FLOOR_OF.get(other, len(FLOORS)) >= FLOOR_OF[room]:
            yield f"{path.relative_to(SOURCE)}:{line}: {room} imports {other or 'abut'}"


def files():
    return [path for path in sorted(SOURCE.rglob("*.py")) if room_of(path) not in LOBBY]


def test_every_room_has_a_floor():
    assert {room_of(path) for path in files()} == set(FLOOR_OF)


def test_loose_modules_are_few():
    assert len([path for path in files() if path.parent == SOURCE]) <= MOST_LOOSE_MODULES


def test_imports_go_down():
    assert [finding for path in files() for finding in upward(path)] == []


def test_module_basenames_are_unique():
    """A basename names one module; commands share the names of their verbs."""
    found = defaultdict(list)
    for path in files():
        if room_of(path) != "cli" and path.stem != "__init__":
            found[path.stem].append(str(path.relative_to(SOURCE)))
    assert [paths for paths in found.values() if len(paths) > 1] == []


def test_public_names_have_one_meaning():
    """No public class or function of a module is defined twice; overloads in one file are one."""
    found = defaultdict(set)
    for path in files():
        where = path.relative_to(SOURCE)
        if where.parts[0] == "cli" or where.parts[:2] == ("hardware", "rtl"):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and is_public(node.name):
                found[node.name].add(str(where))
    twice = {name for name, paths in found.items() if len(paths) > 1}
    assert {name: sorted(found[name]) for name in twice - SHARED_NAMES} == {}
    assert SHARED_NAMES - twice == set(), "take these off the list"


def is_public(name):
    return not name.startswith("_") and not name.endswith("_kernel")


def test_docstrings_open_with_a_term():
    """A docstring says what a thing is or returns; it does not open with a question word."""
    findings = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                if QUESTION_WORD.match(text):
                    where = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 1)}"
                    findings.append(f"{where}: {text.splitlines()[0]}")
    assert findings == []


@pytest.mark.parametrize(
    ("room", "line", "allowed"),
    [
        ("mesh", "from abut.core.point_check import check_points", True),
        ("mesh", "def f():\n    from abut.query.collide import collide", False),
        ("narrow", "from abut.traversal.descend import descend", False),
        ("narrow", "from abut.narrow.segments import contact_segments", True),
        ("mesh", "import abut", False),
        ("cli", "from abut import cases", True),
        ("cases", "from abut import collide", False),
    ],
)
def test_the_check_itself(monkeypatch, tmp_path, room, line, allowed):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    path = tmp_path / f"{room}.py"
    path.write_text(line)
    assert (list(upward(path)) == []) == allowed


def test_importing_abut_is_light():
    asked = OPTIONAL + HEAVY
    code = f"import abut, sys; print([name for name in {asked} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_verb_loads_what_it_needs():
    rooms = "visibility sdf scene motion sim".split()
    code = (
        "import abut, sys; loaded = 'warp' in sys.modules; abut.collide; "
        f"print(loaded, [room for room in {rooms} if f'abut.{{room}}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2] == "False []"


def test_every_public_name_is_there():
    import abut

    assert [name for name in abut.__all__ if not hasattr(abut, name)] == []
    assert {"adapters", "cases", "hardware", "primitives", "sim", "view"} <= set(abut.__all__)
    assert abut.__version__[0].isdigit()
