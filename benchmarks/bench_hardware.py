"""The figures of Raabe et al. 2006 for abut's machine: ``python -m benchmarks.bench_hardware``.

Two cows (5,804 faces each) instead of two headlights (5,947). Cycles come from the cycle model,
which the RTL matches. ``widths``: figure 3; ``axes``: figure 5, and the number of sides;
``distances``: figure 6; ``bus``: the shared bus beside one that widens with the word; ``chip``:
caches, compressed records, more pipelines (the model alone); ``units``: several units that share a
query; ``software``: abut and Coal on this CPU, beside figure 6. Writes
``results/<machine>/hardware_*.csv``, of which ``python -m benchmarks.papers`` makes
docs/papers/fpga_kdop.md.
"""

import argparse
import csv
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.hardware import Machine, simulate
from abut.hardware.config import BUS_BITS
from abut.hardware.cycle_model import CycleModel
from abut.hardware.program import program
from benchmarks import cases, peers
from benchmarks.comparison import QUIET
from benchmarks.rows import machine_name, print_table

RESULTS = Path(__file__).parent / "results"
WIDTHS = (*range(10, 21), 24, 30, 35)
AXES = (6, 9, 12, 16, 20, 24, 30, 36, 48, 72)
SIDES = (6, 14, 18, 24, 26)
DISTANCES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the longest side
TURNS = 3


BUSES = [
    {"width": width, "pipelines": pipelines, "bus": bus}
    for width in (18, 35)
    for pipelines in (1, 4)
    for bus in (0, 72)
]
BESIDE = {"row_values": 8, "triangle_units": 2}
CHIPS = [
    {"pipelines": 4},
    {"pipelines": 8},
    {"pipelines": 8, "cache": 512},
    {"pipelines": 8, "cache": 512, "row_values": 8},
    {"pipelines": 8, "cache": 512, "triangle_units": 2},
    *({"pipelines": n, "cache": 512} | BESIDE for n in (4, 8, 12)),
    *({"pipelines": 8, "cache": n} | BESIDE for n in (128, 2048)),
    *({"pipelines": 8, "cache": n, "delta_bits": 8} | BESIDE for n in (128, 512)),
    *({"pipelines": 8, "cache": 512, "delta_bits": n} | BESIDE for n in (6,)),
    {"pipelines": 8, "cache": 512, "row_values": 24, "triangle_units": 3},
]
UNIT = {"pipelines": 4, "cache": 512, "row_values": 8}  # of two or more
SHARE = 16  # pairs for each of several units
TEST_CYCLES = 12  # of a pair that is tested before the units begin


def main(argv: list[str] | None = None) -> int:
    """Make tables."""
    parser = argparse.ArgumentParser(prog="bench_hardware", description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=_MAKERS, default=list(_MAKERS))
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    case = cases.cow_cow_10k_poses("cpu")[0]
    mesh = abut.Mesh(case.vertices, case.faces, "cpu")
    for name in args.tables:
        rows = _MAKERS[name](mesh)
        _write(RESULTS / machine_name("cpu") / f"hardware_{name}.csv", rows)
        lines = [[str(value) for value in row.values()] for row in rows]
        print_table(name, list(rows[0]), lines)
    return 0


def _poses(mesh: abut.Mesh, distance: float) -> list[np.ndarray]:
    """A cow beside the other, turned in a few ways; ``distance`` between centres."""
    centre, side = mesh.bounds.mean(axis=0), float(np.ptp(mesh.bounds, axis=0).max())
    poses = cases.random_poses(mesh.points.numpy(), TURNS, 0.0)
    for pose in poses:
        pose[:3, 3] = centre - pose[:3, :3] @ centre + [distance * side, 0.0, 0.0]
    return list(poses)


def _mean(mesh: abut.Mesh, distance: float, **parameters: int) -> dict[str, float]:
    """Mean counters over the turns."""
    runs = [simulate(mesh, mesh, pose_b=pose, **parameters) for pose in _poses(mesh, distance)]
    counters = [run.counters() | {"pairs": len(run.pairs)} for run in runs]
    return {name: round(float(np.mean([c[name] for c in counters])), 1) for name in counters[0]}


def _widths(mesh: abut.Mesh) -> list[dict[str, Any]]:
    return [{"width": width, "bus": BUS_BITS, **_mean(mesh, 0.3, width=width)} for width in WIDTHS]


