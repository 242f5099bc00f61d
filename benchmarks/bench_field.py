"""Distance fields, built: ``python -m benchmarks.bench_field --device cpu``.

The field of a model with its sign at every sample, exact everywhere (``full``), or within four
cells of the surface (``band``). ``--rebuild`` times frames of a closed knot of 50,000 faces that
deforms: ``mesh.deform`` and ``field.rebuild`` of a band of four cells. ``--readback`` times copies
of whole grids to the host on CUDA, as table 1 of Morvan et al. 2008.

MeshLib makes a volume of its own over the same grid; libigl and, on the CPU, Warp answer ``--few``
random samples, and their times are scaled up. On CUDA Warp answers all samples, in the order of the
grid. Distances are compared first.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut import cases
from abut.sdf.grid import box_around
from benchmarks.bench_closest_point import Job, _version, of_libigl, of_warp
from benchmarks.cases import _gem, _model
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

AGREED = {"libigl": 1e-6, "meshlib": 1e-4, "warp": 1e-4}  # of the model's size
PACKAGES = {"abut": "abut", "libigl": "libigl", "meshlib": "meshlib", "warp": "warp-lang"}
MODELS = ("bunny_69k", "armadillo_86k", "dragon_202k")


class Case:
    """A model and the grid of its field."""

    def __init__(self, name: str, resolution: int, device: str) -> None:
        self.prefix, self.vertices, self.faces = _model(f"models/{name}.ply", _gem)
        self.name, self.resolution, self.device = name, resolution, device
        self.mesh = abut.Mesh(self.vertices, self.faces, device)
        self.box = box_around(self.mesh.bounds, resolution, None, None)
        self.size = float(np.ptp(self.vertices, axis=0).max())
        self.count = int(np.prod(self.box.shape))

    def samples(self, which: np.ndarray) -> np.ndarray:
        """Positions of some samples."""
        at = np.stack(np.unravel_index(which, self.box.shape), axis=1)
        return self.box.lower + self.box.spacing * at

    def job(self, points: np.ndarray) -> Job:
        """The samples as points to ask about."""
        arrays = self.vertices, self.faces, points
        return Job(self.name, "", self.device, *arrays, signed=True, few=len(points))


def of_meshlib(case: Case) -> Callable[[], Any]:
    """A volume of signed distances over the same grid, signs by winding number where open."""
    from meshlib import mrmeshnumpy, mrmeshpy

    mesh = mrmeshnumpy.meshFromFacesVerts(case.faces, case.vertices)
    mesh.getAABBTree()
    box, params = case.box, mrmeshpy.MeshToDistanceVolumeParams()
    origin = box.lower - 0.5 * box.spacing  # its samples are the middles of voxels
    params.vol.origin = mrmeshpy.Vector3f(*map(float, origin))
    params.vol.voxelSize = mrmeshpy.Vector3f(*[float(box.spacing)] * 3)
    params.vol.dimensions = mrmeshpy.Vector3i(*box.shape)
    modes = mrmeshpy.SignDetectionMode
    closed = case.mesh.watertight
    params.dist.signMode = modes.ProjectionNormal if closed else modes.HoleWindingRule
    params.dist.minDistSq, params.dist.maxDistSq = 0.0, 1e30

    def call() -> Any:
        return mrmeshpy.meshToDistanceVolume(mesh, params)

    return call


def main(argv: list[str] | None = None) -> int:
    """Run all jobs; 1 if libigl contradicts abut."""
    parser = argparse.ArgumentParser(prog="bench_field", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--resolution", type=int, default=256)
    parser.add_argument("--few", type=int, default=50_000, help="samples for slow libraries")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=30.0, help="seconds a library and job")
    parser.add_argument("--peers", nargs="*", choices=list(AGREED), default=list(AGREED))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rebuild", action="store_true", help="frames of a deforming knot alone")
    parser.add_argument("--readback", action="store_true", help="copies of grids alone")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    rows, wrong = [], False
    if args.rebuild or args.readback:
        rows = rebuild_rows(args) if args.rebuild else []
        rows += readback_rows(args) if args.readback else []
        print_rows("field", rows)
        args.models = ()
    for name in args.models:
        found, bad = run_case(Case(name, args.resolution, args.device), args)
        print_rows(f"field_{name}", found)
        rows, wrong = rows + found, wrong | bad
    out = args.out or RESULTS / machine_name(args.device) / "field.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


def rebuild_rows(args: argparse.Namespace) -> list[Row]:
    """Time frames of a deforming mesh: its refit, and its field rebuilt in place."""
    knot = cases.torus_knot(500, 50)
    mesh = abut.Mesh(*knot, args.device)
    longest = float(np.ptp(knot.vertices, axis=0).max())
    spacing = 1.2 * longest / (args.resolution - 1)
    field = abut.DistanceField(mesh, spacing=spacing, margin=0.1 * longest, band=4 * spacing)
    rows = []
    for name in ("frame", "rebuild"):
        times = []
        for k in range(3 * args.rounds):
            moved = knot.vertices * [1.0, 1.0 + 0.02 * np.sin(0.3 * k), 1.0]
            wp.synchronize()
            start = time.perf_counter()
            mesh.deform(moved)
            if name == "rebuild":
                abut.closest_point(mesh, knot.vertices[:1])  # refits the hierarchy
                wp.synchronize()
                start = time.perf_counter()
            field.rebuild(mesh)
            wp.synchronize()
            times.append((time.perf_counter() - start) * 1e3)
        times = times[3:]
        row = Row("field_knot_50k", f"{name}{args.resolution}", "abut", args.device)
        row.ms_min, row.ms_median, row.rounds = min(times), float(np.median(times)), len(times)
        row.answer_size, row.version = int(np.prod(field.box.shape)), _version("abut")
        rows.append(row)
    return rows


def readback_rows(args: argparse.Namespace) -> list[Row]:
    """Time the copy of four float32 channels of n^3 samples to the host."""
    rows = []
    for n in (64, 128, 256, 512):
        grid = wp.zeros((n, n, n), dtype=wp.vec4f, device=args.device)
        host = wp.empty_like(grid, device="cpu", pinned=True)
        timed = Timed(lambda grid=grid, host=host: wp.copy(host, grid), args.device)
        measure([timed], args.rounds, args.budget)
        row = Row("readback", str(n), "warp", args.device)
        row.ms_min, row.ms_median = timed.ms_min, timed.ms_median
        row.rounds, row.answer_size, row.version = len(timed.samples), n**3, _version("warp-lang")
        rows.append(row)
    return rows


def run_case(case: Case, args: argparse.Namespace) -> tuple[list[Row], bool]:
    """Check, then time in turns."""
    entries = _entries(case, args)
    rows, wrong = [], False
    ours = np.empty(0)
    for name, variant, which, timed in entries:
        found = _distances(timed.first(), case)
        ours = found if not len(ours) else ours
        row = Row(f"field_{case.name}", case.prefix + variant, name, timed.device)
        row.answer_size, row.version = case.count, _version(PACKAGES[name])
        row.agrees = "reference"
        if name != "abut":
            found = found if len(found) == len(which) else found[which]
            off = int((np.abs(found - ours[which]) > AGREED[name] * case.size).sum())
            row.agrees = f"{off} of {len(which)} off" if off else "yes"
            wrong |= name == "libigl" and off > 0
        rows.append(row)
    measure([timed for *_, timed in entries], args.rounds, args.budget)
    for row, (*_, timed) in zip(rows, entries, strict=True):
        row.ms_min, row.ms_median, row.rounds = timed.ms_min, timed.ms_median, len(timed.samples)
    set_ratios(rows, {"abut", "warp"})
    return rows, wrong


def _entries(case: Case, args: argparse.Namespace) -> list[tuple[str, str, np.ndarray, Timed]]:
    """(library, variant, samples it is compared at, what is timed)."""
    which = np.random.default_rng(1).integers(case.count, size=args.few)
    few, share = case.job(case.samples(which)), args.few / case.count
    variant, band = f"full{case.resolution}", 4 * case.box.spacing

    def build(**options: Any) -> Callable[[], Any]:
        return lambda: abut.DistanceField(case.mesh, resolution=case.resolution, **options).distance

    entries = [
        ("abut", variant, which, Timed(build(), case.device)),
        ("abut", f"band{case.resolution}", which, Timed(build(band=band), case.device)),
    ]
    for name in args.peers:
        try:
            if name == "libigl":
                timed = Timed(of_libigl(few)[0], "cpu", steps=share)
            elif name == "meshlib":
                timed = Timed(of_meshlib(case), "cpu")
            elif case.device == "cpu":
                timed = Timed(of_warp(few)[0], "cpu", steps=share)
            else:
                every = case.job(case.samples(np.arange(case.count)))
                timed = Timed(of_warp(every)[0], case.device)
        except ImportError:
            print(f"{name}: not installed, skipped")
            continue
        entries.append((name, variant, which, timed))
    return entries


def _distances(result: Any, case: Case) -> np.ndarray:
    if isinstance(result, np.ndarray):
        return result
    if isinstance(result, wp.array):
        return result.numpy().astype(np.float64).reshape(-1)
    from meshlib import mrmeshnumpy

    volume = mrmeshnumpy.getNumpy3Darray(result)
    return np.asarray(volume, dtype=np.float64).reshape(case.box.shape).reshape(-1)


if __name__ == "__main__":
    sys.exit(main())
