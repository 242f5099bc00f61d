"""Closest points beside other libraries: ``python -m benchmarks.bench_closest_point --device cpu``.

Points are random in the model's box enlarged by a fifth (``box``), at a hundredth of its size from
its faces (``near``), or a grid over that box (``grid``). The others answer ``--few`` of
them, and their times are scaled up; abut, and Warp on CUDA, answer all. Distances are
compared first: libigl is in float64 as abut is, the others in float32.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from benchmarks.cases import _gem, _model
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.ours import commit
from benchmarks.peers.warp_mesh import query_kernel
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

CUDA_GRID, CPU_GRID = 256, 96
AGREED = {"libigl": 1e-9, "meshlib": 1e-4, "warp": 1e-4}  # of the model's size


@dataclass(frozen=True)
class Job:
    """Points around a model; the first few of them for slow libraries."""

    name: str
    variant: str
    device: str
    vertices: np.ndarray
    faces: np.ndarray
    points: np.ndarray
    signed: bool
    few: int

    @property
    def size(self) -> float:
        return float(np.ptp(self.vertices, axis=0).max())


def of_abut(job: Job) -> tuple[Callable[[], Any], int]:
    """All points, on the device."""
    mesh = abut.Mesh(job.vertices, job.faces, job.device)
    points = wp.array(job.points, dtype=wp.vec3d, device=job.device)
    return lambda: abut.closest_point(mesh, points, signed=job.signed).distance, len(job.points)


def of_warp(job: Job) -> tuple[Callable[[], Any], int]:
    """All points, unsorted as they come; on the CPU one thread, so fewer points."""
    count = len(job.points) if job.device != "cpu" else job.few
    closed = abut.Mesh(job.vertices, job.faces, "cpu").watertight
    mesh = wp.Mesh(
        wp.array(job.vertices, dtype=wp.vec3f, device=job.device),
        wp.array(job.faces.reshape(-1), dtype=wp.int32, device=job.device),
        support_winding_number=job.signed and not closed,
    )
    points = wp.array(job.points[:count], dtype=wp.vec3f, device=job.device)
    out = wp.empty(count, dtype=wp.float32, device=job.device)

    def call(_held: Any = mesh) -> wp.array:
        inputs = [mesh.id, points, int(job.signed) * (1 if closed else 2)]
        wp.launch(query_kernel, count, inputs, [out], device=job.device)
        return out

    return call, count


def of_libigl(job: Job) -> tuple[Callable[[], Any], int]:
    """Trees are built in every call; they are a small part of it.

    Its signed distances by winding number are scaled by how sure they are, so for open meshes the
    distance and the winding number are asked for apart.
    """
    import igl

    vertices, points = job.vertices.astype(np.float64), job.points[: job.few]
    kind = igl.SIGNED_DISTANCE_TYPE_PSEUDONORMAL

    def unsigned() -> np.ndarray:
        return np.sqrt(igl.point_mesh_squared_distance(points, vertices, job.faces)[0])

    def by_normals() -> np.ndarray:
        return igl.signed_distance(points, vertices, job.faces, kind)[0]

    def by_winding() -> np.ndarray:
        number = igl.fast_winding_number(vertices, job.faces, points)
        return np.where(np.abs(number) > 0.5, -1.0, 1.0) * unsigned()

    if not job.signed:
        return unsigned, job.few
    closed = abut.Mesh(job.vertices, job.faces, "cpu").watertight
    return by_normals if closed else by_winding, job.few


def of_meshlib(job: Job) -> tuple[Callable[[], Any], int]:
    """``findSignedDistances``, which is always signed."""
    from meshlib import mrmeshnumpy, mrmeshpy

    if not job.signed:
        return lambda: None, 0
    mesh = mrmeshnumpy.meshFromFacesVerts(job.faces, job.vertices)
    mesh.getAABBTree()
    cloud = mrmeshnumpy.pointCloudFromPoints(job.points[: job.few].astype(np.float32))

    def call() -> Any:
        return mrmeshpy.findSignedDistances(mesh, cloud.points)

    return call, job.few


LIBRARIES = {
    "abut": ("abut", of_abut),
    "libigl": ("libigl", of_libigl),
    "meshlib": ("meshlib", of_meshlib),
    "warp": ("warp-lang", of_warp),
}


def main(argv: list[str] | None = None) -> int:
    """Run all jobs; 1 if libigl contradicts abut."""
    parser = argparse.ArgumentParser(prog="bench_closest_point", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=50_000, help="points for slow libraries")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds a library and job")
    parser.add_argument("--peers", nargs="*", choices=list(AGREED), default=list(AGREED))
    parser.add_argument("--jobs", nargs="+", help="variants, such as box_signed; default: all")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    rows, wrong = [], False
    for job in jobs(args):
        found, bad = run_job(job, ["abut", *args.peers], args)
        print_rows(job.name, found)
        rows, wrong = rows + found, wrong | bad
    out = args.out or RESULTS / machine_name(args.device) / "closest_point.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(wrong)


def jobs(args: argparse.Namespace) -> list[Job]:
    """Models, points and questions."""
    found = []
    for name in ("armadillo_86k", "bunny_69k"):
        prefix, vertices, faces = _model(f"models/{name}.ply", _gem)
        side = CUDA_GRID if args.device != "cpu" else CPU_GRID
        for cloud in ("box", "near", f"grid{side}"):
            labels = {prefix + cloud: False, prefix + cloud + "_signed": True}
            wanted = {k: v for k, v in labels.items() if args.jobs is None or k in args.jobs}
            points = _points(cloud, vertices, faces, args.points, side) if wanted else np.empty(0)
            few = min(args.few, len(points))
            job = f"closest_point_{name}"
            for label, signed in wanted.items():
                found.append(Job(job, label, args.device, vertices, faces, points, signed, few))
    return found


def _points(
    cloud: str, vertices: np.ndarray, faces: np.ndarray, count: int, side: int
) -> np.ndarray:
    """A cloud by its name, the same in every run."""
    rng = np.random.default_rng(1)
    if cloud == "box":
        return _box(vertices, rng.random((count, 3)))
    if cloud == "near":
        return _near(vertices, faces, count, rng)
    return _box(vertices, rng.permutation(_grid(side)))


def run_job(job: Job, names: list[str], args: argparse.Namespace) -> tuple[list[Row], bool]:
    """Check, then time in turns."""
    entries, rows, wrong = [], [], False
    for name in names:
        try:
            call, count = LIBRARIES[name][1](job)
        except ImportError:
            print(f"{name}: not installed, skipped")
            continue
        if count:
            device = job.device if name in ("abut", "warp") else "cpu"
            entries.append((name, count, Timed(call, device, steps=count / len(job.points))))
    ours = None
    for name, count, timed in entries:
        distance = _numpy(timed.first())
        ours = distance if ours is None else ours
        apart = np.abs(distance - ours[:count])
        off = int((apart > AGREED.get(name, 0.0) * job.size).sum())
        row = Row(job.name, job.variant, name, timed.device)
        row.answer_size = float(np.abs(distance).sum() / count / job.size)
        row.agrees = f"{off} of {count} off" if off else "yes"
        row.agrees = "reference" if name == "abut" else row.agrees
        row.version = _version(LIBRARIES[name][0])
        wrong |= name == "libigl" and off > 0
        rows.append(row)
    measure([timed for _, _, timed in entries], args.rounds, args.budget)
    for row, (_, _, timed) in zip(rows, entries, strict=True):
        row.ms_min, row.ms_median, row.rounds = timed.ms_min, timed.ms_median, len(timed.samples)
    set_ratios(rows, {"abut", "warp"})
    return rows, wrong


def _box(vertices: np.ndarray, share: np.ndarray) -> np.ndarray:
    low, high = vertices.min(axis=0).astype(np.float64), vertices.max(axis=0).astype(np.float64)
    points = (low + high) / 2 + (share - 0.5) * 1.2 * (high - low)
    return points.astype(np.float32).astype(np.float64)


def _near(vertices: np.ndarray, faces: np.ndarray, count: int, rng: Any) -> np.ndarray:
    middles = vertices[faces].mean(axis=1)[rng.integers(len(faces), size=count)]
    off = rng.normal(scale=0.01, size=(count, 3)) * np.ptp(vertices, axis=0).max()
    return (middles + off).astype(np.float32).astype(np.float64)


def _grid(side: int) -> np.ndarray:
    axis = (np.arange(side) + 0.5) / side
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)


def _numpy(result: Any) -> np.ndarray:
    if isinstance(result, np.ndarray):
        return result
    if isinstance(result, wp.array):
        return result.numpy().astype(np.float64)
    return np.array([result.vec[i] for i in range(result.size())])  # MeshLib's own vector


def _version(package: str) -> str:
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:  # run from a checkout
        version = ""
    return version + (f"+{commit()}" if package == "abut" else "")


if __name__ == "__main__":
    sys.exit(main())
