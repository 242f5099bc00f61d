"""Names of stages in reports are explained in the documentation."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import trimesh

from abut import cases
from abut.cli import main

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)


def explained():
    """Names in the first column of the table of stages."""
    section = (ROOT / "docs" / "cli.md").read_text().split("\n## Stages\n")[1].split("\n## ")[0]
    return {name for row in ROW.findall(section) for name in re.findall(r"`([^`]+)`", row)}


def test_stages_in_the_source_are_explained():
    files = [f for f in (ROOT / "src" / "abut").rglob("*.py") if f.parent.name != "sim"]
    pattern = r"(?:\bstage\(|timed\(stages, )\"([^\"]+)\""
    named = {name for file in files for name in re.findall(pattern, file.read_text())}
    assert len(named) > 10 and named - explained() == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stages")
    for side, shape in zip("ab", cases.pair("spheres", faces=300), strict=True):
        trimesh.Trimesh(*shape, process=False).export(folder / f"{side}.ply")
    cloth = cases.single("folded_cloth", faces=300)
    for k in (1.0, 0.5):
        moved = trimesh.Trimesh(cloth.vertices * [1, 1, k], cloth.faces, process=False)
        moved.export(folder / f"cloth{k}.ply")
    np.save(folder / "poses.npy", np.tile(np.eye(4), (5, 1, 1)))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "collide {f}/a.ply {f}/b.ply",
        "collide {f}/a.ply {f}/b.ply --solid",
        "collide {f}/a.ply {f}/b.ply --method far",
        "collide {f}/a.ply {f}/b.ply --method brute --pose-b {f}/poses.npy",
        "distance {f}/a.ply {f}/b.ply --method brute",
        "distance {f}/a.ply {f}/b.ply --pose-b {f}/poses.npy",
        "within {f}/a.ply {f}/b.ply 0.1",
        "within {f}/cloth1.0.ply 0.1",
        "self {f}/cloth1.0.ply",
        "scene {f}/a.ply {f}/b.ply --self",
        "ccd {f}/cloth1.0.ply {f}/cloth0.5.ply",
        "cull {f}/a.ply {f}/b.ply --pixels 64",
        "cull {f}/a.ply {f}/b.ply --pixels 64 --method quick_cullide --level object",
    ],
)
def test_stages_of_reports_are_explained(folder, words, capsys):
    assert main([*words.format(f=folder).split(), "--json", "--device", "cpu"]) in (0, 1)
    stages = json.loads(capsys.readouterr().out)["milliseconds"]
    assert stages and set(stages) - explained() == set()
