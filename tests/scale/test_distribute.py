"""Runs over tiles: the same bytes in one process, on workers, after deaths and interruptions."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from abut.errors import FileError, MeshError, OptionError, ToolError
from abut.scale import distribute
from abut.scale.catalogue import Catalogue, CatalogueWriter
from abut.scale.distribute import run_tiles
from abut.scale.part_files import read_part, write_part
from abut.scale.tile_plan import plan_tiles
from abut.scale.tile_run import TileRun


@dataclass(frozen=True)
class Near:
    """The pairs of near boxes of a tile, by their keys."""

    catalogue: Catalogue
    halo: float
    fail_at: int = -1
    wait: str = ""

    def __call__(self, tile):
        if tile.number == self.fail_at:
            raise MeshError("this tile is bad.")
        if self.wait:  # the first worker to come here says so, and waits to be killed
            mark = Path(self.wait)
            if not mark.exists():
                mark.write_text(str(os.getpid()))
                time.sleep(60)
        boxes = self.catalogue.boxes[tile.rows]
        i, j = np.triu_indices(len(boxes), 1)
        pairs = np.stack([i, j], axis=1)[tile.owns(np.stack([i, j], axis=1))]
        a, b = boxes[pairs].transpose(1, 0, 2, 3)
        gap = np.maximum(a[:, 0] - b[:, 1], b[:, 0] - a[:, 1])
        keep = (gap <= self.halo).all(axis=1)
        names = np.array(self.catalogue.keys.of(tile.rows), object)
        columns = {
            "a": names[pairs[keep, 0]],
            "b": names[pairs[keep, 1]],
            "gap": gap[keep],
            "close": (gap[keep] < 0).all(axis=1),
        }
        return columns, {"pairs": len(pairs)}


HALO = 0.05


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    low = np.random.default_rng(0).uniform(0, 1, (300, 3))
    folder = tmp_path_factory.mktemp("catalogue")
    with CatalogueWriter(folder) as writer:
        writer.add("", [f"o{k:03d}" for k in range(300)], np.stack([low, low + 0.05], 1), [9] * 300)
    return Catalogue(folder)


def new_run(folder, catalogue, budget=1 << 20, resume=False, **settings):
    def plan():
        return plan_tiles(catalogue, halo=HALO, budget=budget, bytes_per_face=10, object_bytes=10)

    return TileRun(folder, catalogue.digest, {"halo": HALO, **settings}, plan, resume=resume)


def merged(run):
    columns, facts = run.results()
    assert sum(one["pairs"] for one in facts) >= len(columns["a"])
    order = np.lexsort((columns["b"].astype(str), columns["a"].astype(str)))
    rows = {name: values[order] for name, values in columns.items()}
    return [
        (name, str(v.dtype), v.astype("U9" if v.dtype == object else v.dtype).tobytes())
        for name, v in rows.items()
    ]


@pytest.fixture(scope="module")
def truth(catalogue, tmp_path_factory):
    run = new_run(tmp_path_factory.mktemp("run"), catalogue)
    assert len(run.plan) == 1
    run_tiles(Near(catalogue, HALO), run)
    assert 100 < len(run.results()[0]["a"])
    return merged(run)


@pytest.mark.parametrize(("budget", "least"), [(15_000, 3), (3_200, 17)])
def test_any_number_of_tiles_has_the_same_rows(catalogue, truth, tmp_path, budget, least):
    run = new_run(tmp_path, catalogue, budget)
    assert len(run.plan) >= least
    seen = []
    run_tiles(
        Near(catalogue, HALO), run, progress=lambda done, total: seen.append((done.number, total))
    )
    assert seen == [(k, len(run.plan)) for k in range(len(run.plan))]
    assert merged(run) == truth


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_have_the_same_bytes(catalogue, truth, tmp_path, workers):
    pytest.importorskip("distributed")
    here, there = (new_run(tmp_path / name, catalogue, 15_000) for name in "ab")
    run_tiles(Near(catalogue, HALO), here)
    seen = []
    run_tiles(
        Near(catalogue, HALO), there, workers=workers, progress=lambda done, _: seen.append(done)
    )
    assert sorted(done.number for done in seen) == list(range(len(there.plan)))
    assert os.getpid() not in {done.pid for done in seen}
    assert all(done.worker and done.peak > 0 for done in seen)
    assert merged(there) == truth
    for number in range(len(here.plan)):
        assert here.path(number).read_bytes() == there.path(number).read_bytes()


def test_a_killed_worker_is_replaced(catalogue, truth, tmp_path):
    pytest.importorskip("distributed")
    run = new_run(tmp_path / "run", catalogue, 15_000)
    mark = tmp_path / "pid"

    def kill():
        while not mark.exists() or not mark.read_text():
            time.sleep(0.05)
        os.kill(int(mark.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    seen = []
    run_tiles(
        Near(catalogue, HALO, wait=str(mark)),
        run,
        workers=2,
        progress=lambda done, _: seen.append(done),
    )
    killer.join()
    assert sorted(done.number for done in seen) == list(range(len(run.plan)))
    assert int(mark.read_text()) not in {done.pid for done in seen}
    assert merged(run) == truth


def test_an_interrupted_run_is_resumed(catalogue, truth, tmp_path):
    bad = Near(catalogue, HALO, fail_at=2)
    run = new_run(tmp_path, catalogue, 15_000)
    with pytest.raises(MeshError, match="this tile is bad"):
        run_tiles(bad, run)
    assert run.unfinished() == list(range(2, len(run.plan)))
    with pytest.raises(FileError, match="tile-000002"):
        run.results()
    again = new_run(tmp_path, catalogue, 1 << 20, resume=True)  # the plan is that of the run
    assert len(again.plan) == len(run.plan)
    seen = []
    run_tiles(Near(catalogue, HALO), again, progress=lambda done, _: seen.append(done.number))
    assert seen == list(range(2, len(run.plan)))
    assert merged(again) == truth


def test_errors_of_tiles_on_workers_are_not_tried_again(catalogue, tmp_path):
    pytest.importorskip("distributed")
    run = new_run(tmp_path, catalogue, 15_000)
    with pytest.raises(MeshError, match="this tile is bad"):
        run_tiles(Near(catalogue, HALO, fail_at=1), run, workers=1)


def test_a_process_that_was_killed_is_resumed(catalogue, truth, tmp_path):
    """Kill the whole process in the middle of a tile."""
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_distribute import *
catalogue = Catalogue({str(catalogue.folder)!r})
run = new_run({str(tmp_path / "run")!r}, catalogue, 15_000)
def progress(done, total):
    if done.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
run_tiles(Near(catalogue, HALO), run, progress=progress)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    run = new_run(tmp_path / "run", catalogue, 15_000, resume=True)
    assert run.unfinished() == list(range(2, len(run.plan)))
    run_tiles(Near(catalogue, HALO), run)
    assert merged(run) == truth


def test_resume_refuses_other_inputs_and_settings(catalogue, tmp_path):
    new_run(tmp_path, catalogue, tolerance=0.1)
    with pytest.raises(OptionError, match=r"other settings \(tolerance\)"):
        new_run(tmp_path, catalogue, resume=True, tolerance=0.2)
    with CatalogueWriter(tmp_path / "other") as writer:
        writer.add("", ["a"], np.zeros((1, 2, 3)), [1])
    with pytest.raises(OptionError, match="other inputs"):
        new_run(tmp_path, Catalogue(tmp_path / "other"), resume=True, tolerance=0.1)


def test_a_new_run_forgets_the_old_one(catalogue, tmp_path):
    run = new_run(tmp_path, catalogue)
    run_tiles(Near(catalogue, HALO), run)
    assert new_run(tmp_path, catalogue).unfinished() == [0]


def test_options_that_do_not_fit(catalogue, tmp_path):
    run = new_run(tmp_path, catalogue)
    with pytest.raises(OptionError, match="not both"):
        run_tiles(Near(catalogue, HALO), run, workers=1, scheduler="tcp://x")
    with pytest.raises(OptionError, match="1 or more"):
        run_tiles(Near(catalogue, HALO), run, workers=0)


def test_without_dask_this_process_does_it(catalogue, truth, tmp_path, monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    run = new_run(tmp_path, catalogue)
    with pytest.raises(ToolError, match=r"abut\[scale\]"):
        run_tiles(Near(catalogue, HALO), run, workers=1)
    run_tiles(Near(catalogue, HALO), run)
    assert merged(run) == truth


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_part_files(tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    columns = {
        "text": np.array(["", "ä\n", "x"], object),
        "box": np.arange(18.0).reshape(3, 2, 3),
        "count": np.array([1, -2, 3], np.int32),
        "yes": np.array([True, False, True]),
        "real": np.array([np.nan, np.inf, -0.0]),
    }
    for name, some in (("all", columns), ("none", {k: v[:0] for k, v in columns.items()})):
        write_part(some, tmp_path / f"{name}{suffix}", {"é": [1, None]})
        found, facts = read_part(tmp_path / f"{name}{suffix}")
        assert facts == {"é": [1, None]}
        assert list(found) == list(some)
        for key, values in some.items():
            assert found[key].dtype == values.dtype and found[key].shape == values.shape
            assert found[key].tolist() == values.tolist() or key == "real"
        assert found["real"].tobytes() == some["real"].tobytes()
    (tmp_path / f"all{suffix}").write_bytes(b"broken")
    with pytest.raises(FileError, match="all"):
        read_part(tmp_path / f"all{suffix}")


def test_without_pyarrow_parts_are_npz(catalogue, truth, tmp_path, monkeypatch):
    from abut.scale import tile_run

    monkeypatch.setattr(tile_run, "part_suffix", lambda: ".npz")
    run = new_run(tmp_path, catalogue, 15_000)
    run_tiles(Near(catalogue, HALO), run)
    assert run.path(0).suffix == ".npz" and run.path(0).exists()
    assert merged(run) == truth
    assert distribute.RETRIES == 3
