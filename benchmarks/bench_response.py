"""Two identical models at varying distances and rotations: ``python -m benchmarks.bench_response``.

The protocol of Zachmann 1998 as in Morvan et al. 2008, section 5.1. Distance 1: shifted along x
until the models just do not touch; 0: one upon the other; 2: a length of the model farther than 1.
At each distance one model is turned all the way around y and around z, ``--orientations`` in all,
and each orientation is a call of its own. Collision (``response``, distances 0 to 1) and proximity
(``closest``, 1 to 2). Written: ``response.csv`` (means over distances), ``response_curves.csv``
(each distance, with the number of calls: fewer than asked for where ``--budget`` ran out; on
the CPU milliseconds are processor time of all threads together, which others' jobs disturb less),
``response_table.md`` as the paper's table 2, and plots as its figures 8 to 11.
"""

import argparse
import csv
import sys
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import warp as wp

import abut
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.ours import commit
from benchmarks.plots import line_plot
from benchmarks.response_models import MODELS, PEERS, VARIANTS, Call, TwinModels
from benchmarks.rows import Row, machine_name, print_table, write_csv

COLLISION = {  # without early out, with the paper's, with abut's own; other samples
    "nothing": {"early_out": "nothing"},
    "depth": {"early_out": "depth"},
    "bound": {"early_out": "bound"},
    "faces": {"sampling": "faces"},
    "vertices": {"sampling": "vertices"},  # its pixels mean nothing
}
PROXIMITY = {
    "views": {"sampling": "views"},
    "dominant": {},
    "faces": {"sampling": "faces"},
    "vertices": {"sampling": "vertices"},
}
KINDS = {"collision": COLLISION, "proximity": PROXIMITY}
BEST = {"collision": "bound", "proximity": "dominant"}
PICTURED = 1024  # pixels of the plots, and of the peers


@dataclass
class Point:
    """The mean time of a query at a distance."""

    kind: str
    model: str
    library: str
    variant: str
    pixels: int
    distance: float
    ms: float
    calls: int


def ours(models: TwinModels, kind: str, pixels: int, options: dict[str, str]) -> Call:
    """Return the call of ``response`` or ``closest`` for one pose."""
    if kind == "collision":
        return lambda pose: models.near.response(models.mesh, pose, pixels=pixels, **options)
    return lambda pose: models.wide.closest(models.mesh, pose, pixels=pixels, **options)


