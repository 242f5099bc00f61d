"""What would be uploaded: an sdist and a wheel that install and answer in a fresh environment."""

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXAMPLE = """
import abut
from abut import cases

knot, ball = (abut.Mesh(*shape, "cpu") for shape in cases.pair("knot", 300))
print(len(abut.collide(knot, ball)), len(abut.collide(knot, ball, method="brute")))
"""


def run(*words, cwd=None):
    words = list(map(str, words))
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    for package in ("build", "hatchling", "twine"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra dev")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def test_packages_are_complete(built):
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()))
    (wheel,) = built.glob("*.whl")
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    sources = {path for path in (ROOT / "src").rglob("*") if path.is_file()}
    wanted = {path.relative_to(ROOT / "src") for path in sources if path.suffix != ".pyc"}
    assert wanted <= names and Path("abut/py.typed") in wanted


def test_versions_and_dependencies_agree():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    assert cited == PROJECT["version"]
    assert re.search(r"^  version: (.+)$", recipe, re.M)[1] == PROJECT["version"]
    listed = recipe.partition("  run:")[2].partition("tests:")[0]
    found = set(re.findall(r"^ +- (\S+) >=([\d.]+)$", listed, re.M))
    wanted = [("python", PROJECT["requires-python"].removeprefix(">="))]
    wanted += [tuple(each.split(">=")) for each in PROJECT["dependencies"]]
    assert found == set(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_packages_install_and_answer(kind, built, tmp_path):
    (package,) = built.glob(kind)
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", package)
    counts = run(python, "-c", EXAMPLE, cwd=tmp_path).split()
    assert counts[-1] == counts[-2] and int(counts[-1]) > 0
    assert "abut" in run(tmp_path / "env" / "bin" / "abut", "info", cwd=tmp_path)
