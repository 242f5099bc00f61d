"""How the cost of each verb grows: ``python -m benchmarks.bench_growth --device cpu``.

Grows the faces of two meshes, the objects of a scene, the poses of a batch, and the contacts of two
meshes of one size. Prints the time of every verb at every size and its exponent, the slope of
log(time) over log(size), and lists cliffs: steps that cost much more than the steps beside them. A
verb ends where its next size would take longer than ``--limit`` seconds. CPU times are processor
times of all threads, which other programs disturb least.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut import cases
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_table, write_csv

SIZES = {
    "faces": {"cpu": (10_000, 3_000_000), "cuda": (10_000, 20_000_000)},
    "objects": {"cpu": (100, 100_000), "cuda": (100, 1_000_000)},
    "poses": {"cpu": (1, 100_000), "cuda": (1, 100_000)},
    "contacts": {"cpu": (100, 1_000_000), "cuda": (100, 1_000_000)},
}
QUICK = 30  # times fewer at the most
PER_DECADE = 2
MOST_GROWTH = 1.5  # exponent of a step that no verb should exceed
CLIFF = 0.6  # exponent of a step beyond that of its neighbours
SOUP = 20_000  # faces of each of two meshes whose contacts grow
SHORTEST_S, LEAST_ROUNDS = 0.005, 3  # of a sample, and samples
Verbs = dict[str, Callable[[], Any]]


@dataclass
class Curve:
    """Times of one verb over sizes."""

    sweep: str
    verb: str
    sizes: list[float] = field(default_factory=list)
    samples: list[list[float]] = field(default_factory=list)  # ms

    @property
    def ms(self) -> np.ndarray:
        """The best time at each size."""
        return np.array([min(each) for each in self.samples])

    @property
    def exponents(self) -> np.ndarray:
        """Exponent of each step from one size to the next."""
        return np.diff(np.log(self.ms)) / np.diff(np.log(self.sizes))

    @property
    def exponent(self) -> float:
        """Slope of all logarithms; 0 where there is one size only."""
        if len(self.sizes) < 2:
            return 0.0
        return float(np.polyfit(np.log(self.sizes), np.log(self.ms), 1)[0])

    def next_ms(self, size: float) -> float:
        """The time expected at the next size."""
        if not self.sizes:
            return 0.0
        steepest = max([1.0, *self.exponents[-1:]])
        return self.ms[-1] * (size / self.sizes[-1]) ** steepest

    def cliffs(self) -> Iterator[str]:
        """Steps that cost much more than the steps beside them, or grow faster than allowed."""
        steps = self.exponents
        for k, step in enumerate(steps):
            beside = [*steps[max(k - 1, 0) : k], *steps[k + 1 : k + 2]]
            if step > MOST_GROWTH or (step > 1.0 and beside and step > max(beside) + CLIFF):
                low, high = self.sizes[k], self.sizes[k + 1]
                yield f"{self.sweep}, {self.verb}: exponent {step:.2f} from {low:g} to {high:g}"


def main(argv: list[str] | None = None) -> int:
    """Time all sweeps, print exponents and cliffs, write the CSV."""
    args = _arguments(argv)
    wp.config.log_level = QUIET
    curves = [curve for sweep in args.sweeps for curve in _sweep(sweep, args)]
    cliffs = [line for curve in curves for line in curve.cliffs()]
    print("\n".join(["cliffs:", *cliffs]) if cliffs else "no cliffs")
    rows = [row for curve in curves for row in _rows(curve, args.device)]
    out = args.out or RESULTS / machine_name(args.device) / "growth.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return 0


def _sweep(sweep: str, args: argparse.Namespace) -> list[Curve]:
    """Curves of the verbs of a sweep."""
    make = {"faces": _faces, "objects": _objects, "poses": _poses, "contacts": _contacts}[sweep]
    curves: dict[str, Curve] = {}
    for size in _sizes(sweep, args):
        measured, verbs = make(int(size), args.device)
        for verb, call in verbs.items():
            curve = curves.setdefault(verb, Curve(sweep, verb))
            if curve.next_ms(measured) > args.limit * 1e3:
                continue
            curve.sizes.append(measured)
            curve.samples.append(_samples(call, args))
        del verbs
        gc.collect()  # meshes go before larger ones come
    _print(sweep, list(curves.values()))
    return list(curves.values())


def _samples(call: Callable[[], Any], args: argparse.Namespace) -> list[float]:
    """Milliseconds of calls, after two that compile and prepare; short ones are repeated."""
    cuda = args.device.startswith("cuda")
    clock = time.perf_counter if cuda else time.process_time

    def lap(count: int) -> float:
        start = clock()
        for _ in range(count):
            call()
        if cuda:
            wp.synchronize_device(args.device)
        return (clock() - start) / count

    lap(1)
    count = 1 + int(SHORTEST_S / max(lap(1), 1e-6))
    budget = args.budget or (0.05 if cuda else 0.2)
    stop, samples = time.perf_counter() + budget, [lap(count)]
    while time.perf_counter() < stop or len(samples) < LEAST_ROUNDS:
        samples.append(lap(count))
    return [1e3 * each for each in samples]


def _sizes(sweep: str, args: argparse.Namespace) -> np.ndarray:
    least, most = SIZES[sweep]["cuda" if args.device.startswith("cuda") else "cpu"]
    most = max(most // QUICK, 10 * least) if args.quick else most
    count = round(PER_DECADE * np.log10(most / least)) + 1
    return np.unique(np.geomspace(least, most, count).astype(np.int64))


def _ring(faces: int, device: str, *, upright: bool = False) -> abut.Mesh:
    """A ring with ripples; two, one of them upright, cross each other."""
    columns = max(3, int((faces / 6) ** 0.5))
    shape = cases.torus(3 * columns, columns)
    points = shape.vertices * (1.0 + 0.01 * np.sin(40.0 * shape.vertices[:, :1]))
    if upright:
        points = points[:, [0, 2, 1]] + np.array([0.6, 0.0, 0.1])
    return abut.Mesh(points, shape.faces, device)


def _faces(count: int, device: str) -> tuple[float, Verbs]:
    """Two rings that cross; apart by a pose for the distance."""
    a, b = _ring(count, device), _ring(count, device, upright=True)
    away, points = np.eye(4), np.random.default_rng(0).normal(size=(1000, 3))
    away[:3, 3] = 1.5, 2.0, 0.5
    end = a.vertices.numpy().astype(np.float64) * (1.0, 1.0, 0.999)
    move = abut.Motion(a, end)
    return count, {
        "collide": lambda: abut.collide(a, b).pairs,
        "collide first": lambda: abut.collide(a, b, first=True).colliding,
        "self_collide": lambda: abut.self_collide(a).pairs,
        "distance": lambda: abut.distance(a, b, pose_b=away).value,
        "within": lambda: abut.within(a, b, 1e-4).pairs,
        "closest_point": lambda: abut.closest_point(a, points).distance,
        "ccd first": lambda: abut.ccd(move, first=True).safe_step,
        "build": lambda: abut.collide(abut.Mesh(a.vertices, a.faces, device), b, first=True),
    }


def _objects(count: int, device: str) -> tuple[float, Verbs]:
    """Boxes at one density, some of which touch."""
    scene, box = abut.Scene(device), abut.Mesh(*cases.box(), device)
    poses = _random_poses(count, 1.6 * count ** (1 / 3))
    scene.add(box, pose=poses)
    indices = scene.indices
    turn = [0]

    def moved() -> None:
        turn[0] += 1
        scene.move(indices, np.roll(poses, turn[0] % 2, axis=0))

    def after(ask: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            moved()
            return ask()

        return call

    return count, {
        "move, collide": after(lambda: scene.collide().pairs),
        "move, collide first": after(lambda: scene.collide(first=True)),
        "move, colliding": after(scene.colliding),
        "move, within": after(lambda: scene.within(0.05).pairs),
        "move, least_distance": after(scene.least_distance),
    }


def _poses(count: int, device: str) -> tuple[float, Verbs]:
    """Poses of two rings of 1,000 faces, of which some touch."""
    a, b = _ring(1000, device), _ring(1000, device)
    poses = _random_poses(count, 4.0)
    return count, {
        "collide first": lambda: abut.collide(a, b, pose_b=poses, first=True).colliding,
        "collide": lambda: abut.collide(a, b, pose_b=poses).pairs,
        "distance": lambda: abut.distance(a, b, pose_b=poses).value,
    }


def _contacts(count: int, device: str) -> tuple[float, Verbs]:
    """Two soups of faces, as large as it takes for about so many pairs to meet."""
    rng = np.random.default_rng(1)
    middles = rng.uniform(size=(2, SOUP, 1, 3))
    shapes = rng.normal(size=(2, SOUP, 3, 3))
    size = 0.55 * (count / SOUP**2) ** (1 / 3)
    corners = middles + size * shapes
    faces = np.arange(3 * SOUP).reshape(-1, 3)
    a, b = (abut.Mesh(one.reshape(-1, 3), faces, device) for one in corners)
    return len(abut.collide(a, b)), {
        "collide": lambda: abut.collide(a, b).pairs,
        "collide first": lambda: abut.collide(a, b, first=True).colliding,
    }


def _random_poses(count: int, room: float) -> np.ndarray:
    rng = np.random.default_rng(count)
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    turns[np.linalg.det(turns) < 0] *= -1
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = turns, rng.uniform(0, room, (count, 3))
    return poses


def _print(sweep: str, curves: list[Curve]) -> None:
    sizes = sorted({size for curve in curves for size in curve.sizes})
    lines = []
    for curve in curves:
        known = dict(zip(curve.sizes, curve.ms, strict=True))
        times = [f"{known[size]:.3g}" if size in known else "" for size in sizes]
        lines.append([curve.verb, *times, f"{curve.exponent:.2f}"])
    print_table(f"{sweep}: ms", ["verb", *(f"{size:g}" for size in sizes), "exponent"], lines)


def _rows(curve: Curve, device: str) -> Iterator[Row]:
    """A row for each size, and one whose answer is the exponent."""
    job, verb = f"growth_{curve.sweep}", curve.verb.replace(", ", "_").replace(" ", "_")
    for size, samples in zip(curve.sizes, curve.samples, strict=True):
        times = min(samples), float(np.median(samples)), len(samples)
        yield Row(job, f"{verb}_{size:g}", "abut", device, *times, version=abut.__version__)
    exponent = round(curve.exponent, 3)
    yield Row(job, f"{verb}_exponent", "abut", device, answer_size=exponent)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench_growth", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--sweeps", nargs="+", choices=tuple(SIZES), default=tuple(SIZES))
    parser.add_argument("--quick", action="store_true", help=f"sizes up to a {QUICK}th")
    parser.add_argument("--budget", type=float, help="seconds a verb and size")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds that a call may take")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/growth.csv")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
