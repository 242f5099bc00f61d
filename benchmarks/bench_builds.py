"""Everyday queries of one build of abut: ``python -m benchmarks.bench_builds --device cpu``.

Compares two checkouts: run it in turn with ``PYTHONPATH=CHECKOUT/src`` set to either, as it uses
public names alone. Meshes are scaled to unit size; poses are random and the same in every run.
``--jobs`` takes parts of names. Append ``--out FILE`` to collect rows (job, version, ms).
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut import cases
from benchmarks.cases import data_folder
from benchmarks.timing import Timed, measure

WARM_UP_S = 0.5
MODELS = {"cow": "cow_5k", "bunny": "bunny_69k"}
MODELS |= {"dragon": "dragon_202k", "armadillo": "armadillo_86k"}


def main(argv: list[str] | None = None) -> int:
    """Time the jobs and print them."""
    parser = argparse.ArgumentParser(prog="bench_builds", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, help="CSV file to append to")
    args = parser.parse_args(argv)
    wp.config.log_level = wp.LOG_WARNING
    rows = []
    for name, call in jobs(args.device).items():
        if any(part in name for part in args.jobs):
            timed = Timed(call, args.device)
            stop = time.perf_counter() + WARM_UP_S
            while time.perf_counter() < stop:  # hierarchies improve with use
                timed.first()
            measure([timed], args.rounds, 3.0)
            rows.append((name, abut.__version__, f"{timed.ms_min:.4f}"))
            print(f"{name:40s} {timed.ms_min:10.4f}", flush=True)
    if args.out is not None:
        with args.out.open("a", newline="") as file:
            csv.writer(file).writerows(rows)
    return 0


def jobs(device: str) -> dict[str, Callable[[], Any]]:
    """Return what to time, by name."""
    mesh = {name: _model(file, device) for name, file in MODELS.items()}
    cows = mesh["cow"], _model(MODELS["cow"], device)
    bunnies = mesh["bunny"], _model(MODELS["bunny"], device)
    large = mesh["dragon"], mesh["armadillo"]
    near, far, count = _poses(1, 0.3)[0], np.eye(4), 1000 if device == "cpu" else 10000
    far[0, 3] = 5.0
    many = _poses(count, 0.8)
    some = many[: count // 10]
    boxes, pair = _boxes(2 * count if device == "cpu" else count, device), abut.Scene(device)
    for cow in cows:
        pair.add(cow)
    both = np.stack([np.tile(np.eye(4), (count, 1, 1)), many], axis=1)
    return {
        "bunnies, all pairs": lambda: abut.collide(*bunnies, pose_b=near).pairs,
        "bunnies, first": lambda: abut.collide(*bunnies, pose_b=near, first=True).colliding,
        "cows apart, first": lambda: abut.collide(*cows, pose_b=far, first=True).colliding,
        "cows, all pairs": lambda: abut.collide(*cows, pose_b=near).pairs,
        "cows, all pairs, obb": lambda: abut.collide(*cows, pose_b=near, bound="obb").pairs,
        "cows, all pairs, kdop": lambda: abut.collide(*cows, pose_b=near, method="kdop").pairs,
        f"cows, {count} poses, first": lambda: abut.collide(*cows, pose_b=many, first=True).pairs,
        f"large, {count} poses, first": lambda: abut.collide(*large, pose_b=many, first=True).pairs,
        f"cows, {count // 10} poses, all pairs": lambda: abut.collide(*cows, pose_b=some).pairs,
        "armadillo, self": lambda: abut.self_collide(mesh["armadillo"]).pairs,
        "bunnies, distance": lambda: abut.distance(*bunnies, pose_b=far).value,
        f"cows, {count // 10} poses, distance": lambda: abut.distance(*cows, pose_b=some).value,
        "bunnies, within": lambda: abut.within(*bunnies, 0.01, pose_b=near).pairs,
        "boxes, contacts": lambda: boxes.collide().pairs,
        "boxes, within": lambda: boxes.within(0.05).pairs,
        "boxes, distances": lambda: boxes.distance(upper_bound=0.3),
        f"cows, {count} environments": lambda: pair.colliding(poses=both),
    }


def _model(name: str, device: str) -> abut.Mesh:
    folder = data_folder()
    assert folder is not None, "set ABUT_DATA to the folder of models"
    held = abut.Mesh.load(folder / "models" / f"{name}.ply", "cpu")
    points = held.vertices.numpy().astype(np.float64)
    points = (points - points.mean(axis=0)) / np.ptp(points, axis=0).max()
    return abut.Mesh(points, held.faces.numpy(), device)


def _poses(count: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(count)
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    turns[np.linalg.det(turns) < 0] *= -1
    ways = rng.normal(size=(count, 3))
    ways *= spread * rng.uniform(0.2, 1.3, (count, 1)) / np.linalg.norm(ways, axis=1)[:, None]
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = turns, ways
    return poses


def _boxes(count: int, device: str) -> abut.Scene:
    box, scene = abut.Mesh(*cases.box(), device=device), abut.Scene(device)
    poses = _poses(count, 1.0)
    poses[:, :3, 3] = np.random.default_rng(1).uniform(0, 1.4 * count ** (1 / 3), (count, 3))
    for pose in poses:
        scene.add(box, pose=pose)
    return scene


if __name__ == "__main__":
    sys.exit(main())
