"""Checks tile by tile: the bytes of the check of all parts at once."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from abut.cases.plant import CLEARANCE, Plant
from abut.cases.shapes import box, icosphere
from abut.coordination.checks import tile_checks
from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.checks.tile_checks import check_tiles, halo_of, plan_checks
from abut.coordination.clash import clash
from abut.coordination.clashes import COLUMNS
from abut.coordination.parts.part_candidates import part_candidates
from abut.coordination.parts.part_catalogue import write_part_catalogue
from abut.coordination.parts.part_sets import PartSet
from abut.coordination.parts.part_table import PartTable
from abut.coordination.rules import Exclusions, Rules, SetCheck
from abut.errors import CapacityError, OptionError
from abut.io.models.part_model import Link, ModelPart, PartMesh, PartModel
from abut.scale.tile_plan import plan_tiles

PLANT = Plant((3, 2), seed=42, share=1.0, detail=0.05)
RULES = Rules.default(CLEARANCE, 1e-3, touch=True)


@pytest.fixture(scope="module")
def models():
    return [PLANT.model(bay) for bay in range(len(PLANT))]


@pytest.fixture(scope="module")
def stored(models, tmp_path_factory):
    return write_part_catalogue(models, tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="module")
def truth(models):
    return at_once(models, RULES)


def at_once(models, rules):
    parts = PartTable.of_models(models)
    found = part_candidates(parts, rules, "cpu")
    return check_pairs(parts, found.pairs, found.checks, found.which, device="cpu")


def bytes_of(clashes):
    columns = {name: getattr(clashes, name) for name in COLUMNS}
    return {
        name: values.tolist() if values.dtype == object else (str(values.dtype), values.tobytes())
        for name, values in columns.items()
    }


def small_tiles(monkeypatch, budget):
    """Plan tiles of a budget below the least memory of processes."""

    def plan(parts, rules, most, workers=1):
        return plan_tiles(
            parts.catalogue,
            halo=halo_of(parts, rules),
            budget=budget,
            bytes_per_face=tile_checks.FACE_BYTES,
            object_bytes=tile_checks.PART_BYTES,
        )

    monkeypatch.setattr(tile_checks, "plan_checks", plan)


@pytest.mark.parametrize(("budget", "tiles"), [(1 << 30, 1), (9_000_000, 3), (2_190_000, 17)])
def test_any_number_of_tiles_has_the_same_bytes(
    stored, truth, tmp_path, monkeypatch, budget, tiles
):
    small_tiles(monkeypatch, budget)
    seen = []
    found = check_tiles(
        stored, RULES, tmp_path, device="cpu", progress=lambda done, total: seen.append(total)
    )
    assert len(truth) > 300
    assert bytes_of(found) == bytes_of(truth)
    assert seen == [tiles] * tiles
    assert len(set(truth.verdict)) == 6
    assert len(found.parts) == len(truth.parts)


def test_tables_of_a_catalogue_are_those_of_models(models, stored):
    whole = PartTable.of_models(models)
    table, rows = stored.table(np.arange(len(stored))[::-1])
    for name in "key name type layer assembly file poses boxes deviation".split():
        assert (getattr(table, name) == getattr(whole, name)).all(), name
    assert table.properties == whole.properties
    assert table.links == whole.links
    assert table.key.tolist() == stored.keys(rows)
    for row in (0, 17, len(whole) - 1):
        given, found = whole.mesh_of(row, "cpu"), table.mesh_of(row, "cpu")
        assert (given.vertices.numpy() == found.vertices.numpy()).all()
        assert (given.faces.numpy() == found.faces.numpy()).all()


def test_meshes_that_are_made_again(models, truth, tmp_path, monkeypatch):
    small_tiles(monkeypatch, 3_000_000)
    parts = write_part_catalogue(models, tmp_path / "parts", source=PLANT)
    assert not (tmp_path / "parts" / "mesh_vertices.npy").exists()
    found = check_tiles(parts, RULES, tmp_path / "run", device="cpu")
    assert bytes_of(found) == bytes_of(truth)


@pytest.mark.slow  # each worker loads the kernels: 20 s
def test_workers_and_a_death_have_the_same_bytes(stored, truth, tmp_path, monkeypatch):
    """Kill a worker process in the middle of a run."""
    pytest.importorskip("distributed")
    small_tiles(monkeypatch, 3_000_000)
    killed = []

    def progress(done, total):
        if not killed:
            killed.append(done.pid)
            threading.Thread(target=lambda: (time.sleep(0.05), os.kill(done.pid, 9))).start()

    found = check_tiles(
        stored,
        RULES,
        tmp_path,
        device="cpu",
        workers=2,
        memory=3 << 30,
        progress=progress,
    )
    assert killed and killed[0] != os.getpid()
    assert bytes_of(found) == bytes_of(truth)


def test_a_run_that_was_killed_is_resumed(stored, truth, tmp_path, monkeypatch):
    code = f"""
import os, signal, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_tile_checks import *
from abut.coordination.parts.part_catalogue import PartCatalogue
small_tiles(pytest.MonkeyPatch(), 3_000_000)
def progress(done, total):
    if done.number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
