"""abut beside its peers: ``python -m benchmarks.bench_collide --device cpu``."""

import argparse
import sys
from types import ModuleType

from benchmarks import cases
from benchmarks.comparison import Comparison
from benchmarks.overhead import memory_rows, start_up_rows
from benchmarks.rows import Row

CASES = {
    "bunny_bunny_all": cases.bunny_bunny_all,
    "bunny_bunny_first": cases.bunny_bunny_first,
    "cloth_ball_self": cases.cloth_ball_self,
    "lbvh_build_1m": cases.lbvh_build_1m,
    "cow_cow_10k_poses": cases.cow_cow_10k_poses,
}
MOST_PROCESSES = 5  # of a library, in start_up


def main(argv: list[str] | None = None) -> int:
    """Run jobs, print a table for each, write the CSV. Returns 1 if an exact peer disagrees."""
    other_jobs = {"start_up": _start_up, "memory": _memory}
    return Comparison("collide", CASES, other_jobs=other_jobs).main(argv)


def _start_up(modules: list[ModuleType], args: argparse.Namespace) -> list[Row]:
    return start_up_rows(modules, args.device, min(args.rounds, MOST_PROCESSES))


def _memory(modules: list[ModuleType], args: argparse.Namespace) -> list[Row]:
    return memory_rows(modules, args.device)


if __name__ == "__main__":
    sys.exit(main())
