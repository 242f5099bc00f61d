"""abut beside its peers: ``python -m benchmarks.bench_collide --device cpu``."""

import argparse
import sys
from pathlib import Path
from types import ModuleType

import warp as wp

from benchmarks import cases, ours, peers
from benchmarks.contest import contest
from benchmarks.machine import machine_name
from benchmarks.memory import memory_rows
from benchmarks.rows import Row, print_rows, write_csv
from benchmarks.start_up import start_up_rows

CASES = {
    "bunny_bunny_all": cases.bunny_bunny_all,
    "bunny_bunny_first": cases.bunny_bunny_first,
    "cloth_ball_self": cases.cloth_ball_self,
    "lbvh_build_1m": cases.lbvh_build_1m,
    "cow_cow_10k_poses": cases.cow_cow_10k_poses,
}
JOBS = (*CASES, "start_up", "memory")
RESULTS = cases.ROOT / "benchmarks" / "results"
MOST_PROCESSES = 5  # of a library, in start_up
QUIET = 30  # warnings, but not each module that Warp loads


def main(argv: list[str] | None = None) -> int:
    """Run jobs, print a table for each, write the CSV. 1 if abut was contradicted."""
    args = _arguments(argv)
    wp.config.log_level = QUIET
    modules = [ours, *_peers(args.peers)]
    if cases.data_folder() is None:
        print("no data folder (ABUT_DATA): procedural meshes stand in for the models")
    rows, contradicted = [], False
    for job in args.jobs:
        found, wrong = _job(job, modules, args)
        print_rows(job, found)
        rows += found
        contradicted |= wrong
    out = args.out or RESULTS / machine_name(args.device) / "collide.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return 1 if contradicted else 0


def _job(job: str, modules: list[ModuleType], args: argparse.Namespace) -> tuple[list[Row], bool]:
    """All rows of a job, and whether abut was contradicted."""
    if job == "start_up":
        return start_up_rows(modules, args.device, min(args.rounds, MOST_PROCESSES)), False
    if job == "memory":
        return memory_rows(modules, args.device), False
    args_of_all = modules, args.rounds, args.budget
    outcomes = [contest(case, *args_of_all) for case in CASES[job](args.device)]
    for note in dict.fromkeys(note for outcome in outcomes for note in outcome.notes):
        print(note)
    rows = [row for outcome in outcomes for row in outcome.rows]
    return rows + outcomes[0].first_calls, any(outcome.contradicted for outcome in outcomes)


def _peers(names: list[str]) -> list[ModuleType]:
    modules, missing = peers.installed(tuple(names))
    for name in missing:
        print(f"{name}: not installed, skipped")
    return modules


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench_collide", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--peers", nargs="*", choices=peers.NAMES, default=peers.NAMES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds a library and case")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/collide.csv")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
