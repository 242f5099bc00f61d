"""A benchmark that compares abut with its peers: options, answers checked, times, the CSV file."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import warp as wp

import abut
from benchmarks import answers, cases, ours, peers
from benchmarks.cases import Case, Question
from benchmarks.peers import version_of
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

RESULTS = cases.ROOT / "benchmarks" / "results"
QUIET = 30  # warnings, but not each module that Warp loads
WARM_UP_S = 0.3  # of calls before the clock runs: hierarchies improve with use
COLD_ROUNDS, COLD_BUDGET_S = 3, 0.5
COLD = {Question.FIRST, Question.PAIRS, Question.WITHIN, Question.DISTANCE}

Job = Callable[[list[ModuleType], argparse.Namespace], list[Row]]


@dataclass
class Comparison:
    """Jobs that abut and its peers run in alternation.

    Attributes:
        name: Name of the benchmark and of its CSV file.
        cases: For each job, a function that makes its cases for a device.
        peer_names: Peers that may be chosen.
        other_jobs: Jobs without cases, which make their rows themselves.
        add_options: Adds options to the parser.
        more_rows: Makes more rows of a case from abut's answer to it.
        cold: Whether to time single questions about new meshes too.
    """

    name: str
    cases: dict[str, Callable[[str], list[cases.Case]]]
    peer_names: tuple[str, ...] = peers.NAMES
    other_jobs: dict[str, Job] = field(default_factory=dict)
    add_options: Callable[[argparse.ArgumentParser], None] | None = None
    more_rows: Callable[[Case, Any, argparse.Namespace], list[Row]] | None = None
    cold: bool = False

    def main(self, argv: list[str] | None = None) -> int:
        """Run jobs, print a table for each, write the CSV. Returns 1 if an exact peer disagrees."""
        args = self._arguments(argv)
        wp.config.log_level = QUIET
        modules = [ours, *_peers(args.peers)]
        if cases.data_folder() is None:
            print("no data folder (ABUT_DATA): procedural meshes stand in for the models")
        out, contradicted = (
            args.out or RESULTS / machine_name(args.device) / f"{self.name}.csv",
            False,
        )
        for job in args.jobs:
            found, wrong = self._job(job, modules, args)
            print_rows(job, found)
            write_csv(out, found)
            contradicted |= wrong
        print(f"written to {out}")
        return 1 if contradicted else 0

    def _job(
        self, job: str, modules: list[ModuleType], args: argparse.Namespace
    ) -> tuple[list[Row], bool]:
        """Return all rows of a job, and whether an exact peer contradicted abut."""
        if job in self.other_jobs:
            return self.other_jobs[job](modules, args), False
        outcomes = []
        for case in self.cases[job](args.device):
            outcome = compare(case, modules, args.rounds, args.budget, self.cold)
            if self.more_rows is not None and outcome.answer is not None:
                outcome.rows += self.more_rows(case, outcome.answer, args)
            outcomes.append(outcome)
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
        if self.add_options is not None:
            self.add_options(parser)
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
    choice: str = ""
    part: int | None = None
    answer: Any = None
    agrees: str = ""


@dataclass
class Outcome:
    """Rows of a case, its first calls, notes on differing answers, and disagreements.

    ``answer`` is abut's; None if it refused the question.
    """

    rows: list[Row] = field(default_factory=list)
    answer: Any = None
    first_calls: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    contradicted: bool = False


def compare(
    case: Case, modules: list[ModuleType], rounds: int, budget_s: float, cold: bool = False
) -> Outcome:
    """Check and time a case; abut is the first of the modules."""
    outcome = Outcome()
    entries = _enter(case, modules, outcome)
    try:
        entries[0].answer = entries[0].module.answer(entries[0].timed.first())
    except abut.AbutError as error:
        entries[0].agrees = "refused"
        outcome.notes.append(f"{case.job} {case.variant}: refused: {error}")
        outcome.rows = [_row(case, entries[0])]
        return outcome
    outcome.answer = entries[0].answer
    for entry in entries[1:]:
        try:
            entry.answer = entry.module.answer(entry.timed.first())
        except Exception as error:
            outcome.notes.append(_failure(case, entry.library, error))
            continue
        _judge(case, entries[0], entry, outcome)
    entries = [entry for entry in entries if entry.answer is not None]
    for entry in entries:
        if getattr(entry.module, "COMPILES", False):
            _warm_up(entry.timed)
    measure([entry.timed for entry in entries], rounds, budget_s)
    outcome.rows = [_row(case, entry) for entry in entries]
    set_ratios(outcome.rows, no_peers(modules))
    one_point = case.points is not None and len(case.points) == 1
    if cold and (one_point or case.question in COLD):
        outcome.rows += _cold_rows(case, entries, no_peers(modules))
    outcome.first_calls = [_first_call(case, e) for e in entries if _compiles(e)]
    return outcome


def _warm_up(timed: Timed) -> None:
    stop = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < stop:
        timed.turn(1)


def _cold_rows(case: Case, entries: list[Entry], apart: set[str]) -> list[Row]:
    """Time from arrays to the answer: a new mesh, its hierarchy, one call; kernels are loaded."""
    rows = []
    for entry in entries:
        if entry.choice == ours.ONE_THREAD:
            continue
        timed = Timed(lambda e=entry: e.module.run(e.module.prepare(case, e.choice)), entry.device)
        while len(timed.samples) < COLD_ROUNDS and sum(timed.samples) < 1e3 * COLD_BUDGET_S:
            timed.samples.append(timed.turn(1)[0] * 1e3)
        row = Row(case.job, f"{case.variant}/cold", entry.library, entry.device)
        row.ms_min, row.ms_median, row.rounds = timed.ms_min, timed.ms_median, len(timed.samples)
        row.version = version_of(entry.module)
        rows.append(row)
    set_ratios(rows, apart)
    return rows


def no_peers(modules: list[ModuleType]) -> set[str]:
    """Return the names of abut and of the baselines."""
    return {modules[0].NAME} | {m.NAME for m in modules if getattr(m, "BASELINE", False)}


def _enter(case: Case, modules: list[ModuleType], outcome: Outcome) -> list[Entry]:
    """Prepare every library that supports the question, in all its configurations."""
    entries = []
    for module in modules:
        for choice in module.SUPPORTS.get(case.question, ()):
            try:
                prepared = module.prepare(case, choice)
            except Exception as error:
                if module is modules[0]:
                    raise
                outcome.notes.append(_failure(case, module.NAME, error))
                continue
            if prepared is not None:
                timed = Timed(lambda m=module, p=prepared: m.run(p), prepared.device)
                timed.steps = prepared.steps
                library = f"{module.NAME}_{choice}" if choice else module.NAME
                entry = Entry(module, library, prepared.device, timed, choice, prepared.part)
                entries.append(entry)
    entries[0].agrees = "reference"
    return entries


def _failure(case: Case, library: str, error: Exception) -> str:
    return f"{case.job} {case.variant}: {library} failed and is left out: {error}"


def _judge(case: Case, ours: Entry, entry: Entry, outcome: Outcome) -> None:
    """Compare an answer with the first entry's. An exact library may differ only as excused."""
    tolerance = getattr(entry.module, "TOLERANCE", None)
    surplus, missing = answers.difference(ours.answer, entry.answer, tolerance, entry.part)
    differs = len(surplus) + len(missing) > 0
    entry.agrees = f"+{len(surplus)} -{len(missing)}" if differs else "yes"
    if np.ndim(entry.answer) == 1 and len(entry.answer) < len(ours.answer):
        entry.agrees += f" of {len(entry.answer)}"
    elif entry.part is not None:
        entry.agrees += f" of {entry.part}"
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
    row = Row(case.job, case.variant, entry.library, entry.device)
    row.agrees, row.version = entry.agrees, version_of(entry.module)
    if timed.samples:
        row.ms_min, row.ms_median, row.rounds = timed.ms_min, timed.ms_median, len(timed.samples)
        row.answer_size = answers.size_of(entry.answer)
    return row


def _compiles(entry: Entry) -> bool:
    return getattr(entry.module, "COMPILES", False) and entry.library == entry.module.NAME


def _first_call(case: Case, entry: Entry) -> Row:
    """Make the row of a first call, which compiles kernels or loads compiled ones."""
    first_ms, variant = entry.timed.first_ms, f"{case.variant}/first_call"
    row = Row(case.job, variant, entry.library, entry.device, first_ms, first_ms, 1)
    row.version = version_of(entry.module)
    return row
