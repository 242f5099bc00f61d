"""Culling by visibility on the papers' scenes: ``python -m benchmarks.bench_cull``.

For every scene, method and backend: how many faces and pairs are left, on average over the frames,
and how many of the pairs that meet (``bvh``) are not among them; for ``far``, ``cullide`` and
``quick_cullide`` also how many rows ``collide`` lacks. Then times, of one frame, all taking turns.
Counts go to results/<machine>/cull_counts.csv, times to cull.csv.
"""

import argparse
import csv
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import warp as wp

import abut
from abut.visibility.gl.driver import driver, unavailable
from benchmarks import cull_scenes
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, print_table, write_csv
from benchmarks.timing import Timed, measure

WAYS = {  # method, order, backend
    "cullide": ("cullide", "drawn", "warp"),
    "cullide_gl": ("cullide", "drawn", "gl"),
    "quick_cullide": ("quick_cullide", "drawn", "warp"),
    "quick_cullide_gl": ("quick_cullide", "drawn", "gl"),
    "far_drawn": ("far", "drawn", "warp"),
    "far_gl": ("far", "drawn", "gl"),
    "far": ("far", "free", "warp"),
}


@dataclass(frozen=True)
class Scene:
    """A scene of cull_scenes, and how it is looked at."""

    pixels: int
    views: str
    within: bool = False
    timed: int = -1  # frame


SCENES = {
    "bunnies": Scene(1400, "xyz"),
    "breaking": Scene(1400, "xyz"),
    "leaves": Scene(1400, "xyz"),
    "leaves_512": Scene(512, "xyz"),
    "cloth": Scene(4096, "xz", within=True),
}


@dataclass
class Count:
    """Averages over the frames of a scene; lost and exact pairs are sums."""

    scene: str
    way: str
    frames: int
    faces: int
    faces_left: float
    faces_that_meet: float
    object_pairs: float
    object_pairs_of_boxes: float
    object_pairs_that_meet: float
    pairs_left: float
    exact_pairs: int
    lost_pairs: int
    lost_rows: int | str


def main(argv: list[str] | None = None) -> int:
    """Count, time, print, write. 1 where FAR loses a pair."""
    parser = argparse.ArgumentParser(prog="bench_cull", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--scenes", nargs="*", default=list(SCENES), choices=SCENES)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5, help="of timing; 0: counts alone")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds a way")
    parser.add_argument("--no-counts", action="store_true")
    parser.add_argument("--out", type=Path, help="folder; default: results/<machine>")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    out = args.out or RESULTS / machine_name(args.device)
    print("gl:", unavailable() or driver().name)
    counts, rows = [], []
    for name in args.scenes:
        frames = _frames(name, args.frames)
        if not args.no_counts:
            counts += _counted(name, frames, args)
        if args.rounds:
            rows += _timed(name, frames, args)
    _write_counts(out / "cull_counts.csv", counts)
    write_csv(out / "cull.csv", rows) if rows else None
    return int(any(c.lost_pairs or c.lost_rows for c in counts if c.way.startswith("far")))


def cull(meshes: list[abut.Mesh], scene: Scene, way: str) -> abut.Culled:
    """Look at a frame."""
    method, order, backend = WAYS[way]
    options = {"pixels": scene.pixels, "views": scene.views, "self_collisions": scene.within}
    return abut.cull(meshes, method=method, order=order, backend=backend, **options)


def _frames(name: str, count: int) -> list[cull_scenes.Frame]:
    make = getattr(cull_scenes, name.partition("_")[0])
    return make() if make is cull_scenes.bunnies else make(count)


def _ways(name: str, args: argparse.Namespace) -> list[str]:
    """Those that apply: boxes of neighbours always overlap."""
    no_gl = unavailable() is not None
    return [
        way
        for way in args.ways
        if not (WAYS[way][2] == "gl" and (no_gl or (way == "far_gl" and SCENES[name].within)))
    ]


