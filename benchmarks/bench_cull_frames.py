"""Culling frame by frame, for docs/papers: ``python -m benchmarks.bench_cull_frames``.

For every scene, frame and method: how much is left, how much intersects, what is lost, how many
primitives were tested, and the processor time of all threads. End to end: contacts by culling and
by hierarchies, of new meshes, and of meshes that follow the frames. Rows go to
results/<machine>/cull_frames.csv.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from benchmarks import bench_cull, cull_contacts, cull_scenes
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.cull_contacts import Asked
from benchmarks.cull_scenes import Frame
from benchmarks.rows import machine_name

WAYS: dict[str, dict[str, Any]] = {
    "cullide": {"method": "cullide"},
    "quick_cullide": {"method": "quick_cullide"},
    "far_drawn": {"method": "far", "order": "drawn"},
    "quick_far": {"method": "quick_cullide", "conservative": True},
    "far": {"method": "far"},
}
TWICE = {f"{way}_twice": WAYS[way] for way in ("cullide", "quick_cullide", "far_drawn")}
PAPERS = ["cullide", "quick_cullide", "cullide_twice", "quick_cullide_twice"]
REPEATS = 2


@dataclass(frozen=True)
class Scene:
    """Frames, and the views of the cullings."""

    frames: Callable[[int], list[Frame]]
    pixels: int
    views: str = "xyz"
    within: bool = False


SCENES = {
    "fracture": Scene(cull_scenes.fracture, 1400),
    "breaking": Scene(cull_scenes.breaking, 1400),
    "leaves": Scene(cull_scenes.leaves, 4096),
    "cloth": Scene(cull_scenes.cloth, 4096, "xz", within=True),
    "cloth_table": Scene(cull_scenes.cloth_table, 4096, "xz", within=True),
    "breaking_237k": Scene(cull_scenes.breaking_full, 4096),
}


@dataclass
class Row:
    """One culling of one frame; end to end, one query of its contacts."""

    scene: str
    frame: int
    way: str
    pixels: int
    views: str
    faces: int
    faces_left: int | str
    pairs_left: int | str
    object_pairs: int | str
    object_boxes: int
    object_pairs_that_meet: int
    faces_that_meet: int
    pairs_that_meet: int
    lost_pairs: int
    queries: int | str
    cpu_ms: float


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write. 1 where a conservative method loses a pair."""
    parser = argparse.ArgumentParser(prog="bench_cull_frames", description=__doc__)
    parser.add_argument("--scenes", nargs="*", default=list(SCENES), choices=SCENES)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS | TWICE)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--out", type=Path, help="folder; default: results/<machine>")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    path = (args.out or RESULTS / machine_name(args.device)) / "cull_frames.csv"
    failed = False
    for name in args.scenes:
        rows = []
        for row in _rows(name, args):
            print(row, flush=True)
            rows.append(row)
        failed |= any(row.lost_pairs for row in rows if row.way not in PAPERS)
        _write(path, name, rows)
    return int(failed)


def _rows(name: str, args: argparse.Namespace) -> Iterator[Row]:
    scene = SCENES[name]
    before = None
    for number, frame in enumerate(scene.frames(args.frames)):
        asked = cull_contacts.Asked(frame, scene.within, args.device)
        meshes = asked.meshes
        met = cull_contacts.rows_of(asked.contacts())
        apart = bench_cull._without_neighbours(met, meshes)
        facts = {
            "scene": name,
            "frame": number,
            "views": scene.views,
            "faces": sum(mesh.face_count for mesh in meshes),
            "object_boxes": bench_cull._overlapping_boxes(frame),
            "object_pairs_that_meet": len({row[:2] for row in met}),
            "faces_that_meet": len(bench_cull._sides(met)),
            "pairs_that_meet": len(met),
        }
        for way in args.ways:
            views = scene.views * (2 if way in TWICE else 1)
            options = {**(WAYS | TWICE)[way], "pixels": scene.pixels, "views": views}
            options["self_collisions"] = scene.within
            look = lambda m=meshes, o=options: abut.cull(m, **o)  # noqa: E731
            look()  # allocates and compiles
            culled, spent = _timed(look, REPEATS)
            found = np.concatenate([culled.pair_objects.numpy(), culled.pairs.numpy()], axis=1)
            yield Row(
                **facts,
                way=way,
                pixels=scene.pixels,
                faces_left=len(culled),
                pairs_left=len(found),
                object_pairs=culled.object_pairs.shape[0],
                lost_pairs=len(apart - set(map(tuple, found.tolist()))),
                queries=sum(row.queries for row in culled.statistics),
                cpu_ms=spent,
            )
        yield from _end_to_end(facts, frame, before, met, args.device)
        before = asked


def _end_to_end(
    facts: dict[str, Any], frame: Frame, before: Asked | None, met: set, device: str
) -> Iterator[Row]:
    """Contacts by culling and by hierarchies, of new meshes and of those of the frame before."""
    empty = dict.fromkeys(("faces_left", "pairs_left", "object_pairs", "queries"), "")
    calls = cull_contacts.ways(frame, before, SCENES[facts["scene"]].within, device)
    for call in calls.values():
        call()  # allocates and compiles
    for way, call in calls.items():
        found, spent = _timed(call, REPEATS)
        pixels = cull_contacts.PIXELS if "far" in way else 0
        lost = len(met - cull_contacts.rows_of(found))
        yield Row(**facts, **empty, way=way, pixels=pixels, lost_pairs=lost, cpu_ms=spent)


def _timed(call: Callable[[], Any], times: int = 1) -> tuple[Any, float]:
    """(Answer, least processor time [ms])."""
    best, answer = float("inf"), None
    for _ in range(times):
        start = time.process_time()
        answer = call()
        best = min(best, 1e3 * (time.process_time() - start))
    return answer, round(best, 2)


def _write(path: Path, scene: str, rows: list[Row]) -> None:
    """Write rows, in place of older ones of the same scene."""
    names = [field.name for field in fields(Row)]
    lines: list[dict[str, Any]] = []
    if path.is_file():
        with path.open(newline="") as file:
            lines = [old for old in csv.DictReader(file) if old["scene"] != scene]
    lines += [asdict(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    sys.exit(main())
