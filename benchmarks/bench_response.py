"""Two identical models, turned and brought together: ``python -m benchmarks.bench_response``.

The protocol of Zachmann 1998 as in Morvan et al. 2008, section 5.1. Distance 1: shifted along x
until the models just do not touch; 0: one upon the other; 2: a length of the model farther than 1.
At each distance one model is turned all the way around y and around z, ``--orientations`` in all,
and each orientation is a call of its own. Collision (``response``, distances 0 to 1) and proximity
(``closest``, 1 to 2), as the paper's table 2 and figures 8 to 11. ``--batch``: also all
orientations of a distance in one call.

Peers: the field at the vertices alone (the paper's "CPU distance fields"), MeshLib's signed
distances of the vertices, and Warp's own ``mesh_query_point`` at abut's samples, without a field.
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
from abut.field.tape import parts_of
from benchmarks.cases import _gem, _model
from benchmarks.competition import QUIET, RESULTS
from benchmarks.machine import machine_name
from benchmarks.ours import commit
from benchmarks.plots import line_plot
from benchmarks.rows import Row, print_table, write_csv

wp.set_module_options({"enable_backward": False})

MODELS = {
    "cow": "cow_5k",
    "bunny": "bunny_69k",
    "horse": "horse_97k",
    "dragon": "dragon_202k",
}
COLLISION = {  # without early out, with the paper's, with abut's own; other samples
    "nothing": {"early_out": "nothing"},
    "depth": {"early_out": "depth"},
    "bound": {"early_out": "bound"},
    "faces": {"sampling": "faces"},
}
PROXIMITY = {"views": {"sampling": "views"}, "dominant": {}, "faces": {"sampling": "faces"}}
PEERS = ("vertices", "meshlib", "warp")
Call = Callable[[np.ndarray], Any]


class Setting:
    """A model, its fields, and where its twin stands at each distance."""

    def __init__(self, name: str, device: str, resolution: int) -> None:
        self.prefix, self.vertices, self.faces = _model(f"models/{MODELS[name]}.ply", _gem)
        self.mesh = abut.Mesh(self.vertices, self.faces, device)
        self.size = np.ptp(self.mesh.bounds, axis=0)
        self.middle = self.mesh.bounds.mean(axis=0)
        self.touch = self._touching()
        around = float(self.size.max())
        self.near = abut.DistanceField(self.mesh, resolution=resolution)
        self.wide = abut.DistanceField(self.mesh, resolution=resolution, margin=around)

    def poses(self, distance: float, count: int) -> np.ndarray:
        """(count, 4, 4): half of them about y, half about z."""
        half = count // 2
        angles = np.arange(half) * 2 * np.pi / half
        turns = [_turn(axis, angle) for axis in (1, 2) for angle in angles]
        beyond = max(distance - 1, 0.0) * self.size[0]
        shift = np.array([min(distance, 1.0) * self.touch + beyond, 0, 0])
        poses = np.tile(np.eye(4), (2 * half, 1, 1))
        poses[:, :3, :3] = turns
        poses[:, :3, 3] = self.middle + shift - np.array(turns) @ self.middle
        return poses

    def _touching(self) -> float:
        """The least shift along x at which the models do not meet, to a thousandth."""
        low, high = 0.0, 1.01 * self.size[0]
        while high - low > 1e-3 * self.size[0]:
            pose = np.eye(4)
            pose[0, 3] = (low + high) / 2
            met = bool(abut.collide(self.mesh, self.mesh, pose_b=pose, first=True))
            low, high = (pose[0, 3], high) if met else (low, pose[0, 3])
        return high


def of_vertices(setting: Setting, collision: bool, pixels: int) -> Call:
    """The field at the vertices: their depths added up, or the least distance."""
    field = setting.near if collision else setting.wide
    points = setting.vertices.astype(np.float64)

    def call(pose: np.ndarray) -> Any:
        found = field.sample(points @ pose[:3, :3].T + pose[:3, 3])
        distance = found.distance.numpy()
        if not collision:
            return float(distance.min())
        inside = distance < 0
        return (distance[inside, None] * found.gradient.numpy()[inside]).sum(axis=0)

    return call


def of_meshlib(setting: Setting, collision: bool, pixels: int) -> Call:
    """``findSignedDistances`` of the vertices, against the mesh itself."""
    from meshlib import mrmeshnumpy, mrmeshpy

    mesh = mrmeshnumpy.meshFromFacesVerts(setting.faces, setting.vertices)
    mesh.getAABBTree()
    points = setting.vertices.astype(np.float64)

    def call(pose: np.ndarray) -> Any:
        placed = (points @ pose[:3, :3].T + pose[:3, 3]).astype(np.float32)
        cloud = mrmeshnumpy.pointCloudFromPoints(placed)
        found = mrmeshpy.findSignedDistances(mesh, cloud.points)
        return found.vec[0] if found.size() else None

    return call


@wp.kernel
def query_kernel(
    mesh: wp.uint64,
    points: wp.array[wp.vec3f],
    pose: wp.mat44f,
    limit: wp.float32,
    nearest_out: wp.array[wp.float32],
    force_out: wp.array[wp.vec3f],
):
    """Warp's own signed search, at one sample."""
    p = wp.transform_point(pose, points[wp.tid()])
    query = wp.mesh_query_point_sign_normal(mesh, p, limit)
    if query.result:
        way = p - wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        distance = query.sign * wp.length(way)
        if distance < 0.0:
            wp.atomic_add(force_out, 0, way)
        if distance < nearest_out[0]:
            wp.atomic_min(nearest_out, 0, distance)


