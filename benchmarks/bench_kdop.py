"""DOPs against boxes on two bunnies: ``python -m benchmarks.bench_kdop --device cuda:0``.

Every way gives the same pairs, which is checked first. All take turns in every round. ``ratio`` is
the best time over that of axis-aligned boxes; ``search`` the time of the walk alone.
"""

import argparse
import sys
from typing import Any

import numpy as np
import warp as wp

import abut
from benchmarks import cases
from benchmarks.bench_traversal import stages
from benchmarks.comparison import QUIET
from benchmarks.rows import print_table
from benchmarks.timing import Timed, measure

WAYS: dict[str, dict[str, Any]] = {
    "aabb": {},
    "obb": {"bound": "obb"},
    "kdop float32": {"bound": "kdop"},
    "kdop 18 bit": {"method": "kdop", "width": 18},
    "kdop 35 bit": {"method": "kdop", "width": 35},
}


def main(argv: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="bench_kdop", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds for a way and case")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    lines = []
    for case in [*cases.bunny_bunny_all(args.device), *cases.cow_cow_10k_poses(args.device)]:
        lines += _lines(case, args.rounds, args.budget)
    print_table("ms", ["case", "way", "best", "median", "search", "ratio"], lines, ruled=True)
    return 0


def _lines(case: cases.Case, rounds: int, budget: float) -> list[list[str]]:
    mesh = abut.Mesh(case.vertices, case.faces, case.device)
    other = mesh if case.other is None else abut.Mesh(case.other, case.faces, case.device)
    first = case.question is cases.Question.POSES
    calls = {
        name: lambda way=way: abut.collide(mesh, other, pose_b=case.pose, first=first, **way)
        for name, way in WAYS.items()
    }
    answers = {name: call() for name, call in calls.items()}
    for name, answer in answers.items():
        same = (answer.colliding if first else answer.pairs, answers["aabb"].colliding if first
                else answers["aabb"].pairs)  # fmt: skip
        assert np.array_equal(same[0].numpy(), same[1].numpy()), f"{name} differs"
    timed = {name: Timed(call, case.device) for name, call in calls.items()}
    measure(list(timed.values()), rounds, budget)
    searches = {name: stages(call, 5).get("search", 0.0) for name, call in calls.items()}
    base = timed["aabb"].ms_min
    return [
        [f"{case.job} {case.variant}", name, f"{one.ms_min:.3f}", f"{one.ms_median:.3f}",
         f"{searches[name]:.3f}", f"{one.ms_min / base:.2f}"]
        for name, one in timed.items()
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
