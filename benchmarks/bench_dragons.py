"""Fifteen bodies on a waving floor: ``python -m benchmarks.bench_dragons --device cpu``.

Section 5.4 of Morvan et al. 2008: detection, response and integration of all bodies, per substep,
with the settings in the row. ``dragons.csv`` has a row for each setting.
"""

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut import cases, sim
from abut.sim.rigid_scenes import Dragons
from benchmarks.cases import _gem, _model
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.ours import commit
from benchmarks.rows import machine_name

SETTINGS = "model bodies faces resolution pixels sampling friction substep_ms".split()
MEASURED = "device pairs most_pairs substeps ms_min ms_median version".split()


def scene(args: argparse.Namespace) -> tuple[str, Dragons]:
    """Return the scene, and the name of the model."""
    prefix, vertices, faces = _model(f"models/{args.model}.ply", _gem)
    solid = cases.Shape(np.asarray(vertices, float), np.asarray(faces, np.int32)).turned("x", 90)
    sizes = {"resolution": args.resolution, "pixels": args.pixels}
    return prefix + args.model, Dragons(solid, count=args.count, device=args.device, **sizes)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Let the bodies fall, then time substeps."""
    name, play = scene(args)
    if args.fallen:  # a cheap scene of the same bodies gets them to where they touch
        coarse = argparse.Namespace(**vars(args) | {"resolution": 48, "pixels": 48})
        first = scene(coarse)[1]
        for _ in range(args.fallen):
            first.advance()
        _take_state(first.bodies, play.bodies)
    times, pairs = [], []
    seconds = play.seconds / play.substeps
    for k in range(args.substeps + 1):
        wp.synchronize()
        start = time.perf_counter()
        play.bodies.step(seconds, 1)
        wp.synchronize()
        if k:
            times.append((time.perf_counter() - start) * 1e3)
            pairs.append(play.bodies.pair_count)
    friction = "static" if play.bodies._springs is not None else "dynamic"
    settings = [name, args.count, play.face_count, args.resolution, args.pixels, "dominant"]
    settings += [friction, 1e3 * seconds]
    found = [args.device, int(np.median(pairs)), max(pairs), len(times)]
    found += [min(times), float(np.median(times)), commit()]
    return dict(zip(SETTINGS + MEASURED, settings + found, strict=True))


def _take_state(source: sim.RigidBodies, target: sim.RigidBodies) -> None:
    """Copy positions and velocities of the bodies, and the time."""
    target._prepare()
    target._restore(source.state(), [source.time, 0.0])


def write(path: Path, row: dict[str, Any]) -> None:
    """Write a row in place of an older one of the same settings and device."""
    kept = []
    if path.is_file():
        with path.open(newline="") as file:
            kept = list(csv.DictReader(file))
    plain = {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in row.items()}
    same = [*SETTINGS, "device"]
    kept = [old for old in kept if [old[k] for k in same] != [plain[k] for k in same]]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, plain])


def main(argv: list[str] | None = None) -> int:
    """Run one setting."""
    parser = argparse.ArgumentParser(prog="bench_dragons", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--model", default="dragon_202k")
    parser.add_argument("--count", type=int, default=15)
    parser.add_argument("--resolution", type=int, default=256)
    parser.add_argument("--pixels", type=int, default=1024)
    parser.add_argument("--fallen", type=int, default=20, help="frames before, coarsely")
    parser.add_argument("--substeps", type=int, default=20, help="that are timed")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    row = run(args)
    out = args.out or RESULTS / machine_name(args.device) / "dragons.csv"
    write(out, row)
    print(row)
    print(f"written to {out}; abut {abut.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
