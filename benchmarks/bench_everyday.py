"""Everyday questions, beside CPU and GPU peers: ``python -m benchmarks.bench_everyday``.

One pose or a hundred thousand, cold or warm. Rows ``.../cold`` start from arrays: a new mesh, its
hierarchy and one call. ``abut_device_poses`` are poses that are on the GPU already. ``--anchor
first=PROGRAM nearest=PROGRAM`` adds the CUDA programs of ``anchors.py``.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import abut
from abut.bvh.bvh_cache import bvh_of
from benchmarks import everyday_cases as cases
from benchmarks import ours
from benchmarks.anchors import QUESTIONS, anchor_rows
from benchmarks.answers import difference
from benchmarks.cases import Case, Question
from benchmarks.comparison import Comparison, no_peers
from benchmarks.peers import version_of
from benchmarks.rows import Row, set_ratios
from benchmarks.timing import Timed

PEERS = ("fcl", "coal", "meshlib", "warp_bvh", "warp_mesh", "newton")
CASES = {
    "one_first": cases.one_first,
    "one_pairs": cases.one_pairs,
    "one_within": cases.one_within,
    "one_distance": cases.one_distance,
    "one_point": cases.one_point,
    "poses_first": cases.poses_first,
    "poses_pairs": cases.poses_pairs,
    "poses_distance": cases.poses_distance,
    "self_refit": cases.self_refit,
    "million_points": cases.million_points,
}
FIRST_PEERS = ("fcl", "coal", "meshlib")
FIRST_ROUNDS = 3
QUICK_ROUNDS, QUICK_BUDGET_S = 5, 0.3
QUICK_MOST = 10_000  # poses of a batch


def main(argv: list[str] | None = None) -> int:
    """Run jobs, print a table for each, write the CSV."""
    argv = sys.argv[1:] if argv is None else argv
    quick = "--quick" in argv
    if quick:
        argv = ["--rounds", str(QUICK_ROUNDS), "--budget", str(QUICK_BUDGET_S), *argv]
    comparison = Comparison(
        "everyday",
        {job: _fewer(make) if quick else make for job, make in CASES.items()},
        PEERS,
        {"first_distances": first_distance_rows},
        _add_options,
        _anchor_rows,
        cold=not quick,
    )
    return comparison.main(argv)


def first_distance_rows(modules: list[ModuleType], args: argparse.Namespace) -> list[Row]:
    """Time the first 20 distances of new meshes, a call; hierarchies of peers are built before.

    ``PAIR``: abut builds its hierarchies within the calls. ``PAIR/built``: before.
    """
    rows, ratios = [], {"": [], "/built": []}
    peers = [m for m in modules[1:] if m.NAME in FIRST_PEERS]
    for case in cases.first_distances(args.device):
        for suffix, found in _first_distances(case, peers).items():
            set_ratios(found, no_peers(modules))
            ratios[suffix].append(found[0].ratio_to_best_peer)
            rows += found
    for suffix, found in ratios.items():
        if peers:
            median = Row("first_distances", f"median{suffix}", ours.NAME, args.device)
            median.ratio_to_best_peer, median.rounds = statistics.median(found), len(found)
            rows.append(median)
    return rows


def _first_distances(case: Case, peers: list[ModuleType]) -> dict[str, list[Row]]:
    """Return rows of abut and of the peers, with and without the building of hierarchies."""
    batch = replace(case, question=Question.DISTANCES)
    prepared = [(m, m.prepare(batch, m.SUPPORTS[batch.question][0])) for m in peers]
    timed = [Timed(p.call, p.device, len(case.pose)) for _, p in prepared]
    mine = {suffix: Timed(lambda: None, case.device, len(case.pose)) for suffix in ("", "/built")}
    answer = _new_meshes(case)()
    agrees = [_agreement(answer, t.first(), m) for t, (m, _) in zip(timed, prepared, strict=True)]
    for _ in range(FIRST_ROUNDS):
        for suffix, one in mine.items():
            one.call = _new_meshes(case, built=bool(suffix))
            one.samples.append(one.turn(1)[0] / one.steps * 1e3)
        for one in timed:
            one.samples.append(one.turn(1)[0] / one.steps * 1e3)
    found = {}
    for suffix, one in mine.items():
        rows = [_row(case, suffix, ours, one, "reference")]
        for (module, _), other, agreed in zip(prepared, timed, agrees, strict=True):
            rows.append(_row(case, suffix, module, other, agreed))
        found[suffix] = rows
    return found


def _anchor_rows(case: Case, answer: Any, args: argparse.Namespace) -> list[Row]:
    try:
        return anchor_rows(case, answer, dict(args.anchor))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{case.job} {case.variant}: an anchor failed: {error}")
        return []


def _new_meshes(case: Case, built: bool = False) -> Callable[[], list[float]]:
    """Make meshes that were never asked anything, and the 20 calls."""
    a = abut.Mesh(case.vertices, case.faces, case.device)
    b = abut.Mesh(case.other, case.other_faces, case.device)
    if built:
        bvh_of(a), bvh_of(b)
    return lambda: [abut.distance(a, b, pose_b=pose).value for pose in case.pose]


def _agreement(answer: list[float], theirs: Any, module: ModuleType) -> str:
    surplus, missing = difference(np.array(answer), theirs, getattr(module, "TOLERANCE", None))
    differs = len(surplus) + len(missing) > 0
    return f"+{len(surplus)} -{len(missing)}" if differs else "yes"


def _row(case: Case, suffix: str, module: ModuleType, timed: Timed, agrees: str) -> Row:
    row = Row(case.job, case.variant + suffix, module.NAME, timed.device)
    row.ms_min, row.ms_median, row.rounds = timed.ms_min, timed.ms_median, len(timed.samples)
    row.agrees, row.version = agrees, version_of(module)
    return row


def _fewer(make: Callable[[str], list[Case]]) -> Callable[[str], list[Case]]:
    """The cases of a job without the largest batches."""

    def fewer(device: str) -> list[Case]:
        return [c for c in make(device) if c.pose is None or len(c.pose) <= QUICK_MOST]

    return fewer


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no cold rows")
    what = f"NAME=PROGRAM, with NAME one of {', '.join(QUESTIONS)}"
    parser.add_argument("--anchor", nargs="*", type=_anchor, default=[], help=what)


def _anchor(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if name not in QUESTIONS or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text}: not NAME=PROGRAM of an anchor")
    return name, Path(path)


if __name__ == "__main__":
    sys.exit(main())
