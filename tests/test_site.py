"""The documentation site builds without a warning, and names every public name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import abut

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "reference.md").read_text()
    named = set(re.findall(r"^\.\. auto\w+:: abut\.(\w+)", text, re.M))
    errors = {name for name in abut.__all__ if name.endswith("Error")}  # listed by their module
    assert set(abut.__all__) - errors <= named


def test_the_site_builds(tmp_path):
    """Without a warning: no broken link, no page left out; notebooks run."""
    for package in ("sphinx", "myst_nb", "furo", "sphinx_copybutton", "matplotlib"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra site")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "."]
    built = subprocess.run(
        [*words, str(tmp_path / "site"), "-d", str(tmp_path / "doctrees")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-4000:]
    pages = {path.stem for path in (tmp_path / "site" / "docs").rglob("*.html")}
    assert {path.stem for path in (ROOT / "docs").rglob("*.md")} <= pages
    tour = (tmp_path / "site" / "docs" / "notebooks" / "tour.html").read_text()
    assert "pairs of faces intersect" in tour and "<img" in tour
    home = (tmp_path / "site" / "docs" / "home.html").read_text()
    assert '<a class="reference internal" href="benchmarks.html">' in home.partition("<article")[2]
    assert (tmp_path / "site" / "searchindex.js").is_file()
