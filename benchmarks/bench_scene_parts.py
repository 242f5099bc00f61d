"""Questions of a part of a scene: ``python -m benchmarks.bench_scene_parts --device cpu``.

- ``one_of_200``: one torus of 1,024 faces against 200 others, yes or no: an object of the scene
  that moves, and (``abut mesh``) a mesh that is not added.
- ``one_moves``: a scene of 1,000 such tori of which one moves, whether any two meet: all apart, and
  with contacts elsewhere.
- ``boxes``: the same boxes asked for less and less: all pairs of faces, pairs of objects, yes or
  no; all of them move before every question.

Beside them are the managers of FCL and Coal, which stop at the first contact too. Answers are
checked before anything is timed.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.cases import box, torus
from benchmarks.bench_scene import Measured, _timed, random_poses
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.peers import managers
from benchmarks.rows import Row, machine_name, print_rows, write_csv
from benchmarks.timing import Timed

TORUS = torus(32, 16)
OTHERS = 200
OBJECTS = 1000
STEPS = 64
BOXES = (100, 1000, 10_000, 100_000)
MOST_CUDA_BOXES = 1_000_000


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="bench_scene_parts", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=5.0, help="seconds a library")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--most-boxes", type=int, help="default: 100,000; 1,000,000 on CUDA")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/scene_parts.csv")
    args = parser.parse_args(argv)
    args.stages = False
    wp.config.log_level = QUIET
    rows: list[Row] = []
    wrong = False
    for job in args.jobs:
        found: list[Row] = []
        for variant, calls, fault in JOBS[job](args):
            if fault:
                print(f"ERROR: {job}/{variant}: {fault}")
                wrong = True
            found += _timed(job, variant, calls, args)
        print_rows(job, found)
        rows += found
    out = args.out or RESULTS / machine_name(args.device) / "scene_parts.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


def one_of_200(args: argparse.Namespace) -> Iterator[Measured]:
    """Poses at random in the room of the others: most meet one where they are dense."""
    rng = np.random.default_rng(0)
    for variant, extent in (("dense", 14.0), ("sparse", 30.0)):
        others, steps = random_poses(rng, OTHERS, extent), random_poses(rng, STEPS, extent)
        mesh = abut.Mesh(*TORUS, device=args.device)
        scene, alone = abut.Scene(args.device), abut.Scene(args.device)
        scene.add(mesh, others)
        alone.add(mesh, others)
        row = scene.add(mesh)

        def moved(pose: np.ndarray, scene: Any = scene, row: int = row) -> bool:
            scene.move(row, pose)
            return scene.colliding(which=row)

        def external(pose: np.ndarray, alone: Any = alone, mesh: Any = mesh) -> bool:
            return alone.colliding(against=mesh, pose=pose)

        asks = {"abut": moved, "abut mesh": external}
        if not args.no_peers:
            asks |= managers.one_against(TORUS, others)
        yield _asked(variant, asks, steps, args)


def one_moves(args: argparse.Namespace) -> Iterator[Measured]:
    """Tori in a grid, one of which moves about its place; in ``contacts`` they lie at random."""
    rng = np.random.default_rng(0)
    side = round(OBJECTS ** (1 / 3))
    grid = np.stack(np.meshgrid(*[3.0 * np.arange(side)] * 3), axis=-1).reshape(-1, 3)
    row = OBJECTS // 2
    for variant in ("apart", "contacts"):
        poses = random_poses(rng, OBJECTS, 24.0)
        steps = random_poses(rng, STEPS, 24.0)
        if variant == "apart":
            poses[:, :3, 3] = grid
            steps[:, :3, 3] = grid[row] + rng.uniform(-0.15, 0.15, (STEPS, 3))
        scene = abut.Scene(args.device)
        scene.add(abut.Mesh(*TORUS, device=args.device), poses)

        def moved(pose: np.ndarray, scene: Any = scene) -> bool:
            scene.move(row, pose)
            return scene.colliding()

        asks = {"abut": moved}
        if not args.no_peers:
            asks |= managers.one_moved(TORUS, poses, row)
        yield _asked(variant, asks, steps, args)


def _asked(
    variant: str, asks: dict[str, Callable[[np.ndarray], bool]], steps: np.ndarray, args: Any
) -> Measured:
    """The calls that ask about all steps, and a fault where answers differ."""
    answers = {name: [ask(pose) for pose in steps] for name, ask in asks.items()}
    differ = [name for name, answer in answers.items() if answer != answers["abut"]]
    calls = {}
    for name, ask in asks.items():
        device = args.device if name.startswith("abut") else "cpu"
        calls[name] = Timed(lambda ask=ask: sum(map(ask, steps)), device, len(steps))
    return variant, calls, f"{', '.join(differ)} answer otherwise" if differ else ""


def boxes(args: argparse.Namespace) -> Iterator[Measured]:
    """Boxes in a cube, a third more room than they fill along each axis."""
    most = MOST_CUDA_BOXES if args.device.startswith("cuda") else BOXES[-1]
    sizes = [*BOXES, MOST_CUDA_BOXES] if most > BOXES[-1] else BOXES
    for count in (size for size in sizes if size <= (args.most_boxes or most)):
        rng = np.random.default_rng(0)
        frames = [random_poses(rng, count, 1.35 * count ** (1 / 3)) for _ in range(2)]
        scene = abut.Scene(args.device)
        scene.add(abut.Mesh(*box(), device=args.device), frames[0])
        ready = [wp.array(poses, dtype=wp.mat44d, device=args.device) for poses in frames]

        def ask(question: Callable[[], Any], scene: Any = scene, ready: Any = ready) -> float:
            total = 0
            for poses in ready:
                wp.copy(scene.poses, poses)
                total += question()
            return total / len(ready)

        asks = {
            "abut": lambda scene=scene: len(scene.collide()),
            "abut pairs of objects": lambda scene=scene: len(scene.collide(first=True)),
            "abut yes or no": scene.colliding,
        }
        pairs = len(scene.collide().object_pairs)
        fault = "" if pairs == len(scene.collide(first=True)) else "pairs of objects differ"
        calls = {
            name: Timed(lambda q=question, ask=ask: ask(q), args.device, len(ready))
            for name, question in asks.items()
        }
        if not args.no_peers and count == 10_000:
            from benchmarks.peers import fcl_manager

            every = fcl_manager.manager_calls(*box(), frames)
            calls |= {name: Timed(call, "cpu", len(frames)) for name, call in every.items()}
        yield str(count), calls, fault


JOBS: dict[str, Callable[[argparse.Namespace], Iterator[Measured]]] = {
    "one_of_200": one_of_200,
    "one_moves": one_moves,
    "boxes": boxes,
}

if __name__ == "__main__":
    sys.exit(main())