def of_warp(setting: Setting, collision: bool, pixels: int) -> Call:
    """Samples as abut takes them from faces; a search of the mesh for each, no field."""
    device = setting.mesh.device
    field = setting.near if collision else setting.wide
    pixel = field.box.spacing * (max(field.box.shape) - 1) / pixels
    samples, _ = parts_of(setting.vertices.astype(np.float64), setting.faces, pixel)
    points = wp.array(samples, dtype=wp.vec3f, device=device)
    mesh = wp.Mesh(
        wp.array(setting.vertices, dtype=wp.vec3f, device=device),
        wp.array(setting.faces.reshape(-1), dtype=wp.int32, device=device),
    )
    nearest = wp.zeros(1, dtype=wp.float32, device=device)
    force = wp.zeros(1, dtype=wp.vec3f, device=device)
    limit = float(setting.size.max()) * (0.5 if collision else 3.0)

    def call(pose: np.ndarray, _held: Any = mesh) -> Any:
        nearest.fill_(1e30)
        force.zero_()
        inputs = [mesh.id, points, wp.mat44f(pose), limit, nearest, force]
        wp.launch(query_kernel, points.shape[0], inputs, device=device)
        return force.numpy() if collision else float(nearest.numpy()[0])

    return call


OTHERS = {"vertices": of_vertices, "meshlib": of_meshlib, "warp": of_warp}


def ours(setting: Setting, collision: bool, pixels: int, options: dict[str, str]) -> Call:
    """``response`` or ``closest``, a pose a call."""
    if collision:
        return lambda pose: setting.near.response(setting.mesh, pose, pixels=pixels, **options)
    return lambda pose: setting.wide.closest(setting.mesh, pose, pixels=pixels, **options)


