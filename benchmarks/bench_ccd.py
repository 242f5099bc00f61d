"""Continuous collision beside IPC Toolkit: ``python -m benchmarks.bench_ccd --device cpu``.

One step of two simulations of cloth and of a small folded sheet, each mesh against itself: the
candidates of the broad phase, the largest step free of contact, and every impact. Answers are
checked before anything is timed: against the published lists of impacts, and candidates and steps
against each other.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut import cases as shapes
from abut.query.ccd import plan_of
from benchmarks import cases
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

STEPS = {
    "cloth_ball": ("cloth-ball", "cloth_ball92.ply", "cloth_ball93.ply"),
    "cloth_funnel": ("cloth-funnel", "227.ply", "228.ply"),
}
FOLDED = {"folded_1k_apart": 0.01, "folded_1k_near": 0.2, "folded_1k_meets": 1.0}  # of the way
JOBS = (*STEPS, *FOLDED)
QUESTIONS = ("candidates", "step", "impacts")
Call = Callable[[], Any]


@dataclass
class Step:
    """A mesh in motion, and where it lies."""

    name: str
    start: np.ndarray
    end: np.ndarray
    faces: np.ndarray
    device: str


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if an answer is wrong."""
    args = _arguments(argv)
    wp.config.log_level = QUIET
    folder = cases.data_folder()
    if folder is None:
        print("no data folder (ABUT_DATA): there is nothing to measure")
        return 0
    rows, wrong = [], False
    for job in args.jobs:
        if job in FOLDED:
            step = folded(job, args.device)
        else:
            step = load(folder / "ccd_frames", job, args.device)
        found, faults = _job(step, args)
        for fault in faults:
            print(f"ERROR: {job}: {fault}")
        print_rows(job, found)
        rows += found
        wrong |= bool(faults)
    out = args.out or RESULTS / machine_name(args.device) / "ccd.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


def load(folder: Path, job: str, device: str) -> Step:
    """The two frames of a step."""
    import trimesh

    name, *files = STEPS[job]
    frames = [trimesh.load(folder / name / file, process=False) for file in files]
    points = [np.array(frame.vertices, dtype=np.float32).astype(np.float64) for frame in frames]
    return Step(job, *points, np.array(frames[0].faces, dtype=np.int32), device)


def folded(job: str, device: str) -> Step:
    """A folded sheet of 1,012 faces whose halves close, a share of the way."""
    sheet = shapes.plane(23, 24, size=1.0)
    u, v = (sheet.vertices[:, :2] - sheet.vertices[:, :2].min(axis=0)).T
    upper = u > 0.5
    bends = 0.02 * np.sin(9.0 * v + 3.0 * u)
    x = np.where(upper, 1.0 - u, u) + 0.02 * np.sin(5.0 * v)
    start = np.stack([x, v, np.where(upper, 0.05, 0.0) + bends], axis=1)
    way = 0.004 * np.random.default_rng(0).normal(size=start.shape)
    way[:, 2] -= np.where(start[:, 2] > 0.025, 0.05, 0.0)
    return Step(job, start, start + FOLDED[job] * way, sheet.faces, device)


def _job(step: Step, args: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Rows of all questions, and what was wrong."""
    mine = ours(step)
    theirs = ipctk_calls(step) if args.peers else {}
    rows, faults = [], [] if step.name in FOLDED else check_impacts(step, args)
    for question in QUESTIONS:
        entries = [("abut", step.device, mine[question])]
        entries += [("ipctk", "cpu", theirs[question])] if question in theirs else []
        timed = [Timed(call, device) for _, device, call in entries]
        answers = [one.first() for one in timed]
        faults += compare(question, answers)
        measure(timed, args.rounds, args.budget)
        found = [
            Row(step.name, question, name, device, one.ms_min, one.ms_median, len(one.samples))
            for (name, device, _), one in zip(entries, timed, strict=True)
        ]
        for row, answer in zip(found, answers, strict=True):
            row.answer_size = answer
        set_ratios(found, {"abut"})
        rows += found
    return rows, faults


def ours(step: Step) -> dict[str, Call]:
    """abut's calls; vertices of both frames lie ready on the device."""
    mesh = abut.Mesh(step.start, step.faces, device=step.device)
    end = wp.array(step.end, dtype=wp.vec3d, device=step.device)
    return {
        "candidates": lambda: plan_of(abut.Motion(mesh, end)).candidate_count(),
        "step": lambda: abut.ccd(abut.Motion(mesh, end), first=True).safe_step,
        "impacts": lambda: len(abut.ccd(abut.Motion(mesh, end))),
    }


def ipctk_calls(step: Step) -> dict[str, Call]:
    """IPC Toolkit's calls; of its broad phases LBVH was the fastest. It does not list impacts."""
    try:
        import ipctk
    except ImportError:
        print("ipctk: not installed, skipped")
        return {}
    start, end = np.asfortranarray(step.start), np.asfortranarray(step.end)
    mesh = ipctk.CollisionMesh(start, ipctk.edges(step.faces), step.faces)

    def candidates() -> int:
        found = ipctk.Candidates()
        found.build(mesh, start, end, 0.0, ipctk.LBVH())
        return len(found)

    def largest_step() -> float:
        return ipctk.compute_collision_free_stepsize(mesh, start, end, 0.0, ipctk.LBVH())

    return {"candidates": candidates, "step": largest_step}


def check_impacts(step: Step, args: argparse.Namespace) -> list[str]:
    """Every published impact is found; surplus ones are only told."""
    folder = cases.data_folder()
    assert folder is not None
    truth = np.load(folder / "ccd_frames" / STEPS[step.name][0] / "truth.npz")
    mesh = abut.Mesh(step.start, step.faces, device=step.device)
    hits = abut.ccd(abut.Motion(mesh, step.end)).numpy()
    edges = mesh.edges.numpy().astype(np.int64) @ [mesh.vertex_count, 1]
    listed = np.sort(truth["E"].astype(np.int64), axis=1) @ [mesh.vertex_count, 1]
    numbers = np.searchsorted(edges, listed)
    faults = []
    for kind, key in enumerate(("vf", "ee")):
        rows = truth[key] if kind == 0 else np.sort(numbers[truth[key]], axis=1)
        known = set(map(tuple, rows[truth[f"{key}_collides"]].tolist()))
        found = set(map(tuple, hits["features"][hits["kind"] == kind].tolist()))
        print(f"{step.name} {key}: {len(known)} published, surplus {len(found - known)}")
        if known - found:
            faults.append(f"{len(known - found)} published impacts of kind {key} are missing")
    return faults


def compare(question: str, answers: list[Any]) -> list[str]:
    """abut may list more candidates, boxes being rounded; its step is not the shorter one."""
    if len(answers) < 2:
        return []
    mine, theirs = answers
    if question == "candidates" and mine < theirs:
        return [f"{mine} candidates, IPC Toolkit has {theirs}"]
    if question == "step" and mine < theirs:
        return [f"step {mine}, IPC Toolkit has {theirs}"]
    return []


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench_ccd", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds a library and question")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/ccd.csv")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
