"""Clashes of a building from IFC files: ``python -m benchmarks.bench_clash``.

- ``hard``: parts of the four PCERT files that are more than 1 mm in each other, or equal.
- ``meet``: parts that share a point.
- ``clearance``: parts that meet or are closer than 50 mm.

``abut`` and ``ifcclash`` read the files within the time; ``abut_parts`` and ``trimesh`` (its
manager, FCL) begin with the same meshes in memory. abut's pairs that share a point are checked
against brute force over all pairs before anything is timed. ``agrees`` counts pairs that only the
library reports (+) and that only abut reports (-); ``--list`` names them.
"""

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import warp as wp

import abut
from abut.coordination.parts.part_table import PartTable
from abut.io import read_model
from benchmarks.cases import data_folder
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, write_csv
from benchmarks.timing import Timed, measure

NAMES = ("Architecture", "Hvac", "Landscaping", "Structural")
TOLERANCE, CLEARANCE = 0.001, 0.05
MODES = {"hard": "intersection", "meet": "collision", "clearance": "clearance"}  # of IfcClash
Pairs = set[tuple[str, ...]]


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="bench_clash", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--jobs", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds a library")
    parser.add_argument("--list", action="store_true", help="name the pairs that differ")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/clash.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder = data_folder()
    files = [folder / "ifc" / f"Building-{name}.ifc" for name in NAMES] if folder else []
    if not files or not all(file.is_file() for file in files):
        print("there are no IFC files; ABUT_DATA names the folder of models")
        return 0
    parts = PartTable.of_models([read_model(file) for file in files])
    wrong = brute(parts) != abut_pairs(parts, "meet", args.device)
    if wrong:
        print("ERROR: pairs that share a point differ from those of brute force")
    rows: list[Row] = []
    for job in args.jobs:
        found = job_rows(job, files, parts, args)
        print_rows(job, found)
        rows += found
    results = RESULTS / machine_name(args.device)
    write_csv(args.out or results / "clash.csv", rows)
    return int(wrong)


def job_rows(job: str, files: list[Path], parts: PartTable, args: argparse.Namespace) -> list[Row]:
    """Compare and time the libraries."""
    calls: dict[str, Callable[[], Pairs]] = {
        "abut": lambda: abut_pairs(files, job, args.device),
        "abut_parts": lambda: abut_pairs(parts, job, args.device),
    }
    try:
        from benchmarks.peers.ifcclash import clashing_pairs

        calls["ifcclash"] = lambda: clashing_pairs(files, MODES[job], TOLERANCE, CLEARANCE)
    except ImportError as error:
        print(f"IfcClash is not installed: {error}")
    if job == "meet":
        calls |= trimesh_call(parts)
    timed = {name: Timed(call, args.device) for name, call in calls.items()}
    answers = {name: one.first() for name, one in timed.items()}
    quick = [one for one in timed.values() if one.first_ms <= 1e3 * args.budget]
    measure(quick, args.rounds, args.budget)
    for one in timed.values():
        one.samples = one.samples or [one.first_ms]  # too slow to be called again
    rows = []
    for name, one in timed.items():
        more, less = answers[name] - answers["abut"], answers["abut"] - answers[name]
        same = "yes" if not (more or less) else f"+{len(more)} -{len(less)}"
        if args.list:
            list_pairs(f"{job}: only {name}", more, parts)
            list_pairs(f"{job}: not {name}", less, parts)
        least, middle = min(one.samples), float(np.median(one.samples))
        agrees = "reference" if name == "abut" else same
        size, count = len(answers[name]), len(one.samples)
        rows.append(Row("pcert", job, name, args.device, least, middle, count, size, agrees))
    return rows


def abut_pairs(files: list[Path] | PartTable, job: str, device: str) -> Pairs:
    """Pairs of GlobalIds by abut; linked parts are not left out."""
    rows = abut.clash(
        files,
        rules={"exclude": {"links": False}},
        clearance=CLEARANCE if job == "clearance" else 0.0,
        tolerance=TOLERANCE,
        touch=job != "hard",
        device=device,
        progress=_silent,
    )
    kept = rows.distance == 0.0 if job == "meet" else slice(None)
    return pairs_of(rows.a[kept], rows.b[kept])


def _silent(*about: object) -> None:
    """Draw no bar."""


def pairs_of(a: np.ndarray, b: np.ndarray) -> Pairs:
    """Pairs of GlobalIds of pairs of keys."""
    return {tuple(sorted(k.rpartition("/")[2] for k in row)) for row in zip(a, b, strict=True)}


def brute(parts: PartTable) -> Pairs:
    """Pairs that share a point, by all faces of all pairs of parts."""
    found = []
    for i, j in combinations(range(len(parts)), 2):
        poses = {"pose_a": parts.poses[i], "pose_b": parts.poses[j]}
        a, b = parts.mesh_of(i, "cpu"), parts.mesh_of(j, "cpu")
        if abut.collide(a, b, first=True, method="brute", **poses):
            found.append((i, j))
    rows = np.array(found, int).reshape(-1, 2)
    return pairs_of(parts.key[rows[:, 0]], parts.key[rows[:, 1]])


def trimesh_call(parts: PartTable) -> dict[str, Callable[[], Pairs]]:
    """The manager of trimesh, which is FCL's, over the same meshes."""
    try:
        import fcl  # noqa: F401
        import trimesh
    except ImportError:
        print("python-fcl is not installed")
        return {}
    manager = trimesh.collision.CollisionManager()
    for row in range(len(parts)):
        held = parts.part_meshes[parts.mesh[row]]
        mesh = trimesh.Trimesh(held.vertices, held.faces, process=False)
        manager.add_object(parts.key[row], mesh, parts.poses[row])

    def call() -> Pairs:
        _, names = manager.in_collision_internal(return_names=True)
        rows = np.array(sorted(names), object).reshape(-1, 2)
        return pairs_of(rows[:, 0], rows[:, 1])

    return {"trimesh": call}


def list_pairs(title: str, pairs: Pairs, parts: PartTable) -> None:
    """Print pairs by name and type."""
    keys = [key.rpartition("/")[2] for key in parts.key.tolist()]
    names = {key: f"{parts.type[k]} {parts.name[k]}" for k, key in enumerate(keys)}
    for pair in sorted(pairs):
        print(title, "|", " | ".join(names.get(key, key) for key in pair))


if __name__ == "__main__":
    raise SystemExit(main())