def average(call: Call, poses: np.ndarray, budget: float) -> tuple[float, int]:
    """Milliseconds a call, and of how many: evenly spread ones where time is short."""
    call(poses[0])
    start = time.perf_counter()
    call(poses[len(poses) // 2])
    once = time.perf_counter() - start
    count = int(np.clip(budget / max(once, 1e-7), 1, len(poses)))
    chosen = poses[np.linspace(0, len(poses) - 1, count).astype(int)]
    start = time.perf_counter()
    for pose in chosen:
        call(pose)
    return (time.perf_counter() - start) / count * 1e3, count


def check(setting: Setting, orientations: int) -> float:
    """The greatest error of ``closest`` beside ``abut.distance``, in cells of the field."""
    worst = 0.0
    for distance in (1.05, 1.5, 2.0):
        for pose in setting.poses(distance, orientations)[:: max(orientations // 8, 1)]:
            true = abut.distance(setting.mesh, setting.mesh, pose_b=pose).value
            if true > 0:
                found = setting.wide.closest(setting.mesh, pose).value
                worst = max(worst, abs(found - true) / setting.wide.box.spacing)
    return worst


def main(argv: list[str] | None = None) -> int:
    """Run the protocol; 1 if a proximity is off by more than a cell."""
    parser = argparse.ArgumentParser(prog="bench_response", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["cow", "bunny"])
    parser.add_argument("--pixels", nargs="+", type=int, default=[512, 1024, 2048])
    parser.add_argument("--orientations", type=int, default=720)
    parser.add_argument("--steps", type=int, default=5, help="distances from 0 to 1, and to 2")
    parser.add_argument("--resolution", type=int, default=256)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--budget", type=float, default=1.0, help="seconds a distance and method")
    parser.add_argument("--batch", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    out = args.out or RESULTS / machine_name(args.device)
    wrong = False
    for name in args.models:
        setting = Setting(name, args.device, args.resolution)
        off = check(setting, args.orientations)
        print(f"{name}: closest is off by at most {off:.2f} of a cell beside abut.distance")
        wrong |= off > 1.0
        rows = measured(setting, name, args, out)
        write_csv(out / "response.csv", rows)
    print(f"written to {out}")
    return int(wrong)


def measured(setting: Setting, name: str, args: argparse.Namespace, out: Path) -> list[Row]:
    """Rows of a model: an average over distances for each method, and the curves at 1024 pixels."""
    rows: list[Row] = []
    for collision in (True, False):
        kind = "collision" if collision else "proximity"
        variants = COLLISION if collision else PROXIMITY
        spread = np.linspace(0, 1, args.steps) + (0 if collision else 1)
        methods: list[tuple[str, str, int, Call]] = [
            ("abut", variant, pixels, ours(setting, collision, pixels, options))
            for pixels in args.pixels
            for variant, options in variants.items()
        ]
        for peer in args.peers:
            try:
                methods.append(
                    (
                        peer,
                        "samples" if peer == "warp" else "vertices",
                        1024,
                        OTHERS[peer](setting, collision, 1024),
                    )
                )
            except ImportError:
                print(f"{peer}: not installed, skipped")
        curves: dict[str, list[tuple[float, float]]] = {}
        for library, variant, pixels, call in methods:
            spans = [
                average(call, setting.poses(distance, args.orientations), args.budget)
                for distance in spread
            ]
            times = [ms for ms, _ in spans]
            row = Row(f"{kind}_{name}", f"{setting.prefix}{variant}_{pixels}", library, args.device)
            row.ms_min, row.ms_median = min(times), float(np.mean(times))
            row.rounds = sum(count for _, count in spans)
            row.version = commit() if library == "abut" else ""
            rows.append(row)
            if pixels == 1024:
                label = variant if library == "abut" else library
                curves[label] = list(zip(spread.tolist(), times, strict=True))
        if args.batch:
            rows += batched(setting, kind, name, spread, args)
        _draw(out, kind, name, curves, variants)
    table = [
        [r.job, r.variant, r.library, f"{r.ms_median:.4g}", f"{r.ms_min:.4g}", str(r.rounds)]
        for r in rows
    ]
    print_table(name, ["job", "variant", "library", "mean ms", "best distance", "calls"], table)
    return rows


def batched(
    setting: Setting, kind: str, name: str, spread: np.ndarray, args: argparse.Namespace
) -> list[Row]:
    """All orientations of a distance in one call, at 1024 pixels."""
    call = ours(setting, kind == "collision", 1024, {})
    times = []
    for distance in spread:
        poses = setting.poses(distance, args.orientations)
        call(poses)
        start = time.perf_counter()
        call(poses)
        times.append((time.perf_counter() - start) * 1e3 / len(poses))
    row = Row(f"{kind}_{name}", f"{setting.prefix}batch_1024", "abut", args.device)
    row.ms_min, row.ms_median, row.rounds = min(times), float(np.mean(times)), len(times)
    row.version = commit()
    return [row]


def _draw(out: Path, kind: str, name: str, curves: dict, variants: dict) -> None:
    """The paper's figures 8 or 9 (beside others), and 10 or 11 (abut's ways)."""
    own = {label: line for label, line in curves.items() if label in variants}
    best = "bound" if kind == "collision" else "dominant"
    beside = {
        label: line for label, line in curves.items() if label not in variants or label == best
    }
    for label, lines in (("beside", beside), ("ways", own)):
        path = out / f"{kind}_{name}_{label}.svg"
        line_plot(path, f"{kind}, {name}, 1024 pixels", "distance", "ms a query", lines)


def _turn(axis: int, angle: float) -> np.ndarray:
    turn = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turn[i, i] = turn[j, j] = np.cos(angle)
    turn[j, i] = np.sin(angle)
    turn[i, j] = -turn[j, i]
    return turn


if __name__ == "__main__":
    sys.exit(main())