def average(call: Call, poses: np.ndarray, budget: float, device: str) -> tuple[float, int]:
    """Return mean milliseconds per call and the number of calls, evenly spread over the poses."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    call(poses[0])
    start = clock()
    call(poses[len(poses) // 2])
    once = clock() - start
    count = int(np.clip(budget / max(once, 1e-7), 1, len(poses)))
    chosen = poses[np.linspace(0, len(poses) - 1, count).astype(int)]
    start = clock()
    for pose in chosen:
        call(pose)
    return (clock() - start) / count * 1e3, count


def check(models: TwinModels, orientations: int) -> float:
    """Return the greatest error of ``closest`` against ``abut.distance``, in field cells."""
    worst = 0.0
    for distance in (1.05, 1.5, 2.0):
        for pose in models.poses(distance, orientations)[:: max(orientations // 8, 1)]:
            true = abut.distance(models.mesh, models.mesh, pose_b=pose).value
            if true > 0:
                found = models.wide.closest(models.mesh, pose).value
                worst = max(worst, abs(found - true) / models.wide.box.spacing)
    return worst


def methods_of(
    models: TwinModels, kind: str, args: argparse.Namespace
) -> list[tuple[str, str, int, Call]]:
    """List library, variant, pixels and call of every method."""
    methods = [
        ("abut", variant, pixels, ours(models, kind, pixels, options))
        for pixels in args.pixels
        for variant, options in KINDS[kind].items()
        if not args.variants or variant in args.variants
    ]
    for peer in args.peers:
        try:
            call = PEERS[peer](models, kind == "collision", PICTURED)
        except ImportError:
            print(f"{peer}: not installed, skipped")
            continue
        variant = VARIANTS.get(peer, "vertices")
        methods.append((peer, variant, PICTURED, call))
    return methods


def measured(models: TwinModels, model: str, args: argparse.Namespace) -> list[Point]:
    """Time all methods of a model at all distances."""
    points = []
    for kind in KINDS:
        spread = np.linspace(0, 1, args.steps) + (kind == "proximity")
        for library, variant, pixels, call in methods_of(models, kind, args):
            budget = args.budget if library == "abut" else args.peer_budget
            for distance in spread.tolist():
                poses = models.poses(distance, args.orientations)
                spent = average(call, poses, budget, args.device)
                points.append(Point(kind, model, library, variant, pixels, distance, *spent))
    return points


def batched(models: TwinModels, model: str, args: argparse.Namespace) -> list[Row]:
    """Time all orientations of a distance in one batched call."""
    rows = []
    for kind in KINDS:
        call = ours(models, kind, PICTURED, {})
        times = []
        for distance in np.linspace(0, 1, args.steps) + (kind == "proximity"):
            poses = models.poses(distance, args.orientations)
            call(poses)
            start = time.perf_counter()
            call(poses)
            times.append((time.perf_counter() - start) * 1e3 / len(poses))
        row = Row(f"{kind}_{model}_batch", f"{models.prefix}{PICTURED}", "abut", args.device)
        row.ms_min, row.ms_median = min(times), float(np.mean(times))
        row.rounds, row.version = len(times) * args.orientations, commit()
        rows.append(row)
    return rows


def row_of(points: list[Point], models: TwinModels, device: str) -> Row:
    """Make the row of a method: its mean over distances, and its best distance."""
    one, times = points[0], [point.ms for point in points]
    name = f"{models.prefix}{one.variant}_{one.pixels}"
    row = Row(f"{one.kind}_{one.model}", name, one.library, device)
    row.ms_min, row.ms_median = min(times), float(np.mean(times))
    row.rounds = sum(point.calls for point in points)
    row.version = commit() if one.library == "abut" else ""
    return row


def by_method(points: list[Point]) -> list[list[Point]]:
    """Group points by curve."""
    groups: dict[tuple, list[Point]] = {}
    for p in points:
        groups.setdefault(curve_of(p), []).append(p)
    return list(groups.values())


def curve_of(p: Point) -> tuple:
    """Return what the points of a curve have in common."""
    return p.kind, p.model, p.library, p.variant, p.pixels


def older(path: Path, rows: list[Row]) -> list[Row]:
    """Return the rows in a file that are of the same jobs, but of other variants."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    jobs, done = {r.job for r in rows}, {(r.job, r.variant, r.library) for r in rows}
    return [
        Row(**line)
        for line in lines
        if line["job"] in jobs and (line["job"], line["variant"], line["library"]) not in done
    ]


def merged(path: Path, points: list[Point]) -> list[Point]:
    """Write these points with the older points of other curves; return all."""
    curves, kept = {curve_of(point) for point in points}, []
    if path.is_file():
        with path.open(newline="") as file:
            kept = [
                point
                for point in map(_point, csv.DictReader(file))
                if curve_of(point) not in curves
            ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Point.__annotations__)
        for point in kept + points:
            writer.writerow(f"{x:.4g}" if isinstance(x, float) else x for x in astuple(point))
    return kept + points


def _point(line: dict[str, str]) -> Point:
    kinds = Point.__annotations__.items()
    return Point(*(kind(line[name]) for name, kind in kinds))


