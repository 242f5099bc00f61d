"""A benchmark of several jobs: options, tables, the CSV file of the machine."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import warp as wp

from benchmarks import cases, ours, peers
from benchmarks.contest import contest
from benchmarks.machine import machine_name
from benchmarks.rows import Row, print_rows, write_csv

RESULTS = cases.ROOT / "benchmarks" / "results"
QUIET = 30  # warnings, but not each module that Warp loads

Job = Callable[[list[ModuleType], argparse.Namespace], list[Row]]


@dataclass
class Competition:
    """Jobs that abut and its peers do, in turns.

    Attributes:
        name: Of the benchmark and of its CSV file.
        cases: By job, what makes its cases for a device.
        peer_names: Who may take part.
        apart: Other jobs, which are no contests and make their rows by themselves.
    """

    name: str
    cases: dict[str, Callable[[str], list[cases.Case]]]
    peer_names: tuple[str, ...] = peers.NAMES
    apart: dict[str, Job] = field(default_factory=dict)

    def main(self, argv: list[str] | None = None) -> int:
        """Run jobs, print a table for each, write the CSV. 1 if abut was contradicted."""
        args = self._arguments(argv)
        wp.config.log_level = QUIET
        modules = [ours, *_peers(args.peers)]
        if cases.data_folder() is None:
            print("no data folder (ABUT_DATA): procedural meshes stand in for the models")
        rows, contradicted = [], False
        for job in args.jobs:
            found, wrong = self._job(job, modules, args)
            print_rows(job, found)
            rows += found
            contradicted |= wrong
        out = args.out or RESULTS / machine_name(args.device) / f"{self.name}.csv"
        write_csv(out, rows)
        print(f"written to {out}")
        return 1 if contradicted else 0

    def _job(
        self, job: str, modules: list[ModuleType], args: argparse.Namespace
    ) -> tuple[list[Row], bool]:
        """All rows of a job, and whether abut was contradicted."""
        if job in self.apart:
            return self.apart[job](modules, args), False
        args_of_all = modules, args.rounds, args.budget
        outcomes = [contest(case, *args_of_all) for case in self.cases[job](args.device)]
        for note in dict.fromkeys(note for outcome in outcomes for note in outcome.notes):
            print(note)
        rows = [row for outcome in outcomes for row in outcome.rows]
        return rows + outcomes[0].first_calls, any(outcome.contradicted for outcome in outcomes)

    def _arguments(self, argv: list[str] | None) -> argparse.Namespace:
        jobs = (*self.cases, *self.apart)
        parser = argparse.ArgumentParser(prog=f"bench_{self.name}", description=__doc__)
        parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
        parser.add_argument("--jobs", nargs="+", choices=jobs, default=jobs)
        parser.add_argument("--peers", nargs="*", choices=self.peer_names, default=self.peer_names)
        parser.add_argument("--rounds", type=int, default=15)
        parser.add_argument("--budget", type=float, default=3.0, help="seconds a library and case")
        parser.add_argument("--out", type=Path, help=f"default: results/<machine>/{self.name}.csv")
        return parser.parse_args(argv)


def _peers(names: list[str]) -> list[ModuleType]:
    modules, missing = peers.installed(tuple(names))
    for name in missing:
        print(f"{name}: not installed, skipped")
    return modules
