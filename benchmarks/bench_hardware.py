"""The figures of Raabe et al. 2006 for abut's machine: ``python -m benchmarks.bench_hardware``.

Two cows (5,804 faces each) instead of two headlights (5,947). Cycles come from the cycle model,
which the RTL matches; times are cycles over a routed clock (``--clock``). Figure 3: bit width.
Figure 5: number of axes, and of sides. Figure 6: distance, beside abut and Coal on this CPU.
Writes ``results/<machine>/hardware_*.csv`` and, with ``--plots FOLDER``, plots.
"""

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.hardware import simulate
from benchmarks import cases, peers
from benchmarks.comparison import QUIET
from benchmarks.plots import line_plot
from benchmarks.rows import machine_name, print_table
from benchmarks.timing import Timed, measure

RESULTS = Path(__file__).parent / "results"
WIDTHS = (10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24, 30, 35)
AXES = (6, 9, 12, 16, 20, 24, 30, 36, 48, 72)
SIDES = (6, 14, 18, 24, 26)
DISTANCES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the longest side
TURNS = 3


def main(argv: list[str] | None = None) -> int:
    """Make figures."""
    parser = argparse.ArgumentParser(prog="bench_hardware", description=__doc__)
    parser.add_argument("--figures", nargs="+", type=int, choices=(3, 5, 6), default=(3, 5, 6))
    parser.add_argument("--clock", type=float, default=102.8, metavar="MHZ")
    parser.add_argument("--pipelines", type=int, default=4, help="beside one; figure 6")
    parser.add_argument("--plots", type=Path, metavar="FOLDER")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    case = cases.cow_cow_10k_poses("cpu")[0]
    mesh = abut.Mesh(case.vertices, case.faces, "cpu")
    makers = {3: _widths, 5: _axes, 6: _distances}
    for figure in args.figures:
        rows = makers[figure](mesh, args)
        _write(RESULTS / machine_name("cpu") / f"hardware_fig{figure}.csv", rows)
        lines = [[str(value) for value in row.values()] for row in rows]
        print_table(f"figure {figure}", list(rows[0]), lines)
        if args.plots:
            _PLOTS[figure](args.plots / f"fig{figure}.svg", rows)
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


def _widths(mesh: abut.Mesh, args: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for width in WIDTHS:
        found = _mean(mesh, 0.3, width=width)
        rows.append({"width": width, "us": round(found["cycles"] / args.clock, 1), **found})
    return rows


def _axes(mesh: abut.Mesh, args: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    shapes = [(24, n) for n in AXES] + [(k, k) for k in SIDES if k != 24]
    for sides, count in shapes:
        found = _mean(mesh, 0.3, sides=sides, axis_count=count)
        us = round(found["cycles"] / args.clock, 1)
        rows.append({"sides": sides, "axes": count, "us": us, **found})
    return rows


def _distances(mesh: abut.Mesh, args: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for distance in DISTANCES:
        alone = _mean(mesh, distance)
        many = _mean(mesh, distance, pipelines=args.pipelines)
        row = {"distance": distance, "pairs": alone["pairs"], "cycles": alone["cycles"],
               f"cycles_{args.pipelines}": many["cycles"],
               "us": round(alone["cycles"] / args.clock, 1),
               f"us_{args.pipelines}": round(many["cycles"] / args.clock, 1)}  # fmt: skip
        rows.append(row | _software(mesh, distance))
    return rows


def _software(mesh: abut.Mesh, distance: float) -> dict[str, float | str]:
    """Mean microseconds of abut and of Coal's faster hierarchy, best of many, in turns."""
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
    timed = {name: [Timed(call) for call in some] for name, some in calls.items()}
    measure([one for some in timed.values() for one in some], rounds=10, budget_s=1.0)
    times = {
        name: round(float(np.mean([one.ms_min for one in some])) * 1e3, 1)
        for name, some in timed.items()
    }
    return times


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _plot_widths(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = {"one pipeline": [(row["width"], row["us"]) for row in rows]}
    line_plot(path, "Time of a query against bit width", "bits", "µs", lines)


def _plot_axes(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = {"k = 24": [(row["axes"], row["us"]) for row in rows if row["sides"] == 24]}
    lines["n = k"] = sorted((r["axes"], r["us"]) for r in rows if r["sides"] == r["axes"])
    line_plot(path, "Time of a query against the number of axes", "axes n", "µs", lines)


def _plot_distances(path: Path, rows: list[dict[str, Any]]) -> None:
    names = [name for name in rows[0] if name.endswith("us") or name.startswith("us")]
    lines = {
        _label(name): [(row["distance"], row[name]) for row in rows]
        for name in names
        if name != "coal_obb_us"
    }
    line_plot(path, "All pairs of two cows", "distance, in lengths of a cow", "µs", lines)


def _label(name: str) -> str:
    known = {"us": "machine, 1 pipeline", "abut_us": "abut, CPU", "coal_obbrss_us": "Coal, CPU"}
    return known.get(name, f"machine, {name.removeprefix('us_')} pipelines")


_PLOTS = {3: _plot_widths, 5: _plot_axes, 6: _plot_distances}

if __name__ == "__main__":
    sys.exit(main())
