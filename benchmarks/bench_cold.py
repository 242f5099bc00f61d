"""First calls of new meshes, abut beside FCL and Coal: ``python -m benchmarks.bench_cold``.

Every pair of models gets new meshes of abut in each round; hierarchies of the peers are built
before. Times are those of the first 1, 3 and 20 calls together, each at another pose; of abut the
least of all rounds, call by call. Answers are compared.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import warp as wp

import abut
from benchmarks import ours, peers
from benchmarks.cases import Case, Question, _load, _unit, data_folder, random_poses
from benchmarks.comparison import RESULTS
from benchmarks.peers import version_of
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv

PEERS = ("fcl", "coal")
CALLS = (1, 3, 20)
REACH = 1.0  # extents by which the second model is shifted at most
TOLERANCE = 1e-5  # of distances; models have size 1
WARM_UP = 5120  # faces of a mesh that loads all kernels

Ask = Callable[[abut.Mesh, abut.Mesh, np.ndarray], float]
Model = tuple[np.ndarray, np.ndarray]
QUESTIONS: dict[str, tuple[Question, Ask]] = {
    "distance": (Question.DISTANCES, lambda a, b, p: abut.distance(a, b, pose_b=p).value),
    "first": (Question.POSES, lambda a, b, p: abut.collide(a, b, pose_b=p, first=True).colliding),
}


def main(argv: list[str] | None = None) -> int:
    """Time the first calls, print medians over all pairs, write the CSV."""
    parser = argparse.ArgumentParser(prog="bench_cold", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--models", nargs="*", help="names; default: all")
    parser.add_argument("--questions", nargs="*", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="default: results/<machine>/cold.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = wp.LOG_WARNING
    modules, missing = peers.installed(PEERS)
    if missing:
        print(f"not installed: {', '.join(missing)}")
    models = _models(args.models)
    rows = []
    for name in args.questions:
        found = _question_rows(name, models, modules, args.device, args.rounds)
        print_rows(f"cold_{name}", found[-len(CALLS) :])
        rows += found
    out = args.out or RESULTS / machine_name(args.device) / "cold.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return 0


def _models(names: Sequence[str] | None) -> dict[str, Model]:
    folder = data_folder()
    assert folder is not None, "set ABUT_DATA to the folder of models"
    files = sorted((folder / "models").glob("*.ply"))
    loaded = {file.stem: _load(file) for file in files if not names or file.stem in names}
    return {name: (_unit(vertices), faces) for name, (vertices, faces) in loaded.items()}


def _question_rows(
    name: str, models: dict[str, Model], modules: list[ModuleType], device: str, rounds: int
) -> list[Row]:
    """Return the rows of all pairs, then one row for each number of calls with the median ratio."""
    question, ask = QUESTIONS[name]
    _warm_up(ask, device)
    rows: list[Row] = []
    ratios: dict[int, list[float]] = {count: [] for count in CALLS}
    for pair in combinations(models, 2):
        first, second = (models[model] for model in pair)
        extras = {"other": second[0], "other_faces": second[1]}
        case = Case(f"cold_{name}", "_".join(pair), question, device, *first, **extras)
        case = replace(case, pose=random_poses(second[0], max(CALLS), REACH))
        times, answers = _our_times(ask, case, rounds)
        timed = {ours: [float(times[:count].sum()) for count in CALLS]}
        for module in modules:
            timed[module], theirs = _peer_times(module, case, rounds)
            _check(case, answers, theirs, module)
        for k, count in enumerate(CALLS):
            found = [_row(case, count, module, times[k]) for module, times in timed.items()]
            set_ratios(found, {ours.NAME})
            ratios[count].append(found[0].ratio_to_best_peer)
            rows += found
    for count, found in ratios.items():
        median = Row(f"cold_{name}", f"median_first_{count}", ours.NAME, device)
        median.ratio_to_best_peer, median.rounds = statistics.median(found), len(found)
        rows.append(median)
    return rows


def _warm_up(ask: Ask, device: str) -> None:
    """Load kernels by asking about other meshes, in contact and apart."""
    ball = abut.cases.icosphere(WARM_UP)
    for pose in random_poses(ball.vertices, 40, 2.0):
        ask(abut.Mesh(*ball, device), abut.Mesh(*ball, device), pose)


def _our_times(ask: Ask, case: Case, rounds: int) -> tuple[np.ndarray, list[float]]:
    """Return the least seconds of each call over rounds with new meshes, and the answers."""
    best, answers = np.full(len(case.pose), np.inf), []
    for _ in range(rounds):
        a = abut.Mesh(case.vertices, case.faces, case.device)
        b = abut.Mesh(case.other, case.other_faces, case.device)
        seconds, answers = [], []
        for pose in case.pose:
            start = time.perf_counter()
            answers.append(ask(a, b, pose))
            seconds.append(time.perf_counter() - start)
        best = np.minimum(best, seconds)
    return best, answers


def _peer_times(module: ModuleType, case: Case, rounds: int) -> tuple[list[float], np.ndarray]:
    """Return the least seconds of each number of calls, and the answers of all."""
    times = []
    for count in CALLS:
        fewer = replace(case, pose=case.pose[:count])
        prepared = module.prepare(fewer, module.SUPPORTS[case.question][0])
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            result = module.run(prepared)
            seconds.append(time.perf_counter() - start)
        times.append(min(seconds))
    return times, np.asarray(module.answer(result))


def _check(case: Case, answers: list[float], theirs: np.ndarray, module: ModuleType) -> None:
    """Report poses for which a peer's answer differs; contacts of peers are not exact."""
    slack = TOLERANCE if case.question is Question.DISTANCES else 0.0
    differing = np.flatnonzero(~np.isclose(answers, theirs, rtol=0.0, atol=slack))
    if len(differing):
        print(f"{case.job} {case.variant}: {module.NAME} differs at {len(differing)} poses")


def _row(case: Case, count: int, module: ModuleType, seconds: float) -> Row:
    row = Row(case.job, f"{case.variant}_first_{count}", module.NAME, case.device)
    row.ms_min, row.version = seconds * 1e3, version_of(module)
    return row


if __name__ == "__main__":
    sys.exit(main())
