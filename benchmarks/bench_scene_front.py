"""Scenes searched from the roots and from fronts: ``python -m benchmarks.bench_scene_front``.

- ``boxes_10k``: 10,000 boxes of 12 faces; all of them move in every frame (``all``), or a hundred
  (``hundred``), or none (``none``).
- ``balls_146k``: 292 balls of 500 faces, all deformed in every frame, with themselves too.
- ``dancers_76k``: three dancers of 25,472 faces in each other's way, with themselves too.
- ``dragons_8``: eight dragons of 202,520 faces, all of which move.

Poses and vertices lie ready on the device; frames go there and back. Rows are compared before
anything is timed. The answer's size is the number of pairs of nodes in the fronts. On the CPU times
are processor time, of all cores together: both methods keep them busy, whatever else does.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.cases import box, icosphere
from abut.core.timing import recording
from benchmarks import cases
from benchmarks.bench_scene import BALLS, BOXES, random_poses
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, write_csv
from benchmarks.timing import Timed, measure

METHODS = ("bvh", "front")
FRAMES = 8
Animation = tuple[str, abut.Scene, list[Callable[[], None]], bool]  # variant, scene, frames, own


def main(argv: list[str] | None = None) -> int:
    """Compare, time, print, write the CSV. 1 if rows differ."""
    parser = argparse.ArgumentParser(prog="bench_scene_front", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds a method and variant")
    parser.add_argument("--stages", action="store_true", help="also where the time goes")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/scene_front.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    out = args.out or RESULTS / machine_name(args.device) / "scene_front.csv"
    wrong = False
    for job in args.jobs:
        rows = []
        for variant, scene, there, own in JOBS[job](args.device):
            frames = there + there[-2:0:-1]  # no leap from the last frame to the first
            wrong |= _differ(scene, frames, own)
            rows += _timed(job, variant, scene, frames, own, args)
        print_rows(f"{job}, ms a frame", rows)
        write_csv(out, rows)
    return int(wrong)


class ProcessorTimed(Timed):
    """A call timed in processor time on the CPU, in wall time on CUDA."""

    def turn(self, repeats: int) -> tuple[float, Any]:
        """Seconds a call takes, on average, and its last result."""
        if self.device != "cpu":
            return super().turn(repeats)
        start, result = time.process_time(), None
        for _ in range(repeats):
            result = self.call()
        return (time.process_time() - start) / repeats, result


def _timed(
    job: str, variant: str, scene: abut.Scene, frames: list, own: bool, args: argparse.Namespace
) -> list[Row]:
    def play(method: str) -> int:
        for frame in frames:
            frame()
            hits = scene.collide(method=method, self_collisions=own)
        return len(hits)

    timed = {m: ProcessorTimed(partial(play, m), args.device, len(frames)) for m in METHODS}
    measure(list(timed.values()), args.rounds, args.budget)
    if args.stages:
        for method in METHODS:
            with recording() as timer:
                play(method)
            spent = {k: round(v / len(frames), 3) for k, v in timer.milliseconds.items()}
            print(job, variant, method, "time that passed:", spent)
    rows = [
        Row(job, f"{variant}_{m}", "abut", args.device, t.ms_min, t.ms_median, len(t.samples))
        for m, t in timed.items()
    ]
    rows[1].answer_size = scene._fronts.size
    return rows


def _differ(scene: abut.Scene, frames: list, own: bool) -> bool:
    for k, frame in enumerate(frames):
        frame()
        a, b = (scene.collide(method=m, self_collisions=own).numpy() for m in METHODS)
        if not all(np.array_equal(a[name], b[name]) for name in a):
            print(f"ERROR: frame {k}: rows differ")
            return True
    return False


def _moving(scene: abut.Scene, poses: list[np.ndarray]) -> list[Callable[[], None]]:
    ready = [wp.array(p, dtype=wp.mat44d, device=scene.device) for p in poses]
    return [partial(wp.copy, scene.poses, p) for p in ready]


def _bending(scene: abut.Scene, handles: Any, shapes: list) -> list[Callable[[], None]]:
    ready = [wp.array(s.reshape(-1, 3), dtype=wp.vec3d, device=scene.device) for s in shapes]
    return [partial(scene.deform, handles, s) for s in ready]


def boxes(device: str) -> Iterator[Animation]:
    """Boxes as in ``bench_scene``."""
    for variant, count in (("all", BOXES), ("hundred", 100), ("none", 0)):
        rng = np.random.default_rng(0)
        poses = [random_poses(rng, BOXES, 1.35 * BOXES ** (1 / 3))]
        scene = abut.Scene(device)
        scene.add(abut.Mesh(*box(), device=device), poses[0])
        for _ in range(FRAMES - 1):
            poses.append(poses[-1].copy())
            moved = rng.choice(BOXES, count, replace=False)
            poses[-1][moved, :3, 3] += rng.normal(0, 0.02, (count, 3))
        yield variant, scene, _moving(scene, poses), False


def balls(device: str) -> Iterator[Animation]:
    """Balls that swell, shrink and drift."""
    rng, ball = np.random.default_rng(0), icosphere(500)
    centres = rng.uniform(0, 1.75 * BALLS ** (1 / 3), (BALLS, 1, 3))
    scene = abut.Scene(device)
    handles = np.array([scene.add(abut.Mesh(*ball, device=device)) for _ in range(BALLS)])
    speed, phase = rng.normal(0, 0.02, (BALLS, 1, 3)), rng.uniform(0, 6.0, (BALLS, 1, 1))
    sizes = [1 + 0.02 * np.sin(0.3 * k + phase) for k in range(FRAMES)]
    shapes = [ball.vertices * size + centres + k * speed for k, size in enumerate(sizes)]
    yield "refit_self", scene, _bending(scene, handles, shapes), True


def dancers(device: str) -> Iterator[Animation]:
    """Three of them, each a few frames behind the one before."""
    folder = cases.data_folder()
    if folder is None:
        return
    dance = np.load(folder / "anim" / "rumba_dancing_25k_f0-59.npz")
    frames = dance["V"].astype(np.float64)
    step = np.array([0.25 * np.ptp(frames[0], axis=0).max(), 0, 0])
    shapes = [np.stack([frames[k + 7 * n] + n * step for n in range(3)]) for k in range(FRAMES)]
    scene = abut.Scene(device)
    handles = [scene.add(abut.Mesh(shape, dance["F"], device)) for shape in shapes[0]]
    yield "refit_self", scene, _bending(scene, np.array(handles), shapes), True


def dragons(device: str) -> Iterator[Animation]:
    """All drift by a five hundredth of their size a frame."""
    folder = cases.data_folder()
    if folder is None:
        return
    dragon = abut.Mesh.load(folder / "models" / "dragon_202k.ply", device)
    size = float(np.ptp(dragon.vertices.numpy(), axis=0).max())
    rng = np.random.default_rng(0)
    poses = [random_poses(rng, 8, size)]
    for _ in range(FRAMES - 1):
        poses.append(poses[-1].copy())
        poses[-1][:, :3, 3] += rng.normal(0, 0.002 * size, (8, 3))
    scene = abut.Scene(device)
    scene.add(dragon, poses[0])
    yield "drift", scene, _moving(scene, poses), False


JOBS = {"boxes_10k": boxes, "balls_146k": balls, "dancers_76k": dancers, "dragons_8": dragons}

if __name__ == "__main__":
    sys.exit(main())