parts = PartCatalogue({str(stored.folder)!r})
check_tiles(parts, RULES, {str(tmp_path)!r}, device="cpu", progress=progress)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    seen = []
    small_tiles(monkeypatch, 1 << 30)  # has no effect: the run has its tiles
    found = check_tiles(
        stored,
        RULES,
        tmp_path,
        device="cpu",
        resume=True,
        progress=lambda done, total: seen.append(done.number),
    )
    assert seen[0] == 3
    assert bytes_of(found) == bytes_of(truth)
    with pytest.raises(OptionError, match=r"other settings \(rules\)"):
        check_tiles(stored, Rules.default(0.0, 0.0), tmp_path, device="cpu", resume=True)


def test_rules_sets_and_links(tmp_path, monkeypatch):
    """Sets, checks, exclusions by links and assemblies, shared meshes, and lines about rules."""
    rng = np.random.default_rng(0)
    meshes = [PartMesh(*box((1.0, 1.0, 1.0))), PartMesh(*icosphere(80, 0.6))]
    models = []
    for file in ("a/model.ifc", "b/model.ifc"):
        parts = []
        for k in range(40):
            pose = np.eye(4)
            pose[:3, 3] = rng.uniform(0, 5, 3)
            kind, about = ["Wall", "Pipe", "Door"][k % 3], {"Set.Fire": bool(k % 2), "n": k}
            parts.append(ModelPart(f"{k:02d}", f"{kind} {k}", kind, "", "x/y", about, k % 2, pose))
        links = [Link("00", f"{k:02d}", "fills") for k in range(1, 30)]
        models.append(PartModel(Path(file), 1.0, 1e-4, meshes, parts, [], links))
    sets = {
        "walls": PartSet("walls", {"type": ("wall",)}),
        "fire": PartSet("fire", properties={"*.Fire": (True,)}),
        "none": PartSet("none", {"name": ("nothing",)}),
    }
    checks = (
        SetCheck(Check("near", CheckKind.CLEARANCE, 0.3, 1e-3), ("walls",), ("fire",)),
        SetCheck(Check("hard", tolerance=1e-3, touch=True)),
        SetCheck(Check("never", tolerance=1e-3), ("walls",), ("fire",)),
    )
    rules = Rules(sets, checks, Exclusions(same_assembly=False, pairs=(("walls", "walls"),)))
    parts = write_part_catalogue(models, tmp_path / "parts")
    small_tiles(monkeypatch, 600_000)
    found = check_tiles(parts, rules, tmp_path / "run", device="cpu")
    wanted = at_once(models, rules)
    assert len(wanted) > 30
    assert bytes_of(found) == bytes_of(wanted)
    assert found.a[0].startswith("a/model.ifc/")
    table = PartTable.of_models(models)
    assert found.problems == part_candidates(table, rules, "cpu").problems
    assert len(found.problems) == 2
    monkeypatch.setattr(tile_checks, "STRIDE", 7)
    monkeypatch.setattr(tile_checks, "MOST_PARTS", 10)
    again = check_tiles(parts, rules, tmp_path / "run", device="cpu", resume=True)
    assert again.problems == found.problems
    assert bytes_of(again) == bytes_of(wanted)
    assert set(again.parts.key) == set(found.a) | set(found.b)


def test_memory(stored, tmp_path):
    with pytest.raises(OptionError, match="memory must be at least"):
        check_tiles(stored, RULES, tmp_path, memory=1 << 20)
    assert len(plan_checks(stored, RULES, 1 << 30)) == 1
    budget = 60_000
    with pytest.raises(CapacityError, match="bytes together"):
        plan_checks(stored, RULES, budget)


def test_no_parts_and_parts_without_faces(tmp_path):
    empty = PartMesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32))
    parts = [ModelPart("a", "a", "", "", "", {}, 0, np.eye(4))]
    catalogue = write_part_catalogue(
        [PartModel(Path("x.obj"), None, 0.0, [empty], parts)], tmp_path / "parts"
    )
    assert len(catalogue) == 0
    assert len(check_tiles(catalogue, RULES, tmp_path / "run", device="cpu")) == 0


def test_the_verb_in_tiles(models, tmp_path):
    """``abut.clash`` within a memory, with a folder, and on a worker."""
    table = PartTable.of_models(models)
    options = {"clearance": CLEARANCE, "tolerance": 1e-3, "device": "cpu"}
    wanted = clash(table, **options)
    assert len(wanted) == len(PLANT)
    for more in ({"memory": 2 << 30}, {"folder": tmp_path}, {"folder": tmp_path, "resume": True}):
        found = clash(table, **options, **more)
        assert bytes_of(found) == bytes_of(wanted)
        assert found.settings == wanted.settings
        assert found.problems == wanted.problems
    assert (tmp_path / "manifest.json").exists()
    assert not (tmp_path / "parts").exists()
    with pytest.raises(OptionError, match="resume needs the folder"):
        clash(table, resume=True)
