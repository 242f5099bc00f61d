"""Configurations of a robot among obstacles: ``python -m benchmarks.bench_robot --device cpu``.

- ``one``: configurations one at a time, as a planner asks: along edges grown from start and goal.
- ``edge``: the same edges, 32 configurations in one call.
- ``batch``: random configurations at once; a loop for the peers.

Of each set of MotionBenchMaker's problems with a Panda a few are taken (``mbm``), and the shelf of
RTCD with 72,000 faces (``shelf``). Times are milliseconds a configuration. Verdicts are compared
before anything is timed: FCL and Coal compute in float64 without exact arithmetic, and take open
meshes and boxes as they do; the number of different verdicts is printed.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from benchmarks.comparison import QUIET, RESULTS
from benchmarks.robot_cases import RobotCase, problems, robot_folder, shelf, temporary_folder
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

JOBS = ("one", "edge", "batch")
ONE, EDGES, BATCH, CUDA_BATCH, LOOP = 8, 8, 10_000, 1_000_000, 250  # of a problem


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if abut contradicts itself."""
    parser = argparse.ArgumentParser(prog="bench_robot", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=JOBS)
    parser.add_argument("--scenes", nargs="+", default=["mbm", "shelf"], choices=["mbm", "shelf"])
    parser.add_argument("--each", type=int, default=2, help="problems of each set")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=5.0, help="seconds a library")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/robot.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder = robot_folder()
    if folder is None:
        print("no robots in the data folder (ABUT_DATA)")
        return 0
    with temporary_folder() as place:
        rows, wrong = [], False
        for name in args.scenes:
            found = list(_cases(name, folder, Path(place), args))
            for job in args.jobs:
                some, contradiction = _measured(job, name, found, args)
                print_rows(f"robot_{job}", some)
                rows, wrong = [*rows, *some], wrong or contradiction
    out = args.out or RESULTS / machine_name(args.device) / "robot.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


def _cases(name: str, folder: Path, place: Path, args: Any) -> Iterator[RobotCase]:
    if name == "shelf":
        yield shelf(folder, args.device)
    else:
        yield from problems(folder, args.device, args.each, place)


def _measured(job: str, name: str, found: list[RobotCase], args: Any) -> tuple[list[Row], bool]:
    """Times of a job over all cases, and whether abut contradicts itself."""
    values = [_values(job, case, args) for case in found]
    for case in found:
        case.scene.robot.prepare()
    asks = [case.scene.robot.valid for case in found]
    verdicts = [
        ask(rows.reshape(-1, rows.shape[-1])).numpy()
        for ask, rows in zip(asks, values, strict=True)
    ]
    count = sum(map(len, verdicts))
    one_by_one = [
        np.array([ask(row) for row in rows.reshape(-1, rows.shape[-1])[:64]])
        for ask, rows in zip(asks, values, strict=True)
    ]
    wrong = any((a != b[: len(a)]).any() for a, b in zip(one_by_one, verdicts, strict=True))
    if wrong:
        print(f"ERROR: {job}/{name}: a batch and its configurations one by one differ")
    free = sum(int(v.sum()) for v in verdicts)
    print(f"{job}/{name}: {count} configurations, {free} free")
    calls = {"abut": Timed(_ours(job, asks, values), args.device, count)}
    if not args.no_peers and args.device == "cpu":
        from benchmarks.peers import robots

        peers = [robots.checks(case) for case in found]
        few = [
            rows.reshape(-1, rows.shape[-1])[: LOOP if job == "batch" else None] for rows in values
        ]
        for library in peers[0]:
            loops = [peer[library] for peer in peers]
            differ = sum(
                sum(loop(row) != verdict for row, verdict in zip(rows, known, strict=False))
                for loop, rows, known in zip(loops, few, verdicts, strict=True)
            )
            print(f"{job}/{name}: {differ} verdicts of {library} differ")
            calls[library] = Timed(_loop(loops, few), "cpu", sum(map(len, few)))
    measure(list(calls.values()), args.rounds, args.budget)
    rows = []
    for library, timed in calls.items():
        row = Row(f"robot_{job}", name, library, timed.device, timed.ms_min, timed.ms_median)
        row.rounds, row.answer_size = len(timed.samples), count
        rows.append(row)
    set_ratios(rows, {"abut"})
    return rows, wrong


def _values(job: str, case: RobotCase, args: Any) -> np.ndarray:
    if job == "batch":
        return case.random(CUDA_BATCH if args.device.startswith("cuda") else BATCH)
    return case.edges(ONE if job == "one" else EDGES)


def _ours(job: str, asks: list[Any], values: list[np.ndarray]) -> Callable[[], int]:
    if job == "one":
        flat = [list(rows.reshape(-1, rows.shape[-1])) for rows in values]
        return _loop(asks, flat)
    if job == "edge":
        return _loop([lambda rows, ask=ask: ask(rows).shape[0] for ask in asks], values)
    return lambda: sum(ask(rows).shape[0] for ask, rows in zip(asks, values, strict=True))


def _loop(asks: list[Any], values: list[Any]) -> Callable[[], int]:
    """One configuration after the other; returns how many are free."""
    return lambda: sum(ask(row) for ask, rows in zip(asks, values, strict=True) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
