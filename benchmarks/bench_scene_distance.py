"""Distances in scenes: ``python -m benchmarks.bench_scene_distance --device cpu``.

Tori of 1,024 faces, all of which move in every frame.

- ``least_<n>_apart``: the nearest two of n tori on a grid, beside the managers of FCL and Coal.
- ``least_<n>_touching``: the same of n tori of which many touch.
- ``nearest_<n>``: the nearest of each of n tori, apart or touching, beside ``abut.distance`` of all
  pairs as one batch.

- ``one_of_200``: the least distance of one torus, which moves, to 200 others.

Poses lie ready on the device. Answers are checked before anything is timed.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.cases import torus
from benchmarks.bench_scene import random_poses
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.peers import distance_managers
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

FRAMES = 4
STEPS = 32  # of one torus among others
ROOM = 2.8  # of a torus apart, whose largest extent is 2.7
CROWDED = 2.0  # of a torus that may touch
Calls = dict[str, Callable[[], list]]


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="bench_scene_distance", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds a library")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/scene_distance.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    rows, wrong = [], False
    for job, variant, calls in jobs(args):
        answers = {name: np.concatenate(call()) for name, call in calls.items()}
        agree = all(np.allclose(answers["abut"], x, rtol=1e-6, atol=1e-9) for x in answers.values())
        if not agree:
            print(f"ERROR: {job}/{variant}: answers differ")
            wrong = True
        found: list[Row] = []
        each = STEPS if job.startswith("one") else FRAMES
        timed = {name: Timed(call, _device(name, args), each) for name, call in calls.items()}
        measure(list(timed.values()), args.rounds, args.budget)
        for name, one in timed.items():
            row = Row(job, variant, name, one.device, one.ms_min, one.ms_median, len(one.samples))
            row.answer_size = len(answers[name]) // each
            found.append(row)
        set_ratios(found, {"abut"})
        print_rows(job, found)
        rows += found
    out = args.out or RESULTS / machine_name(args.device) / "scene_distance.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


def jobs(args: argparse.Namespace) -> Iterator[tuple[str, str, Calls]]:
    """(job, variant, calls that return an array for each frame)."""
    shape = torus(32, 16)
    for count in (20, 200, 1000):
        for variant, frames in _frames(count).items():
            scene = abut.Scene(args.device)
            scene.add(abut.Mesh(*shape, device=args.device), frames[0])
            calls: Calls = {"abut": _least_call(scene, frames)}
            if not args.no_peers:
                peers = distance_managers.manager_calls(*shape, frames)
                calls |= {name: _as_arrays(call) for name, call in peers.items()}
            yield f"least_{count}", variant, calls
            if count <= 200:
                pairs = {"all pairs": _batch_call(scene, frames)}
                yield f"nearest_{count}", variant, {"abut": _nearest_call(scene, frames)} | pairs
    for variant, extent in (("dense", 14.0), ("sparse", 30.0)):
        rng = np.random.default_rng(0)
        others, steps = random_poses(rng, 200, extent), random_poses(rng, STEPS, extent)
        asks = {"abut": _one_call(shape, others, args.device)}
        if not args.no_peers:
            asks |= distance_managers.one_against(*shape, others)
        yield "one_of_200", variant, {name: _at_each(ask, steps) for name, ask in asks.items()}


def _one_call(shape: Any, others: np.ndarray, device: str) -> Callable[[np.ndarray], float]:
    mesh, scene = abut.Mesh(*shape, device=device), abut.Scene(device)
    scene.add(mesh, others)
    row = scene.add(mesh)

    def least(pose: np.ndarray) -> float:
        scene.move(row, pose)
        return scene.least_distance(which=row).value

    return least


def _at_each(ask: Callable[[np.ndarray], float], steps: np.ndarray) -> Callable[[], list]:
    return lambda: [np.array([ask(pose)]) for pose in steps]


def _device(name: str, args: argparse.Namespace) -> str:
    return args.device if name in ("abut", "all pairs") else "cpu"


def _frames(count: int) -> dict[str, list[np.ndarray]]:
    """Poses of tori apart and touching, in every frame."""
    rng = np.random.default_rng(0)
    touching = random_poses(rng, count, CROWDED * count ** (1 / 3))
    apart = random_poses(rng, count, 0.0)
    side = int(np.ceil(count ** (1 / 3)))
    apart[:, :3, 3] = ROOM * np.stack(np.unravel_index(np.arange(count), (side,) * 3), axis=1)
    frames = {"apart": [], "touching": []}
    for _ in range(FRAMES):
        for name, poses in {"apart": apart, "touching": touching}.items():
            moved = poses.copy()
            moved[:, :3, 3] += rng.uniform(-0.02, 0.02, (count, 3))
            frames[name].append(moved)
    return frames


def _as_arrays(call: Callable[[], list[float]]) -> Callable[[], list]:
    return lambda: [np.array([x]) for x in call()]


def _each_frame(
    scene: abut.Scene, frames: list[np.ndarray], ask: Callable[[], np.ndarray]
) -> Callable[[], list]:
    ready = [wp.array(poses, dtype=wp.mat44d, device=scene.device) for poses in frames]

    def run() -> list[np.ndarray]:
        found = []
        for poses in ready:
            wp.copy(scene.poses, poses)
            found.append(ask())
        return found

    return run


def _least_call(scene: abut.Scene, frames: list[np.ndarray]) -> Callable[[], list]:
    return _each_frame(scene, frames, lambda: np.array([scene.least_distance().value]))


def _nearest_call(scene: abut.Scene, frames: list[np.ndarray]) -> Callable[[], list]:
    def ask() -> np.ndarray:
        return scene.distance().value.numpy()

    return _each_frame(scene, frames, ask)


def _batch_call(scene: abut.Scene, frames: list[np.ndarray]) -> Callable[[], list]:
    mesh, count = scene.mesh(0), len(scene)
    low, high = np.triu_indices(count, 1)

    def run() -> list[np.ndarray]:
        found = []
        for poses in frames:
            near = abut.distance(mesh, mesh, pose_a=poses[low], pose_b=poses[high])
            values = np.full((count, count), np.inf)
            values[low, high] = values[high, low] = near.value.numpy()
            found.append(values.min(axis=1))
        return found

    return run


if __name__ == "__main__":
    raise SystemExit(main())