def _counted(name: str, frames: list[cull_scenes.Frame], args: argparse.Namespace) -> list[Count]:
    scene, counts = SCENES[name], []
    meshes = [[abut.Mesh(*shape, device=args.device) for shape in frame] for frame in frames]
    exact = [_contacts(frame, scene, "bvh") for frame in meshes]
    apart = [_without_neighbours(rows, frame) for rows, frame in zip(exact, meshes, strict=True)]
    boxes = np.mean([_overlapping_boxes(frame) for frame in frames])
    for way in _ways(name, args):
        found = [_found(cull(frame, scene, way)) for frame in meshes]
        counts.append(
            Count(
                name,
                way,
                len(frames),
                sum(len(shape.faces) for shape in frames[0]),
                float(np.mean([left for left, _, _ in found])),
                float(np.mean([len(_sides(rows)) for rows in exact])),
                float(np.mean([pairs for _, pairs, _ in found])),
                float(boxes),
                float(np.mean([len({row[:2] for row in rows}) for rows in exact])),
                float(np.mean([len(rows) for _, _, rows in found])),
                sum(len(rows) for rows in exact),
                sum(len(met - rows) for met, (_, _, rows) in zip(apart, found, strict=True)),
                _lost_rows(meshes, scene, way, exact),
            )
        )
    header = [field.name.replace("_", " ") for field in fields(Count)][1:]
    lines = [[f"{x:.5g}" if isinstance(x, float) else str(x) for x in _values(c)] for c in counts]
    print_table(f"{name}, {scene.pixels} x {scene.pixels}, {scene.views}", header, lines)
    return counts


def _values(count: Count) -> list:
    return [getattr(count, field.name) for field in fields(Count)][1:]


def _found(culled: abut.Culled) -> tuple[int, int, set]:
    rows = np.concatenate([culled.pair_objects.numpy(), culled.pairs.numpy()], axis=1)
    return len(culled), culled.object_pairs.shape[0], set(map(tuple, rows.tolist()))


def _contacts(meshes: list[abut.Mesh], scene: Scene, method: str) -> set:
    """Rows (object, object, face, face) of faces that meet."""
    options = {} if method == "bvh" else {"method": method, "pixels": scene.pixels}
    if scene.within:
        (mesh,) = meshes
        return {(0, 0, *row) for row in abut.self_collide(mesh, **options).pairs.numpy().tolist()}
    world = abut.Scene(device=meshes[0].device)
    for mesh in meshes:
        world.add(mesh)
    hits = world.collide(**options)
    rows = np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)
    return set(map(tuple, rows.tolist()))


def _without_neighbours(rows: set, meshes: list[abut.Mesh]) -> set:
    """Rows of faces without a common vertex; the others are no matter of culling."""
    faces = [mesh.faces.numpy().tolist() for mesh in meshes]
    return {r for r in rows if r[0] != r[1] or not set(faces[r[0]][r[2]]) & set(faces[r[1]][r[3]])}


def _lost_rows(meshes: list, scene: Scene, way: str, exact: list[set]) -> int | str:
    """What the queries lack with this method, in all frames; they have no choice of backend."""
    if way not in ("cullide", "quick_cullide", "far"):
        return ""
    found = [_contacts(frame, scene, way) for frame in meshes]
    assert all(rows <= met for rows, met in zip(found, exact, strict=True))
    return sum(len(met - rows) for rows, met in zip(found, exact, strict=True))


def _sides(rows: set) -> set:
    """Faces (object, face) of pairs."""
    return {(row[0], row[2]) for row in rows} | {(row[1], row[3]) for row in rows}


def _overlapping_boxes(frame: cull_scenes.Frame) -> int:
    """Pairs of objects whose axis-aligned boxes overlap: what sweep and prune reports."""
    low = np.array([shape.vertices.min(axis=0) for shape in frame])
    high = np.array([shape.vertices.max(axis=0) for shape in frame])
    overlap = ((low[:, None] <= high) & (low <= high[:, None])).all(axis=2)
    return int(np.triu(overlap, 1).sum())


def _timed(name: str, frames: list[cull_scenes.Frame], args: argparse.Namespace) -> list[Row]:
    scene, ways = SCENES[name], _ways(name, args)
    meshes = [abut.Mesh(*shape, device=args.device) for shape in frames[scene.timed]]
    timed = [Timed(lambda w=way: cull(meshes, scene, w), args.device) for way in ways]
    sizes = [len(one.first()) for one in timed]
    measure(timed, args.rounds, args.budget)
    job = f"cull_{name}"
    rows = [
        Row(job, way, "abut", args.device, one.ms_min, one.ms_median, len(one.samples), size)
        for way, one, size in zip(ways, timed, sizes, strict=True)
    ]
    print_rows(f"{job}, one frame; answer size: faces left", rows)
    return rows


def _write_counts(path: Path, counts: list[Count]) -> None:
    """Write counts, in place of older ones of the same scenes."""
    names = [field.name for field in fields(Count)]
    done = {count.scene for count in counts}
    lines = []
    if path.is_file():
        with path.open(newline="") as file:
            lines = [old for old in csv.DictReader(file) if old["scene"] not in done]
    lines += [{name: getattr(count, name) for name in names} for count in counts]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    sys.exit(main())
