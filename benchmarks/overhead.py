"""Costs besides queries: the time from process start to the first answer, and bytes a face.

An earlier process has compiled the kernels.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from benchmarks.cases import ROOT, Question, bunny_bunny_all
from benchmarks.comparison import no_peers
from benchmarks.peers import version_of
from benchmarks.rows import Row, set_ratios


class Run(NamedTuple):
    """Times of one process in milliseconds, and the number of pairs it found."""

    to_answer: float
    of_which_import: float
    size: int


def start_up_rows(modules: list[ModuleType], device: str, rounds: int) -> list[Row]:
    """Make two rows for each library: the whole time, and the import within it."""
    case = bunny_bunny_all(device)[0]
    modules = [m for m in modules if Question.PAIRS in m.SUPPORTS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.npz"
        np.savez(path, vertices=case.vertices, b=case.other, faces=case.faces)
        turns = [[_run(m, path, device) for m in modules] for _ in range(rounds + 1)]
    runs = list(zip(modules, zip(*turns[1:], strict=True), strict=True))  # the first is a warm-up
    whole = [_row(m, "to_answer", device, found) for m, found in runs]
    set_ratios(whole, no_peers(modules))
    for row in whole:
        more = row.answer_size - whole[0].answer_size
        row.agrees = "reference" if row is whole[0] else f"{more:+}" if more else "yes"
    return whole + [_row(m, "of_which_import", device, found) for m, found in runs]


def memory_rows(modules: list[ModuleType], device: str) -> list[Row]:
    """Make a row for each hierarchy whose size a library reports; abut comes first."""
    case = bunny_bunny_all(device)[0]
    rows = []
    for module in modules:
        sizes = module.tree_bytes(case) if hasattr(module, "tree_bytes") else {}
        for name, size in sizes.items():
            where = device if module is modules[0] else "cpu"
            row = Row("memory", f"{name}_bytes_per_face", module.NAME, where)
            row.answer_size, row.version = size / len(case.faces), version_of(module)
            rows.append(row)
    return rows


def _run(module: ModuleType, path: Path, device: str) -> Run:
    program = [sys.executable, "-m", "benchmarks.first_answer"]
    command = [*program, module.__name__, str(path), device]
    start = time.perf_counter()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        for line in process.stdout:
            if line.startswith("{"):
                ms = (time.perf_counter() - start) * 1e3
                said = json.loads(line)
                return Run(ms, said["import_ms"], said["size"])
        raise RuntimeError(f"{module.NAME} in a process of its own: {process.stderr.read()}")


def _row(module: ModuleType, variant: str, device: str, runs: tuple[Run, ...]) -> Row:
    times = [getattr(run, variant) for run in runs]
    where = device if getattr(module, "COMPILES", False) else "cpu"
    row = Row(
        "start_up", variant, module.NAME, where, min(times), statistics.median(times), len(times)
    )
    row.answer_size, row.version = runs[0].size, version_of(module)
    return row
