"""Changes of one object in scenes of 1e2 to 1e6: ``python -m benchmarks.bench_scene_changes``.

The scene holds boxes of up to 10,000 distinct meshes; a tenth of the objects have names, a tenth
were removed at random, and there are as many ignored pairs as a tenth of the objects. Times are
those of the change alone, not of the next query.
"""

import argparse
import sys
from itertools import cycle
from pathlib import Path

import numpy as np
import warp as wp

import abut
from abut.cases import box
from benchmarks.bench_scene import Prepared, random_poses
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, write_csv
from benchmarks.timing import Timed, measure

SIZES = [100, 1000, 10_000, 100_000, 1_000_000]
MOST_MESHES = 10_000


def main(argv: list[str] | None = None) -> int:
    """Time, print, write the CSV."""
    parser = argparse.ArgumentParser(prog="bench_scene_changes", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds a change")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/scene_changes.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    out = args.out or RESULTS / machine_name(args.device) / "scene_changes.csv"
    for count in args.sizes:
        scene = make_scene(count, args.device)
        rows = []
        for name, change in changes(scene, args.device).items():
            measure([change], args.rounds, args.budget)
            times = (change.ms_min, change.ms_median, len(change.samples))
            rows.append(Row(f"objects_{count}", name, "abut", args.device, *times))
        print_rows(f"{count} objects, ms a change", rows)
        write_csv(out, rows)
    return 0


def make_scene(count: int, device: str) -> abut.Scene:
    """Boxes at random, with names, gaps and ignored pairs; all trees are built."""
    rng, scene = np.random.default_rng(0), abut.Scene(device)
    poses = random_poses(rng, count, 2.0 * count ** (1 / 3))
    for some in np.array_split(poses, min(count, MOST_MESHES)):
        scene.add(abut.Mesh(*box(), device=device), some)
    tenth = count // 10
    rows = rng.permutation(count)
    scene.remove(rows[:tenth])
    scene.ignore(rows[tenth : 2 * tenth], rows[2 * tenth : 3 * tenth])
    for row in rows[3 * tenth : 4 * tenth].tolist():
        scene.rename(row, f"box {row}")
    scene.colliding()
    return scene


def changes(scene: abut.Scene, device: str) -> dict[str, Timed]:
    """Changes of one object, in any number; what undoes one is not timed."""
    rows = cycle(scene.indices[:64].tolist())
    pairs = cycle(zip(scene.indices[:64].tolist(), scene.indices[-64:].tolist(), strict=True))
    poses = cycle(random_poses(np.random.default_rng(1), 64, 10.0))
    known, numbers = scene.mesh(scene.indices[0]), iter(range(10**9))
    state: dict[str, int | tuple[int, int] | abut.Mesh] = {"added": scene.add(known)}

    def add() -> None:
        state["added"] = scene.add(state["mesh"], next(poses))

    def remove() -> None:
        scene.remove(state["added"])

    def with_known_mesh() -> None:
        state["mesh"] = known

    def with_new_mesh() -> None:
        state["mesh"] = abut.Mesh(*box(), device=device)

    def choose_pair() -> None:
        state["pair"] = next(pairs)

    def ignore() -> None:
        scene.ignore(*state["pair"])

    def allow() -> None:
        scene.allow(*state["pair"])

    def in_turn(*calls):
        return lambda: [call() for call in calls]

    deformed = scene.add(abut.Mesh(*box(), device=device))
    vertices = cycle([box().vertices, box((1, 2, 3)).vertices])
    return {
        "move": Timed(lambda: scene.move(next(rows), next(poses)), device),
        "add": Prepared(add, device, before=in_turn(remove, with_known_mesh)),
        "add_mesh": Prepared(add, device, before=in_turn(remove, with_new_mesh)),
        "remove": Prepared(remove, device, before=in_turn(with_known_mesh, add)),
        "ignore": Prepared(ignore, device, before=in_turn(choose_pair, allow)),
        "allow": Prepared(allow, device, before=in_turn(choose_pair, ignore)),
        "set": Timed(lambda: scene.set(next(rows), group=1 + next(numbers) % 7), device),
        "rename": Timed(lambda: scene.rename(next(rows), f"name {next(numbers)}"), device),
        "deform": Timed(lambda: scene.deform(deformed, next(vertices)), device),
    }


if __name__ == "__main__":
    sys.exit(main())
