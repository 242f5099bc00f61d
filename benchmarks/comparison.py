"""A benchmark that compares abut with its peers: options, answers checked, times, the CSV file."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import warp as wp

from benchmarks import answers, cases, ours, peers
from benchmarks.cases import Case
from benchmarks.peers import version_of
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

RESULTS = cases.ROOT / "benchmarks" / "results"
QUIET = 30  # warnings, but not each module that Warp loads

Job = Callable[[list[ModuleType], argparse.Namespace], list[Row]]


@dataclass
class Comparison:
    """Jobs that abut and its peers run in alternation.

    Attributes:
        name: Name of the benchmark and of its CSV file.
        cases: For each job, a function that makes its cases for a device.
        peer_names: Peers that may be chosen.
        other_jobs: Jobs without cases, which make their rows themselves.
    """

    name: str
    cases: dict[str, Callable[[str], list[cases.Case]]]
    peer_names: tuple[str, ...] = peers.NAMES
    other_jobs: dict[str, Job] = field(default_factory=dict)

    def main(self, argv: list[str] | None = None) -> int:
        """Run jobs, print a table for each, write the CSV. Returns 1 if an exact peer disagrees."""
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
        """Return all rows of a job, and whether an exact peer contradicted abut."""
        if job in self.other_jobs:
            return self.other_jobs[job](modules, args), False
        args_of_all = modules, args.rounds, args.budget
        outcomes = [compare(case, *args_of_all) for case in self.cases[job](args.device)]
        for note in dict.fromkeys(note for outcome in outcomes for note in outcome.notes):
            print(note)
        rows = [row for outcome in outcomes for row in outcome.rows]
        return rows + outcomes[0].first_calls, any(outcome.contradicted for outcome in outcomes)

    def _arguments(self, argv: list[str] | None) -> argparse.Namespace:
        jobs = (*self.cases, *self.other_jobs)
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


@dataclass
class Entry:
    """A library in one configuration, ready to be timed, and how its answer compares."""

    module: ModuleType
    library: str
    device: str
    timed: Timed
    answer: Any = None
    agrees: str = ""


@dataclass
class Outcome:
    """Rows of a case, its first calls, notes on differing answers, and disagreements."""

    rows: list[Row] = field(default_factory=list)
    first_calls: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    contradicted: bool = False


def compare(case: Case, modules: list[ModuleType], rounds: int, budget_s: float) -> Outcome:
    """Check and time a case; abut is the first of the modules."""
    entries = _enter(case, modules)
    outcome = Outcome()
    for entry in entries:
        entry.answer = entry.module.answer(entry.timed.first())
        _judge(case, entries[0], entry, outcome)
    measure([entry.timed for entry in entries], rounds, budget_s)
    outcome.rows = [_row(case, entry) for entry in entries]
    set_ratios(outcome.rows, no_peers(modules))
    outcome.first_calls = [_first_call(case, e) for e in entries if _compiles(e)]
    return outcome


def no_peers(modules: list[ModuleType]) -> set[str]:
    """Return the names of abut and of the baselines."""
    return {modules[0].NAME} | {m.NAME for m in modules if getattr(m, "BASELINE", False)}


def _enter(case: Case, modules: list[ModuleType]) -> list[Entry]:
    """Prepare every library that supports the question, in all its configurations."""
    entries = []
    for module in modules:
        for choice in module.SUPPORTS.get(case.question, ()):
            prepared = module.prepare(case, choice)
            if prepared is not None:
                timed = Timed(lambda m=module, p=prepared: m.run(p), prepared.device)
                timed.steps = prepared.steps
                library = f"{module.NAME}_{choice}" if choice else module.NAME
                entries.append(Entry(module, library, prepared.device, timed))
    return entries


def _judge(case: Case, ours: Entry, entry: Entry, outcome: Outcome) -> None:
    """Compare an answer with the first entry's. An exact library may differ only as excused."""
    if entry is ours:
        entry.agrees = "reference"
        return
    surplus, missing = answers.difference(ours.answer, entry.answer)
    differs = len(surplus) + len(missing) > 0
    entry.agrees = f"+{len(surplus)} -{len(missing)}" if differs else "yes"
    if np.ndim(entry.answer) == 1 and len(entry.answer) < len(ours.answer):
        entry.agrees += f" of {len(entry.answer)}"
    if differs:
        outcome.notes.append(entry.module.NOTE)
        if entry.module is ours.module or _contradicts(case, entry, surplus, missing):
            where = f"{case.job} {case.variant}"
            outcome.notes.append(f"ERROR: {where}: {entry.library} contradicts {ours.library}.")
            outcome.contradicted = True


def _contradicts(case: Case, entry: Entry, surplus: np.ndarray, missing: np.ndarray) -> bool:
    if not getattr(entry.module, "EXACT", False):
        return False
    differing = np.concatenate([surplus, missing])
    return differing.ndim < 2 or len(answers.without_excuse(case, differing)) > 0


def _row(case: Case, entry: Entry) -> Row:
    timed = entry.timed
    row = Row(case.job, case.variant, entry.library, entry.device, timed.ms_min, timed.ms_median)
    row.rounds, row.agrees = len(timed.samples), entry.agrees
    row.answer_size, row.version = answers.size_of(entry.answer), version_of(entry.module)
    return row


def _compiles(entry: Entry) -> bool:
    return getattr(entry.module, "COMPILES", False) and entry.library == entry.module.NAME


def _first_call(case: Case, entry: Entry) -> Row:
    """Make the row of a first call, which compiles kernels or loads compiled ones."""
    first_ms, variant = entry.timed.first_ms, f"{case.variant}/first_call"
    row = Row(case.job, variant, entry.library, entry.device, first_ms, first_ms, 1)
    row.version = version_of(entry.module)
    return row
