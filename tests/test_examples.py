"""What we show to people runs."""

import ast
import itertools
import re
import runpy
import shlex
import subprocess
import tomllib
from itertools import zip_longest
from pathlib import Path

import pytest

from abut.cli.command import make_parser

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OUTPUTS = ROOT / "tests" / "example_outputs"  # * is any number, ~1.5 a number within a tenth
NUMBER = re.compile(r"~?[-+]?\d+(?:,\d{3})*(?:\.\d+)?|(?<![\w*])\*(?![\w*])")

NEEDS = {"20_robot_self_check": "mujoco", "24_plan_with_ompl": "ompl"}
PAGE_NEEDS = {"view": "viser", "robots": "yaml"}


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def unlike(said, expected):
    """Lines of an example that are not as expected, each with the expected line."""
    said = re.sub(r"\bcuda:\d+", "cpu", said)
    lines = zip_longest(said.splitlines(), expected.splitlines(), fillvalue="")
    return [pair for pair in lines if not alike(*pair)]


def alike(line, expected):
    """Words are equal, whole numbers too; others differ by the last digits that are printed."""
    if expected == "...":  # depends on the machine
        return True
    texts = [NUMBER.sub("#", text).split() for text in (line, expected)]
    numbers = zip_longest(NUMBER.findall(line), NUMBER.findall(expected), fillvalue="none")
    return texts[0] == texts[1] and all(itertools.starmap(near, numbers))


def near(number, expected):
    if expected == "*":
        return True
    if "none" in (number, expected):
        return False
    got, want = (float(text.lstrip("~").replace(",", "")) for text in (number, expected))
    digits = len(expected.partition(".")[2])
    slack = 3 * 10.0**-digits if digits else float(expected[0] == "~")
    return abs(got - want) <= (max(abs(want) / 10, slack) if expected[0] == "~" else slack)


def test_outputs_are_compared_by_their_numbers():
    expected = "7 of 1,200 pairs at -0.25, ~100 more, * ms"
    assert not unlike("7 of 1,200 pairs at -0.252, 105 more, 17.1 ms\n", expected)
    for wrong in (
        "8 of 1,200 pairs at -0.25, 100 more, 1 ms",
        "7 of 1,200 pairs at -0.29, 100 more, 1 ms",
        "7 of 1,200 pairs at -0.25, 120 more, 1 ms",
        "7 of 1,200 pears at -0.25, 100 more, 1 ms",
        "7 of 1,200 pairs at -0.25, 100 more, 1 ms\nand more",
        "",
    ):
        assert unlike(wrong, expected)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_what_they_should(path, capsys, tmp_path, monkeypatch):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason=f"needs {NEEDS[path.stem]}, of abut's extras")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABUT_DATA", str(tmp_path / "nothing"))
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert unlike(said, (OUTPUTS / f"{path.stem}.txt").read_text()) == []
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == set(re.findall(r"out/[\w.]+", said)), "nothing but the pictures it names"


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
    if page.stem in PAGE_NEEDS:
        pytest.importorskip(PAGE_NEEDS[page.stem], reason=f"needs {PAGE_NEEDS[page.stem]}")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_install_what_can_be_installed(page):
    """abut is not on PyPI: its name alone installs nothing but extras, where it is installed."""
    for paragraph in page.read_text().split("\n\n"):
        if re.search(r"pip install ['\"]?abut\b", paragraph):
            assert "installed already" in paragraph, paragraph


def test_the_installation_lists_all_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "docs" / "install.md").read_text().partition("## Extras")[2].partition("## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert sorted(listed) == sorted(project["optional-dependencies"])


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
