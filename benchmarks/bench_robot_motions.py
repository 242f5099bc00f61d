"""Motions of a robot, certified in joint space: ``python -m benchmarks.bench_robot_motions``.

- ``motions``: motions of 0.3 rad (the norm in joint space) from random configurations without
  contact, at once. Peers check configurations at most a degree of any joint apart, and stop at the
  first contact; they may miss one in between.
- ``one``: the same motions, one call each.
- ``long``: motions between random configurations without contact.
- ``clearance``: least distances of random configurations.

The scene is the shelf of RTCD, 24,000 faces of a Panda and 72,000 of obstacles. Times are
milliseconds a motion. Before anything is timed, every contact that a peer finds, and that abut
finds at the same configurations, must be in a motion that is not called free.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from benchmarks.comparison import QUIET, RESULTS
from benchmarks.robot_cases import RobotCase, robot_folder, shelf
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

JOBS = ("motions", "one", "long", "clearance")
LENGTH = 0.3  # radians
DEGREE = np.pi / 180
COUNTS = {"motions": 2000, "one": 100, "long": 300, "clearance": 2000}
CUDA_FACTOR = 50  # more motions at once
FEW = 40  # motions of the peers


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if a contact is missed."""
    parser = argparse.ArgumentParser(prog="bench_robot_motions", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=JOBS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds a library")
    about = "time of the processor, of all threads, where others use the machine"
    parser.add_argument("--processor", action="store_true", help=about)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/robot_motions*.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder = robot_folder()
    if folder is None:
        print("no robots in the data folder (ABUT_DATA)")
        return 0
    case, rows, wrong = shelf(folder, args.device), [], False
    for job in args.jobs:
        some, missed = _measured(job, case, args)
        print_rows(f"robot_{job}", some)
        rows, wrong = [*rows, *some], wrong or missed
    name = "robot_motions_processor.csv" if args.processor else "robot_motions.csv"
    out = args.out or RESULTS / machine_name(args.device) / name
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


def _measured(job: str, case: RobotCase, args: Any) -> tuple[list[Row], bool]:
    """Times of a job, and whether a contact was missed."""
    count = COUNTS[job] * (CUDA_FACTOR if args.device != "cpu" and job != "one" else 1)
    robot, missed = case.scene.robot, False
    q0, q1 = _motions(job, case, count)
    if job == "clearance":
        calls = {"abut": Timed(lambda: robot.clearance(q0), args.device, len(q0))}
        found = robot.clearance(q0).distance.numpy()
        missed = bool(((found > 0) != robot.valid(q0).numpy()).any())
        print(f"clearance: {(found > 0).sum()} of {len(q0)} configurations free")
    else:
        verdicts = robot.valid_motions(q0, q1).numpy()
        free = verdicts["free"]
        print(
            f"{job}: {free.sum()} of {len(q0)} motions free, {verdicts['converged'].sum()} decided"
        )
        sampled = [robot.valid(_steps(*ends)).numpy().all() for ends in zip(q0, q1, strict=True)]
        missed = bool((free & ~np.array(sampled)).any())
        whole = lambda: robot.valid_motions(q0, q1)  # noqa: E731
        each = lambda: [robot.valid_motions(*ends) for ends in zip(q0, q1, strict=True)]  # noqa: E731
        calls = {"abut": Timed(each if job == "one" else whole, args.device, len(q0))}
        if not args.no_peers and args.device == "cpu":
            missed |= _add_peers(calls, job, case, q0, q1, free)
    if missed:
        print(f"ERROR: {job}: a contact was missed")
    for timed in calls.values():
        timed.clock = time.process_time if args.processor else time.perf_counter
    measure(list(calls.values()), args.rounds, args.budget)
    rows = []
    for library, timed in calls.items():
        row = Row(f"robot_{job}", "shelf", library, timed.device, timed.ms_min, timed.ms_median)
        row.rounds, row.answer_size = len(timed.samples), len(q0)
        rows.append(row)
    set_ratios(rows, {"abut"})
    return rows, missed


def _add_peers(
    calls: dict[str, Timed],
    job: str,
    case: RobotCase,
    q0: np.ndarray,
    q1: np.ndarray,
    free: np.ndarray,
) -> bool:
    """Add discretised checks of the first motions; True if one finds a contact in a free motion."""
    from benchmarks.peers import robots

    few, missed = list(zip(q0[:FEW], q1[:FEW], strict=True)), False
    for library, ask in robots.checks(case).items():
        found = np.array([_all_free(ask, *ends) for ends in few])
        print(f"{job}: {(found & ~free[: len(few)]).sum()} motions with contact free for {library}")
        missed |= bool((free[: len(few)] & ~found).any())
        calls[f"{library} at 1 degree"] = Timed(_loop(ask, few), "cpu", len(few))
    return missed


def _loop(ask: Callable[[np.ndarray], bool], motions: list[Any]) -> Callable[[], int]:
    return lambda: sum(_all_free(ask, *ends) for ends in motions)


def _all_free(ask: Callable[[np.ndarray], bool], q0: np.ndarray, q1: np.ndarray) -> bool:
    return all(ask(row) for row in _steps(q0, q1))


def _steps(q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    """Configurations on the way, at most a degree of any joint apart."""
    count = max(int(np.ceil(np.abs(q1 - q0).max() / DEGREE)), 1)
    return q0 + np.linspace(0.0, 1.0, count + 1)[:, None] * (q1 - q0)


def _motions(job: str, case: RobotCase, count: int) -> tuple[np.ndarray, np.ndarray]:
    values = case.random(4 * count)
    if job == "clearance":
        return values[:count], values[:count]
    free = values[case.scene.robot.valid(values).numpy()]
    count = min(count, len(free) // 2)
    starts, ends = free[:count], free[count : 2 * count]
    if job != "long":
        way = np.random.default_rng(1).normal(size=starts.shape)
        ends = starts + LENGTH * way / np.linalg.norm(way, axis=1, keepdims=True)
    return starts, ends


if __name__ == "__main__":
    sys.exit(main())