def _axes(mesh: abut.Mesh) -> list[dict[str, Any]]:
    shapes = [(24, n) for n in AXES] + [(k, k) for k in SIDES if k != 24]
    return [
        {"sides": k, "axes": n, "bus": BUS_BITS, **_mean(mesh, 0.3, sides=k, axis_count=n)}
        for k, n in shapes
    ]


def _distances(mesh: abut.Mesh) -> list[dict[str, Any]]:
    """Figure 6: one pipeline, and four."""
    machines = {"cycles": {}, "cycles_4": {"pipelines": 4}}
    rows = []
    for distance in DISTANCES:
        found = {name: _mean(mesh, distance, **some) for name, some in machines.items()}
        met = [len(abut.collide(mesh, mesh, pose_b=pose)) for pose in _poses(mesh, distance)]
        row = {"distance": distance, "bus": BUS_BITS, "pairs": found["cycles"]["pairs"]}
        row["intersecting"] = round(float(np.mean(met)), 1)
        rows.append(row | {name: run["cycles"] for name, run in found.items()})
    return rows


def _bus(mesh: abut.Mesh) -> list[dict[str, Any]]:
    return [some | _mean(mesh, 0.0, **some) for some in BUSES]


def _chip(mesh: abut.Mesh) -> list[dict[str, Any]]:
    plain = {"pipelines": 4, "cache": 0, "row_values": 4, "triangle_units": 1, "delta_bits": 0}
    return [plain | some | _mean(mesh, 0.0, **some) for some in CHIPS]


def _units(mesh: abut.Mesh) -> list[dict[str, Any]]:
    """Several units, each with a memory of its own, which share the pairs of a query."""
    rows = [(0.0, some, n) for some in ({"pipelines": 4}, UNIT) for n in (1, 2, 3)]
    rows += [(distance, UNIT, 2) for distance in DISTANCES[1:]]
    plain = {"pipelines": 4, "cache": 0, "row_values": 4, "triangle_units": 1}
    return [
        {"distance": d, "units": n} | plain | some | {"cycles": _split_cycles(mesh, d, n, some)}
        for d, some, n in rows
    ]


def _split_cycles(mesh: abut.Mesh, distance: float, units: int, some: dict[str, int]) -> float:
    """Cycles of the slowest unit, and of the tests that find the pairs to share; means."""
    cycles = []
    for pose in _poses(mesh, distance):
        asked = program(mesh, mesh, None, pose, Machine(**some))
        tests, stacks = CycleModel(asked).split(units, SHARE * units if units > 1 else 1)
        runs = [CycleModel(asked).run(stack).cycles for stack in stacks if stack]
        cycles.append(TEST_CYCLES * tests + max(runs, default=0))
    return round(float(np.mean(cycles)), 1)


def _all_software(mesh: abut.Mesh) -> list[dict[str, Any]]:
    return [{"distance": d, **_software(mesh, d)} for d in DISTANCES]


def _software(mesh: abut.Mesh, distance: float) -> dict[str, float | str]:
    """Mean microseconds of abut and of Coal's hierarchies over poses, each the best of many."""
    poses = _poses(mesh, distance)
    vertices, faces = mesh.points.numpy(), mesh.faces.numpy()
    calls = {"abut_us": [lambda p=p: abut.collide(mesh, mesh, pose_b=p) for p in poses]}
    modules, _ = peers.installed(("coal",))
    held = []  # Coal's functors do not keep their models alive
    for module in modules:
        for choice in module.SUPPORTS[cases.Question.PAIRS]:
            prepared = [
                module.prepare(
                    cases.Case("", "", cases.Question.PAIRS, "cpu", vertices, faces, pose=p), choice
                )
                for p in poses
            ]
            held += prepared
            calls[f"coal_{choice}_us"] = [one.call for one in prepared]
    return {
        name: round(float(np.mean([_best_us(call) for call in some])), 1)
        for name, some in calls.items()
    }


def _best_us(call: Callable[[], object], budget_s: float = 0.3) -> float:
    """Microseconds of the fastest of many calls: what others do at the same time only adds."""
    for _ in range(5):
        call()
    best, end = math.inf, time.perf_counter() + budget_s
    while (start := time.perf_counter()) < end:
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


_MAKERS = {
    "widths": _widths,
    "axes": _axes,
    "bus": _bus,
    "chip": _chip,
    "units": _units,
    "distances": _distances,
    "software": _all_software,
}

if __name__ == "__main__":
    sys.exit(main())
