"""Oriented boxes in continuous queries: ``python -m benchmarks.bench_swept_obb --device cpu``.

Candidates and all impacts of steps of cloth, of dancers, and of turning models: by abut's own
walks through axis-aligned boxes, by a walk of each leaf through such boxes, and by the same walk
through oriented boxes too. All must give the same impacts. ``stages`` tells where the time goes.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import warp as wp

import abut
from abut.core.runtime import recording
from abut.query.ccd import plan_of
from abut.query.sweep_plan import SweepPlan
from benchmarks import bench_ccd, cases
from benchmarks.competition import QUIET, RESULTS
from benchmarks.machine import machine_name
from benchmarks.rows import Row, print_rows, write_csv
from benchmarks.swept_obb import AabbPlan, ObbPlan
from benchmarks.timing import Timed, measure

PLANS = {"aabb": SweepPlan, "aabb, leaf by leaf": AabbPlan, "obb, leaf by leaf": ObbPlan}
Moves = tuple[abut.Motion, ...]


def main(argv: list[str] | None = None) -> int:
    """Compare, time, print, write the CSV. 1 if answers differ."""
    parser = argparse.ArgumentParser(prog="bench_swept_obb", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds a way and case")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/swept_obb.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder = cases.data_folder()
    if folder is None:
        print("no data folder (ABUT_DATA): there is nothing to measure")
        return 0
    out = args.out or RESULTS / machine_name(args.device) / "swept_obb.csv"
    wrong = False
    for name, moves in steps(folder, args.device):
        rows, agree = _case(name, moves, args)
        print_rows(name, rows)
        write_csv(out, rows)
        wrong |= not agree
    return int(wrong)


def steps(folder: Path, device: str) -> Iterator[tuple[str, Moves]]:
    """Named motions."""
    for job in bench_ccd.STEPS:
        step = bench_ccd.load(folder / "ccd_frames", job, device)
        yield job, (abut.Motion(abut.Mesh(step.start, step.faces, device), step.end),)
    dance = np.load(folder / "anim" / "rumba_dancing_25k_f0-59.npz")
    start, end = (dance["V"][k].astype(np.float64) for k in (20, 22))
    yield "rumba", (abut.Motion(abut.Mesh(start, dance["F"], device), end),)
    reach = np.ptp(start, axis=0)
    two = [abut.Mesh(start + shift * reach, dance["F"], device) for shift in (0.0, 0.15)]
    ends = end, end - 0.05 * reach + 0.15 * reach
    yield "rumba_pair", tuple(abut.Motion(m, e) for m, e in zip(two, ends, strict=True))
    bunny = abut.Mesh.load(folder / "models" / "bunny_69k.ply", device)
    centre = bunny.bounds.mean(axis=0)
    for name, angle in (("bunny_turn_small", 0.02), ("bunny_turn", 0.12)):
        moved = _turn(bunny.points.numpy() - centre, angle) + centre
        half = (bunny.bounds[1] - bunny.bounds[0]) * [0.5, 0.0, 0.0]
        a, b = (abut.Mesh(bunny.points.numpy() + s * half, bunny.faces, device) for s in (0, 1))
        yield name, (abut.Motion(a, moved), abut.Motion(b, b.vertices))


def _turn(points: np.ndarray, angle: float) -> np.ndarray:
    cosine, sine = np.cos(angle), np.sin(angle)
    return points @ np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1.0]])


def _case(name: str, moves: Moves, args: argparse.Namespace) -> tuple[list[Row], bool]:
    """Rows of a case, and whether all ways found the same."""
    calls = {way: _impacts(kind, moves) for way, kind in PLANS.items()}
    listing = {way: _candidates(kind, moves) for way, kind in PLANS.items()}
    found = [call() for call in calls.values()]
    agree = len(set(found)) == 1
    rows = []
    for what, chosen in (("candidates", listing), ("impacts", calls)):
        timed = [Timed(call, args.device) for call in chosen.values()]
        sizes = [one.first() for one in timed]
        measure(timed, args.rounds, args.budget)
        for way, one, size in zip(PLANS, timed, sizes, strict=True):
            row = Row(name, f"{what}: {way}", "abut", args.device, one.ms_min, one.ms_median)
            row.rounds, row.answer_size = len(one.samples), size
            row.agrees = "yes" if agree else "NO"
            rows.append(row)
    for way, call in calls.items():
        with recording() as timer:
            call()
        print(way, ", ".join(f"{n} {ms:.3f}" for n, ms in timer.milliseconds.items()))
    return rows, agree


def _plan(kind: type[SweepPlan], moves: Moves) -> SweepPlan:
    plan = plan_of(*moves)
    names = ("device", "meshes", "pieces", "relation", "layout", "gap", "tolerance")
    return kind(*(getattr(plan, name) for name in names))


def _candidates(kind: type[SweepPlan], moves: Moves) -> Callable[[], int]:
    return lambda: _plan(kind, moves).candidate_count()


def _impacts(kind: type[SweepPlan], moves: Moves) -> Callable[[], int]:
    return lambda: _plan(kind, moves).run()[0]


if __name__ == "__main__":
    sys.exit(main())
