"""Checks of a procedural plant out of core: ``python -m benchmarks.bench_scale``.

For every size a catalogue is written bay by bay, tiles are planned, and all pairs of near parts are
checked within a memory budget. The rows must be the planted clashes, all of them and no others.
``--workers 0`` is this process alone.

Everything is kept in ``--folder``, tile by tile: the same command goes on where it was interrupted.
The cost of a part is processor time of all tiles; peak memory is that of this process and all
workers, sampled twice a second. Making meshes is a part of the cost and is also reported alone.
"""

import argparse
import csv
import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from abut.cases.plant import CLEARANCE, Plant
from abut.coordination.checks.tile_checks import check_tiles, memory_of_process, plan_checks
from abut.coordination.parts.part_catalogue import PartCatalogue, write_part_catalogue
from abut.coordination.rules import Rules
from abut.scale.distribute import TileDone
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import machine_name

RULES = Rules.default(CLEARANCE, 1e-3)


@dataclass
class ScaleRow:
    """One size. Times in seconds, memory in bytes; empty where the run was resumed."""

    objects: int
    faces: int
    workers: int
    device: str
    budget: int
    tiles: int
    repeated: float  # parts of all tiles, for each part
    catalogue_s: float | str
    plan_s: float
    wall_s: float | str
    cpu_ms_per_object: float
    making_ms_per_object: float
    peak: int | str
    clashes: int
    correct: bool


@dataclass
class MemoryWatch:
    """Samples the resident memory of this process and its descendants."""

    peak: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "MemoryWatch":
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            self.peak = max(self.peak, resident_bytes())


def resident_bytes() -> int:
    """Resident memory of this process and its descendants, without mapped files."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(after[1]), []).append(int(path.parent.name))
    total, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        todo += parents.get(pid, [])
        try:
            pages = Path(f"/proc/{pid}/statm").read_text().split()
        except OSError:
            continue
        total += (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
    return total


def main(argv: list[str] | None = None) -> int:
    """Run, check, print, write the CSV. 1 if rows are wrong or memory exceeds the budget."""
    parser = argparse.ArgumentParser(prog="bench_scale", description=__doc__)
    parser.add_argument("--objects", type=float, nargs="+", default=[1e4, 3e4, 1e5])
    parser.add_argument("--workers", type=int, nargs="+", default=[0])
    parser.add_argument("--memory", type=float, default=3e9, help="bytes of all processes")
    parser.add_argument("--detail", type=float, default=1.0, help="1: about 1,100 faces a part")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, default=Path("bench_scale"))
    parser.add_argument("--out", type=Path, help="default: results/<machine>/scale.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    rows, wrong = [], False
    for objects in args.objects:
        for workers in args.workers:
            row = measure(int(objects), workers, args)
            rows.append(row)
            print(", ".join(f"{k}: {v}" for k, v in asdict(row).items()), flush=True)
            wrong |= not row.correct or (isinstance(row.peak, int) and row.peak > row.budget)
    out = args.out or RESULTS / machine_name(args.device) / "scale.csv"
    write_rows(out, rows)
    print(f"written to {out}")
    return int(wrong)


def measure(objects: int, workers: int, args: argparse.Namespace) -> ScaleRow:
    """One size with a number of workers."""
    memory, device = int(args.memory), args.device
    plant = Plant.of_size(objects, detail=args.detail)
    place = args.folder / f"{objects}, detail {args.detail:g}"
    start = time.perf_counter()
    made = not (place / "parts" / "catalogue.json").exists()
    if made:
        models = (plant.model(bay) for bay in range(len(plant)))
        parts = write_part_catalogue(models, place / "parts", source=plant)
    else:
        parts = PartCatalogue(place / "parts", plant)
    catalogue_s = round(time.perf_counter() - start, 2) if made else ""
    making = making_time(plant)
    start = time.perf_counter()
    budget = int(memory_of_process(memory, workers or None) * 0.6)
    plan = plan_checks(parts, RULES, budget, workers or 1)
    plan_s = time.perf_counter() - start
    run = place / f"{workers} workers, {memory} bytes, {device}"
    log = run / "tiles.jsonl"
    fresh = not log.exists()
    run.mkdir(parents=True, exist_ok=True)

    def progress(done: TileDone, total: int) -> None:
        with log.open("a") as file:
            file.write(json.dumps(done._asdict()) + "\n")
        print(f"  tile {done.number} of {total}: {done.cpu:.1f} s of processors", flush=True)

    start = time.perf_counter()
    with MemoryWatch() as watch:
        clashes = check_tiles(
            parts,
            RULES,
            run,
            device=device,
            memory=memory,
            workers=workers or None,
            resume=True,
            progress=progress,
        )
    wall_s = time.perf_counter() - start
    tiles = {done["number"]: done for done in map(json.loads, log.read_text().splitlines())}
    cpu = sum(done["cpu"] for done in tiles.values())
    planted = [found for bay in range(len(plant)) if (found := plant.planted(bay))]
    truth = sorted((found.a, found.b, found.verdict) for found in planted)
    found = list(zip(clashes.a, clashes.b, clashes.verdict, strict=True))
    return ScaleRow(
        objects=len(parts),
        faces=int(np.sum(parts.catalogue.face_count, dtype=np.int64)),
        workers=workers,
        device=device,
        budget=memory,
        tiles=len(plan),
        repeated=round(len(plan.members) / max(len(parts), 1), 3),
        catalogue_s=catalogue_s,
        plan_s=round(plan_s, 2),
        wall_s=round(wall_s, 1) if fresh else "",
        cpu_ms_per_object=round(1e3 * cpu / max(len(parts), 1), 3),
        making_ms_per_object=round(making, 3),
        peak=watch.peak if fresh else "",
        clashes=len(clashes),
        correct=found == truth,
    )


def making_time(plant: Plant) -> float:
    """Processor time of making the meshes of a part [ms]."""
    bays = range(0, len(plant), max(1, len(plant) // 20))
    start = time.process_time()
    count = sum(len(plant.model(bay).parts) for bay in bays)
    return 1e3 * (time.process_time() - start) / count


def write_rows(path: Path, rows: list[ScaleRow]) -> None:
    """Write rows; they replace older rows of the same size, workers and budget."""
    names = [*asdict(rows[0])]

    def key(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in ("objects", "faces", "workers", "device", "budget"))

    new = {key(asdict(row)): asdict(row) for row in rows}
    old = list(csv.DictReader(path.open())) if path.exists() else []
    kept = [row for row in old if key(row) not in new]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows([*kept, *new.values()])


if __name__ == "__main__":
    sys.exit(main())
