"""Rooms import down the floors, never up or sideways."""

import ast
import subprocess
import sys
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
    {"sim", "hardware"},
    {"view"},
    {"cli"},
]
GROUND = {"errors"}  # every room may import it
MOST_LOOSE_MODULES = 8
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FLOOR_OF |= dict.fromkeys(GROUND, -1)
LOBBY = {"__init__", "__main__"}  # public names, and the way in
OPTIONAL = "amaranth moderngl meshlib coal fcl igl ipctk torch jax".split()
OPTIONAL += ["mujoco", "yourdfpy", "imageio_ffmpeg"]
HEAVY = "trimesh rich PIL".split()


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


@pytest.mark.parametrize(
    ("room", "line", "allowed"),
    [
        ("mesh", "from abut.core.point_check import check_points", True),
        ("mesh", "def f():\n    from abut.query.collide import collide", False),
        ("narrow", "from abut.traversal.descend import descend", False),
        ("narrow", "from abut.narrow.segments import meeting_segments", True),
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
    assert {"cases", "hardware", "primitives", "sim", "view"} <= set(abut.__all__)
    assert abut.__version__[0].isdigit()
