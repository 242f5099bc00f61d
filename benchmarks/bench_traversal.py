"""Stage times inside abut: ``python -m benchmarks.bench_traversal --device cpu``.

``abut.core.timing.recording`` times each stage (hierarchy, search, exact, sort); the table shows
the best of several rounds, and ``rest`` is the time outside all stages. On CUDA a recording waits
for the device after every stage, so the stages add up to more than an uninterrupted call.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import warp as wp

import abut
from abut.core.timing import recording
from benchmarks import cases, ours
from benchmarks.cases import Case, Question
from benchmarks.comparison import QUIET
from benchmarks.rows import print_table


def main(argv: list[str] | None = None) -> int:
    """Print a table of stages."""
    parser = argparse.ArgumentParser(prog="bench_traversal", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    _print({name: stages(call, args.rounds) for name, call in _calls(args.device)})
    return 0


def stages(call: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Return the best milliseconds of each stage, of the rest and of the whole call."""
    call()
    best: dict[str, float] = {}
    for _ in range(rounds):
        start = time.perf_counter()
        with recording() as timer:
            call()
        total = (time.perf_counter() - start) * 1e3
        spent = sum(timer.milliseconds.values())
        times = {**timer.milliseconds, "rest": total - spent, "total": total}
        for name, ms in times.items():
            best[name] = min(ms, best.get(name, ms))
    return best


def _calls(device: str) -> list[tuple[str, Callable[[], Any]]]:
    """List the calls of the jobs in all configurations, and self_collide without welding."""
    calls = []
    for case in [*cases.bunny_bunny_all(device), *cases.cloth_ball_self(device)]:
        for choice in ours.SUPPORTS[case.question]:
            prepared = ours.prepare(case, choice)
            if prepared is not None and case.question is not Question.SELF_ANY:
                frames = " (all frames)" if case.question is Question.SELF_REFIT else ""
                calls.append((f"{case.job} {case.variant} {choice}{frames}", prepared.call))
    return calls + _unwelded(cases.cloth_ball_self(device)[0])


def _unwelded(case: Case) -> list[tuple[str, Callable[[], Any]]]:
    mesh = abut.Mesh(case.vertices, case.faces, case.device)
    return [(f"{case.job} static weld=False", lambda: abut.self_collide(mesh, weld=False))]


def _print(found: dict[str, dict[str, float]]) -> None:
    names = list(dict.fromkeys(name for times in found.values() for name in times))
    names.sort(key=("rest", "total").__contains__)
    lines = [
        [call, *(f"{times[name]:.3f}" if name in times else "" for name in names)]
        for call, times in found.items()
    ]
    print_table("best ms", ["call", *names], lines)


if __name__ == "__main__":
    sys.exit(main())
