"""One case: enter all libraries, check their answers, time them in turns."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import answers
from benchmarks.cases import Case
from benchmarks.peers import version_of
from benchmarks.rows import Row, set_ratios
from benchmarks.timing import Timed, measure


@dataclass
class Entry:
    """A library in one of its configurations, ready to be timed, and how its answer did."""

    module: ModuleType
    library: str
    device: str
    timed: Timed
    answer: Any = None
    agrees: str = ""


@dataclass
class Outcome:
    """Rows, first calls apart; notes on answers that differ; whether abut was contradicted."""

    rows: list[Row] = field(default_factory=list)
    first_calls: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    contradicted: bool = False


def contest(case: Case, modules: list[ModuleType], rounds: int, budget_s: float) -> Outcome:
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
    """Names of abut and of the baselines."""
    return {modules[0].NAME} | {m.NAME for m in modules if getattr(m, "BASELINE", False)}


def _enter(case: Case, modules: list[ModuleType]) -> list[Entry]:
    """Whoever supports the question, in all configurations that apply."""
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
    """Compare with the first entry's answer. An exact library must not differ without excuse."""
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
    """With what it compiled, or loaded if another run had compiled it."""
    first_ms, variant = entry.timed.first_ms, f"{case.variant}/first_call"
    row = Row(case.job, variant, entry.library, entry.device, first_ms, first_ms, 1)
    row.version = version_of(entry.module)
    return row