def write_table(path: Path, points: list[Point], device: str) -> None:
    """Write the paper's table 2: mean milliseconds per method and size, one row per model."""
    own = [group for group in by_method(points) if group[0].library == "abut"]
    calls = sorted({point.calls for group in own for point in group})
    counts = f"{calls[0]}" if len(calls) == 1 else f"{calls[0]} to {calls[-1]}"
    kind_of_time = "Processor milliseconds" if device == "cpu" else "Milliseconds"
    lines = [f"{kind_of_time} a query, mean over distances; {counts} orientations each."]
    for kind, ways in KINDS.items():
        cell = {
            (g[0].model, g[0].variant, g[0].pixels): f"{np.mean([p.ms for p in g]):.3g}"
            for g in own
            if g[0].kind == kind
        }
        sizes = sorted({pixels for _, _, pixels in cell})
        columns = [(way, size) for way in ways for size in sizes]
        lines += ["", f"| {kind} | " + " | ".join(f"{w} {n}" for w, n in columns) + " |"]
        lines.append("| --- |" + " ---: |" * len(columns))
        for model in dict.fromkeys(model for model, _, _ in cell):
            lines.append(
                f"| {model} | " + " | ".join(cell.get((model, *c), "") for c in columns) + " |"
            )
    path.write_text("\n".join(lines) + "\n")


def draw(out: Path, points: list[Point]) -> None:
    """Draw the paper's figures 8 and 9 (against peers), 10 and 11 (abut's methods)."""
    shown = [group for group in by_method(points) if group[0].pixels == PICTURED]
    for kind, model in {(group[0].kind, group[0].model): None for group in shown}:
        ways, beside = {}, {}
        for group in shown:
            one = group[0]
            if (one.kind, one.model) != (kind, model):
                continue
            line = [(p.distance, p.ms) for p in group]
            if one.library == "abut":
                ways[one.variant] = line
            if one.library != "abut" or one.variant == BEST[kind]:
                beside[one.library] = line
            if one.library == "abut" and one.variant == "vertices":
                beside["abut vertices"] = line
        title = f"{kind}, {model}, {PICTURED} pixels"
        if ways:
            line_plot(out / f"{kind}_{model}_ways.svg", title, "distance", "ms a query", ways)
        path = out / f"{kind}_{model}_beside.svg"
        line_plot(path, title, "distance", "ms a query", beside, decades=True)


def main(argv: list[str] | None = None) -> int:
    """Run the protocol; 1 if a proximity is off by more than a cell."""
    parser = argparse.ArgumentParser(prog="bench_response", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["cow", "bunny"])
    parser.add_argument("--pixels", nargs="+", type=int, default=[512, 1024, 2048])
    parser.add_argument("--variants", nargs="*", default=[], help="of abut; none: all")
    parser.add_argument("--orientations", type=int, default=720)
    parser.add_argument("--steps", type=int, default=6, help="distances from 0 to 1, and to 2")
    parser.add_argument("--resolution", type=int, default=256)
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--budget", type=float, default=1.0, help="seconds a distance and method")
    parser.add_argument("--peer-budget", type=float, default=1.0, help="the same for peers")
    parser.add_argument("--batch", action="store_true", help="also one call for a distance")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    out = args.out or RESULTS / machine_name(args.device)
    wrong, points, rows = False, [], []
    for model in args.models:
        models = TwinModels(model, args.device, args.resolution)
        off = check(models, args.orientations)
        print(f"{model}: closest is off by at most {off:.2f} of a cell beside abut.distance")
        wrong |= off > 1.0
        found = measured(models, model, args)
        points += found
        rows += [row_of(group, models, args.device) for group in by_method(found)]
        rows += batched(models, model, args) if args.batch else []
        write_csv(out / "response.csv", [*older(out / "response.csv", rows), *rows])
        every = merged(out / "response_curves.csv", points)
        write_table(out / "response_table.md", every, args.device)
        draw(out, every)
    show = [
        [r.job, r.variant, r.library, f"{r.ms_median:.4g}", f"{r.ms_min:.4g}", str(r.rounds)]
        for r in rows
    ]
    print_table("response", ["job", "variant", "library", "mean", "best distance", "calls"], show)
    print(f"written to {out}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
