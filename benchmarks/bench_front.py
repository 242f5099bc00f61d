"""Self-collision of a dancer's frames: ``python -m benchmarks.bench_front --device cpu``.

25,472 faces: the contacts of each of 60 frames, and the impacts on the way to each of 16; there
and back.
Hierarchies are refitted; each search starts at the root, or at the front where the last one
stopped. Vertices lie ready on the device. Rows are compared before anything is timed.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
import warp as wp

import abut
from abut.core.timing import recording
from benchmarks import cases
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, write_csv
from benchmarks.timing import Timed, measure

METHODS = ("bvh", "front")
JOBS = {"rumba_self": abut.Tracker.step, "rumba_self_ccd": abut.Tracker.advance}
MOST_FRAMES = {"rumba_self": 60, "rumba_self_ccd": 16}


def main(argv: list[str] | None = None) -> int:
    """Compare, time, print, write the CSV. 1 if rows differ."""
    parser = argparse.ArgumentParser(prog="bench_front", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", choices=tuple(JOBS), default=tuple(JOBS))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--budget", type=float, default=15.0, help="seconds a method and job")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/front.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder = cases.data_folder()
    if folder is None:
        print("no data folder (ABUT_DATA): there is nothing to measure")
        return 0
    dance = np.load(folder / "anim" / "rumba_dancing_25k_f0-59.npz")
    frames = [wp.array(v, dtype=wp.vec3f, device=args.device) for v in dance["V"]]
    wrong = [_job(job, frames, dance["F"], args) for job in args.jobs]
    return int(any(wrong))


def _job(job: str, frames: list[wp.array], faces: np.ndarray, args: argparse.Namespace) -> bool:
    """Rows of one job; whether the methods differ."""
    frames = frames[: MOST_FRAMES[job]]
    frames += frames[-2:0:-1]  # there and back: no leap from the last frame to the first
    trackers = {
        method: abut.Tracker(abut.Mesh(frames[0], faces, args.device), method=method)
        for method in METHODS
    }
    calls = {
        method: partial(_follow, partial(JOBS[job], tracker), frames)
        for method, tracker in trackers.items()
    }
    wrong = _differ([partial(JOBS[job], tracker) for tracker in trackers.values()], frames)
    timed = [Timed(call, args.device, len(frames)) for call in calls.values()]
    measure(timed, args.rounds, args.budget)
    rows = [
        Row(job, method, "abut", args.device, one.ms_min, one.ms_median, len(one.samples))
        for method, one in zip(METHODS, timed, strict=True)
    ]
    rows[1].answer_size = trackers["front"].front_size
    print_rows(f"{job}, ms a frame; answer size: pairs in the front", rows)
    _print_stages(calls, len(frames))
    write_csv(args.out or RESULTS / machine_name(args.device) / "front.csv", rows)
    return wrong


def _follow(step: partial, frames: list[wp.array]) -> None:
    """Step through all frames and release each answer when the next arrives.

    A program that keeps all answers keeps all shapes, and launches are recorded again.
    """
    for vertices in frames:
        hits = step(vertices)
    del hits


def _differ(steps: list[partial], frames: list[wp.array]) -> bool:
    for k, vertices in enumerate(frames):
        found = [step(vertices).numpy() for step in steps]
        if not all(np.array_equal(found[0][name], found[1][name]) for name in found[0]):
            print(f"ERROR: frame {k}: rows differ")
            return True
    return False


def _print_stages(calls: dict[str, partial], frame_count: int) -> None:
    for method, call in calls.items():
        with recording() as timer:
            call()
        spent = {name: ms / frame_count for name, ms in timer.milliseconds.items()}
        print(method, ", ".join(f"{name} {ms:.3f}" for name, ms in spent.items()))


if __name__ == "__main__":
    sys.exit(main())
