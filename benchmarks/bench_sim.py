"""Frames of the moving demos: ``python -m benchmarks.bench_sim --device cpu``.

The papers' scenes at the papers' sizes. Each play runs to where things touch; then frames are
timed, stage by stage, and the contacts of the last one are compared with another method's.
A frame is several steps (cloth and leaves 3, fracture 4, balls 2). The fracture breaks in its
first frame, which is timed apart (``broken``).
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import warp as wp

from abut import cases, sim
from abut.core.timing import recording
from benchmarks import cases as data
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, write_csv

JOBS = {
    "cloth_table_20k": (sim.cloth_over_table, 20_000, 12),
    "cloth_ball_20k": (sim.cloth_over_ball, 20_000, 12),
    "leaves_40k": (sim.falling_leaves, 40_000, 10),
    "balls_146k": (sim.swarm_of_balls, 145_920, 12),
    "fracture": (None, 0, 1),
}


def main(argv: list[str] | None = None) -> int:
    """Run, compare, print, write the CSV. 1 if methods differ."""
    parser = argparse.ArgumentParser(prog="bench_sim", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", choices=tuple(JOBS), default=tuple(JOBS))
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--cells", type=int, default=500, help="of the fracture")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/sim.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    out = args.out or RESULTS / machine_name(args.device) / "sim.csv"
    wrong = False
    for job in args.jobs:
        rows = _job(job, args)
        print_rows(f"{job}, ms a frame; answer size: faces", rows)
        write_csv(out, rows)
        wrong |= any(row.agrees == "no" for row in rows)
    print(f"written to {out}")
    return int(wrong)


def _job(job: str, args: argparse.Namespace) -> list[Row]:
    make, faces, warm = JOBS[job]
    variant = ""
    if make is None:
        play, variant = _fracture(args)
    else:
        play = make(faces, args.device)
    broken = [_frame(play) for _ in range(warm)]
    spent = [_frame(play) for _ in range(args.frames)]
    agrees = _agrees(play)
    rows = [_row(job, variant + stage, args, spent, stage, play) for stage in spent[0]]
    if make is None:
        rows += [_row(job, f"{variant}broken_{s}", args, broken, s, play) for s in broken[0]]
    for row in rows:
        row.agrees = agrees
    return rows


def _fracture(args: argparse.Namespace) -> tuple[sim.Fracture, str]:
    """The dragon under the bunny, or what stands in for them."""
    folder = data.data_folder()
    if folder is None:
        return sim.Fracture(cases.breaking(50_000, args.cells), args.device), "procedural_"
    whole, falling = (_upright(folder / "models" / f"{name}.ply") for name in MODELS)
    return sim.Fracture(
        cases.breaking(0, args.cells, whole=whole, falling=falling), args.device
    ), ""


MODELS = ("dragon_202k", "bunny_69k")


def _upright(path: Path) -> cases.Shape:
    import trimesh

    mesh = trimesh.load(path, process=False)
    shape = cases.Shape(np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int32))
    return shape.turned("x", 90)


def _frame(play: sim.Simulation) -> dict[str, float]:
    wp.synchronize()
    start = time.perf_counter()
    with recording() as timer:
        play.advance()
    wp.synchronize()
    whole = (time.perf_counter() - start) * 1e3
    return {**{s: timer.milliseconds.get(s, 0.0) for s in play.stages}, "frame": whole}


def _agrees(play: sim.Simulation) -> str:
    return "yes" if np.array_equal(play.rows("bvh"), play.rows(play.other_method)) else "no"


def _row(
    job: str, variant: str, args: argparse.Namespace, spent: list, stage: str, play: sim.Simulation
) -> Row:
    times = [frame[stage] for frame in spent]
    middle = statistics.median(times)
    row = Row(job, variant.replace(" ", "_"), "abut", args.device, min(times), middle, len(times))
    row.answer_size = play.face_count
    return row


if __name__ == "__main__":
    sys.exit(main())
