"""What we show to people runs."""

import ast
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from abut.cli.command import make_parser

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SAYS = {
    "01_two_meshes": "solids: True",
    "02_batch_of_poses": "poses collide",
    "03_self_collision": "a sphere: 0 pairs",
    "04_deforming": "frame 11",
    "05_own_culling": "touching: True, a hair above: False",
    "06_closest_points": "deepest inside",
    "07_clearance_along_a_path": "of the path is nearer",
    "08_robot_arm": "link 7: in contact",
    "09_safe_step": "pairs of faces that meet then: 0",
    "10_hardware": "near misses",
    "11_culling": "were lost: 0",
    "12_distance_field": "points put on the surface",
    "13_graphics_pipeline": "may collide, warp",
    "14_cloth": "pairs of faces that met in any frame: 0",
    "15_breaking": "pairs of faces that meet: 0",
    "16_penalty_forces": "still colliding: False",
    "17_rigid_bodies": "drawn: out/bricks.png",
    "18_frame_by_frame": "630 pairs of faces meet",
    "19_thousand_boxes": "boxes touch none",
    "20_robot_self_check": "self-collisions",
    "21_one_part_moves": "the rows are the same: True",
}

NEEDS = {"20_robot_self_check": "mujoco"}


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, capsys, tmp_path, monkeypatch):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason=f"needs {NEEDS[path.stem]}, of abut's extras")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert SAYS[path.stem] in capsys.readouterr().out
    assert {made.name for made in tmp_path.iterdir()} <= {"out"}, "pictures go to out, else nothing"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short_and_public(path):
    source = path.read_text()
    assert len(source.splitlines()) < 80
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("abut"):
            assert node.module == "abut"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_on_pages_runs(page, tmp_path, monkeypatch):
    """The blocks of a page run in order, in one room."""
    monkeypatch.chdir(tmp_path)
    room = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), room)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_pages_are_understood(page):
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    for line in lines:
        name, *words = shlex.split(line, comments=True) or [""]
        if name == "abut":
            assert hasattr(make_parser(words[0]).parse_args(words), "run"), line


def test_readme_example_is_ten_lines():
    assert len(blocks(ROOT / "README.md", "python")[0].splitlines()) <= 10


def test_readme_shows_what_was_measured():
    path = ROOT / "benchmarks" / "readme.py"
    made = runpy.run_path(str(path))["table"]()
    assert made in README, "the results have changed: run python -m benchmarks.readme"


def test_readme_commands_come_first():
    demo, tests = re.findall(r"^python3 -m venv .*$", README, re.M)[:2]
    install = "python3 -m venv .venv && .venv/bin/pip install"
    assert demo == f"{install} . && .venv/bin/abut demo knot"
    assert tests == f'{install} ".[dev]" && .venv/bin/python -m pytest -q -n auto'


def test_ci_runs_the_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text()
    (pattern,) = re.findall(r"^tests=\$\((.*)\)$", script, re.M)
    found = subprocess.run(
        ["bash", "-c", pattern], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() in README
    assert found.strip().endswith("-m pytest -q -n auto")


def test_links_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_files_that_pages_speak_of_are_there():
    there = {path.name for path in ROOT.glob("**/*.py")} | {"bench_NAME.py"}
    for page in [*PAGES, *(ROOT / "design").glob("*.md")]:
        for path in re.findall(r"[\w/]+\.py\b", page.read_text()):
            assert Path(path).name in there, f"{page.name}: {path}"


def test_paths_of_the_architecture_page_exist():
    page = (ROOT / "docs" / "architecture.md").read_text()
    paths = re.findall(r"`([\w/]+\.py)`", page)
    assert len(paths) > 50
    source = ROOT / "src" / "abut"
    assert [p for p in paths if not ((source / p).exists() or (ROOT / p).exists())] == []


def test_renames_hold():
    checks = runpy.run_path(str(ROOT / "tools" / "check_renames.py"))
    assert checks["findings"]() == []


def test_every_benchmark_and_page_is_listed():
    listed = (ROOT / "benchmarks" / "README.md").read_text()
    assert [p.stem for p in (ROOT / "benchmarks").glob("bench_*.py") if p.stem not in listed] == []
    index = (ROOT / "docs" / "index.md").read_text()
    pages = {page.name for page in PAGES[1:]} - {"index.md"}
    assert [name for name in pages if f"]({name})" not in index] == []


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size <= 400_000
