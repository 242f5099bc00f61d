"""Frames of a dancer against herself: ``python -m benchmarks.bench_front --device cpu``.

60 frames of 25,472 faces, hierarchies refitted, each searched from the root and from the front
where the last search stopped. Vertices lie ready on the device. Rows are compared before anything
is timed.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
import warp as wp

import abut
from abut.runtime import recording
from benchmarks import cases
from benchmarks.competition import QUIET, RESULTS
from benchmarks.machine import machine_name
from benchmarks.rows import Row, print_rows, write_csv
from benchmarks.timing import Timed, measure

METHODS = ("bvh", "front")


def main(argv: list[str] | None = None) -> int:
    """Compare, time, print, write the CSV. 1 if rows differ."""
    parser = argparse.ArgumentParser(prog="bench_front", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--budget", type=float, default=15.0, help="seconds a method")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/front.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder = cases.data_folder()
    if folder is None:
        print("no data folder (ABUT_DATA): there is nothing to measure")
        return 0
    dance = np.load(folder / "anim" / "rumba_dancing_25k_f0-59.npz")
    frames = [wp.array(v, dtype=wp.vec3f, device=args.device) for v in dance["V"]]
    trackers = {
        method: abut.Tracker(abut.Mesh(frames[0], dance["F"], args.device), method=method)
        for method in METHODS
    }
    wrong = _differ(trackers, frames)
    timed = [
        Timed(partial(_follow, tracker, frames), args.device, len(frames))
        for tracker in trackers.values()
    ]
    measure(timed, args.rounds, args.budget)
    rows = [
        Row("rumba_self", method, "abut", args.device, one.ms_min, one.ms_median, len(one.samples))
        for method, one in zip(METHODS, timed, strict=True)
    ]
    rows[1].answer_size = trackers["front"].front_size
    print_rows("rumba_self, ms a frame; answer size: pairs in the front", rows)
    _print_stages(trackers, frames)
    write_csv(args.out or RESULTS / machine_name(args.device) / "front.csv", rows)
    return int(wrong)


def _follow(tracker: abut.Tracker, frames: list[wp.array]) -> None:
    """All frames; the contacts of one are let go before those after the next, as a program would.

    Who keeps the contacts of all frames keeps all shapes too, and launches are recorded anew.
    """
    for vertices in frames:
        hits = tracker.step(vertices)
    assert hits


def _differ(trackers: dict[str, abut.Tracker], frames: list[wp.array]) -> bool:
    for k, vertices in enumerate(frames):
        found = [tracker.step(vertices).pairs.numpy() for tracker in trackers.values()]
        if not np.array_equal(*found):
            print(f"ERROR: frame {k}: rows differ")
            return True
    return False


def _print_stages(trackers: dict[str, abut.Tracker], frames: list[wp.array]) -> None:
    for method, tracker in trackers.items():
        with recording() as timer:
            for vertices in frames:
                tracker.step(vertices)
        spent = {name: ms / len(frames) for name, ms in timer.milliseconds.items()}
        print(method, ", ".join(f"{name} {ms:.3f}" for name, ms in spent.items()))


if __name__ == "__main__":
    sys.exit(main())
