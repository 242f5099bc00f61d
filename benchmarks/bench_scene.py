"""Scenes of many objects: ``python -m benchmarks.bench_scene --device cpu``.

- ``boxes_10k``: 10,000 boxes of 12 faces move; all contacts. Beside FCL's manager, in C++ with a
  callback in Python for each pair, and trimesh's, which is built on it and tells one contact of
  each pair of boxes.
- ``balls_146k``: 292 balls of 500 faces each, all deformed in every frame; hierarchies refitted,
  contacts of balls with each other and with themselves.
- ``panda_4096``: 4,096 copies of a robot of 58 parts, each at joint angles of its own, against a
  bunny of 69,451 faces: which copies touch it.
- ``dragon_500``: a dragon of 202,520 faces breaks into 500 pieces while a bunny sits in it; the
  frame of the split, and (``after``) a frame in which the pieces move.

Poses and vertices lie ready on the device. Answers are checked before anything is timed.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
import warp as wp

import abut
from abut.cases import box, icosphere
from abut.core.timing import recording
from benchmarks import cases
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

BOXES = 10_000
BALLS = 292
COPIES = 4096
PIECES = 500
FRAMES = 4
Call = Callable[[], Any]


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="bench_scene", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds a library")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--stages", action="store_true", help="also where the time goes")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/scene.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    rows, wrong = [], False
    for job in args.jobs:
        found: list[Row] = []
        for variant, calls, fault in JOBS[job](args):
            if fault:
                print(f"ERROR: {job}/{variant}: {fault}")
                wrong = True
            found += _timed(job, variant, calls, args)
        if found:
            print_rows(job, found)
        rows += found
    out = args.out or RESULTS / machine_name(args.device) / "scene.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


Measured = tuple[str, dict[str, Timed], str]


@dataclass
class Prepared(Timed):
    """A call that is preceded by another, which is not timed."""

    before: Call = int

    def turn(self, repeats: int) -> tuple[float, Any]:
        """Seconds of the call alone."""
        seconds, result = 0.0, None
        for _ in range(repeats):
            self.before()
            spent, result = super().turn(1)
            seconds += spent
        return seconds / repeats, result


def _timed(job: str, variant: str, calls: dict[str, Timed], args: argparse.Namespace) -> list[Row]:
    measure(list(calls.values()), args.rounds, args.budget)
    rows = []
    for name, one in calls.items():
        row = Row(job, variant, name, one.device, one.ms_min, one.ms_median, len(one.samples))
        row.answer_size = int(one.turn(1)[1])
        rows.append(row)
    set_ratios(rows, {"abut"})
    if args.stages:
        with recording() as timer:
            calls["abut"].turn(1)
        steps = calls["abut"].steps
        print(job, variant, {k: round(v / steps, 3) for k, v in timer.milliseconds.items()})
    return rows


def random_poses(rng: np.random.Generator, count: int, extent: float) -> np.ndarray:
    """(count, 4, 4), any turn, within a cube."""
    turns, _ = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    turns[np.linalg.det(turns) < 0] *= -1
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = turns
    poses[:, :3, 3] = rng.uniform(0, extent, size=(count, 3))
    return poses


def boxes(args: argparse.Namespace) -> Iterator[Measured]:
    """Boxes in a cube, a third more room than they fill along each axis; all move a little."""
    rng = np.random.default_rng(0)
    shape = box()
    start = random_poses(rng, BOXES, 1.35 * BOXES ** (1 / 3))
    frames = []
    for _ in range(FRAMES):
        start = start.copy()
        start[:, :3, 3] += rng.normal(0, 0.02, (BOXES, 3))
        frames.append(start)
    scene = abut.Scene(args.device)
    scene.add(abut.Mesh(*shape, device=args.device), frames[0])
    ready = [wp.array(f, dtype=wp.mat44d, device=args.device) for f in frames]

    def run() -> float:
        count = 0
        for poses in ready:
            wp.copy(scene.poses, poses)
            count += len(scene.collide())
        return count / FRAMES

    calls = {"abut": Timed(run, args.device, FRAMES)}
    fault = ""
    if not args.no_peers:
        from benchmarks.peers import fcl_manager

        expected = {"fcl": run(), "trimesh": 0.0}  # trimesh tells one contact of each pair
        for poses in ready:
            wp.copy(scene.poses, poses)
            expected["trimesh"] += len(scene.collide(first=True)) / FRAMES
        for name, call in fcl_manager.manager_calls(*shape, frames).items():
            calls[name] = Timed(call, "cpu", FRAMES)
            found = call()
            if found != expected[name]:
                fault = f"abut finds {expected[name]} and {name} {found}"
    yield "all_contacts", calls, fault


def balls(args: argparse.Namespace) -> Iterator[Measured]:
    """Balls that swell and drift, a vertex array for all of them a frame."""
    rng = np.random.default_rng(0)
    ball = icosphere(500)
    centres = rng.uniform(0, 1.75 * BALLS ** (1 / 3), (BALLS, 1, 3))
    scene = abut.Scene(args.device)
    handles = np.array([scene.add(abut.Mesh(*ball, device=args.device)) for _ in range(BALLS)])
    frames = []
    for k in range(FRAMES):
        scales = 1 + 0.02 * rng.normal(size=(BALLS, 1, 1))
        frames.append((ball.vertices * scales + centres + 0.02 * k).reshape(-1, 3))
    ready = [wp.array(f, dtype=wp.vec3d, device=args.device) for f in frames]

    def run() -> float:
        count = 0
        for vertices in ready:
            scene.deform(handles, vertices)
            count += len(scene.collide(self_collisions=True))
        return count / FRAMES

    faces = np.concatenate([ball.faces + k * len(ball.vertices) for k in range(BALLS)])
    whole = abut.Mesh(ready[-1], faces, args.device)
    run()
    one, all_together = len(scene.collide(self_collisions=True)), abut.self_collide(whole)
    fault = "" if one == len(all_together) else f"{one} pairs, as one mesh {len(all_together)}"
    yield "refit_self_mutual", {"abut": Timed(run, args.device, FRAMES)}, fault


def robots(args: argparse.Namespace) -> Iterator[Measured]:
    """Joint angles at random within a good part of their range."""
    folder = cases.data_folder()
    if folder is None or not (folder / "robots").is_dir():
        print("no robots in the data folder (ABUT_DATA)")
        return
    arm = _load_panda(folder / "robots", args.device)
    scene = abut.Scene(args.device)
    for mesh in arm.meshes:
        scene.add(mesh, group=1, mask=2)
    bunny = abut.Mesh.load(folder / "models" / "bunny_69k.ply", args.device)
    vertices = bunny.vertices.numpy()
    scale = 0.5 / np.ptp(vertices, axis=0).max()
    vertices = (vertices - vertices.mean(axis=0)) * scale + [0.45, 0.0, 0.35]
    scene.add(abut.Mesh(vertices, bunny.faces.numpy(), args.device), static=True, group=2, mask=1)
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.5, 1.5, (COPIES, len(arm.robot.joints)))
    values[:, 7:] = 0.0  # the fingers
    poses = np.tile(np.eye(4), (COPIES, len(arm) + 1, 1, 1))
    poses[:, :-1] = arm.robot.object_poses(values)
    ready = wp.array(poses, dtype=wp.float64, device=args.device)

    def run() -> int:
        return int(scene.colliding(poses=ready).numpy().sum())

    flags = scene.colliding(poses=ready).numpy()
    fault = ""
    for copy in range(8):
        scene.move(np.arange(len(arm) + 1), poses[copy])
        if bool(scene.collide()) != flags[copy]:
            fault = f"copy {copy} has another answer on its own"
    yield f"{len(arm)}_parts", {"abut": Timed(run, args.device)}, fault


def _load_panda(folder: Path, device: str) -> abut.Scene:
    """The visual meshes of the arm; its mesh files are written from arrays of the data folder."""
    with tempfile.TemporaryDirectory() as place:
        assets = Path(place) / "assets"
        assets.mkdir()
        for name in ("panda.npz", "panda_collision.npz"):
            held = np.load(folder / name)
            for key in {key.rsplit("__", 1)[0] for key in held}:
                stem, _, kind = key.rpartition("_")
                mesh = trimesh.Trimesh(held[f"{key}__V"], held[f"{key}__F"], process=False)
                mesh.export(assets / f"{stem}.{kind}")
        path = shutil.copy(folder / "panda_panda.xml", place)
        return abut.Scene.load(path, device, geometry="visual")


def dragon(args: argparse.Namespace) -> Iterator[Measured]:
    """Pieces are the cells of points at random on the dragon."""
    folder = cases.data_folder()
    if folder is None:
        print("no data folder (ABUT_DATA)")
        return
    whole = abut.Mesh.load(folder / "models" / "dragon_202k.ply", args.device)
    bunny = abut.Mesh.load(folder / "models" / "bunny_69k.ply", args.device)
    vertices, faces = whole.vertices.numpy().astype(np.float64), whole.faces.numpy()
    middles = vertices[faces].mean(axis=1)
    labels = _cells(middles, PIECES)
    inside = bunny.vertices.numpy().astype(np.float64)
    inside -= inside.mean(axis=0)
    inside *= 0.3 * np.ptp(vertices, axis=0).max() / np.ptp(inside, axis=0).max()
    ball = abut.Mesh(inside + vertices.mean(axis=0), bunny.faces.numpy(), args.device)
    ready = wp.array(labels, dtype=wp.int32, device=args.device)
    scene = abut.Scene(args.device)
    scene.add(ball)
    state: dict[str, Any] = {"object": scene.add(whole)}

    def restore() -> None:
        if "pieces" in state:
            scene.remove(state.pop("pieces"))
            state["object"] = scene.add(whole)
        scene.collide()

    def breaks() -> int:
        state["pieces"] = scene.split(state["object"], ready)
        return len(scene.collide())

    restore()
    count = breaks()
    fault = ""
    parts = [faces[labels == k] for k in range(PIECES)]
    used = [np.unique(part, return_inverse=True) for part in parts]
    starts = np.cumsum([0] + [len(u) for u, _ in used])
    soup = abut.Mesh(
        np.concatenate([vertices[u] for u, _ in used]),
        np.concatenate([c.reshape(-1, 3) + s for (_, c), s in zip(used, starts, strict=False)]),
        args.device,
    )
    owner = np.repeat(np.arange(PIECES), [len(part) for part in parts])
    pairs = owner[abut.self_collide(soup, weld=False).pairs.numpy()]
    expected = int((pairs[:, 0] != pairs[:, 1]).sum()) + len(abut.collide(whole, ball))
    if count != expected:
        fault = f"{count} pairs, as one mesh {expected}"

    yield "split", {"abut": Prepared(breaks, args.device, before=restore)}, fault
    pieces = state["pieces"]
    centres = np.stack([middles[labels == k].mean(axis=0) for k in range(PIECES)])
    poses = np.tile(np.eye(4), (PIECES, 1, 1))
    moved = []
    for k in range(FRAMES):
        poses = poses.copy()
        poses[:, :3, 3] = (0.01 + 0.005 * k) * (centres - vertices.mean(axis=0))
        everyone = scene.poses.numpy()
        everyone[pieces] = poses
        moved.append(wp.array(everyone, dtype=wp.mat44d, device=args.device))

    def after() -> float:
        total = 0
        for frame in moved:
            wp.copy(scene.poses, frame)
            total += len(scene.collide())
        return total / FRAMES

    yield "after", {"abut": Timed(after, args.device, FRAMES)}, ""


def _cells(points: np.ndarray, count: int) -> np.ndarray:
    """The nearest of ``count`` of the points, for each."""
    rng = np.random.default_rng(0)
    seeds = points[rng.choice(len(points), count, replace=False)]
    return np.concatenate(
        [
            np.argmin(((chunk[:, None] - seeds) ** 2).sum(axis=2), axis=1)
            for chunk in np.array_split(points, max(len(points) // 2000, 1))
        ]
    ).astype(np.int32)


JOBS: dict[str, Callable[[argparse.Namespace], Iterator[Measured]]] = {
    "boxes_10k": boxes,
    "balls_146k": balls,
    "panda_4096": robots,
    "dragon_500": dragon,
}

if __name__ == "__main__":
    sys.exit(main())
