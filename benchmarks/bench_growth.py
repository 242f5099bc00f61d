"""How the cost of each verb grows: ``python -m benchmarks.bench_growth --device cpu``.

Grows the faces of two meshes, the objects of a scene, the poses of a batch, the contacts of two
meshes of one size, the pixels of sampled answers, and the threads. Prints the time of every verb at
every size and its exponent, the slope of log(time) over log(size), and lists cliffs: steps that
cost much more than the steps beside them. A verb ends where its next size would take longer than
``--limit`` seconds. CPU times are processor times of all threads, which other programs disturb
least; those of the threads sweep are by the clock. Peers, which use one core, are timed beside the
verbs that they have, after their answers were compared. ``growth_memory`` has bytes of hierarchies
in its column ``answer_size``. ``python -m benchmarks.growth_page`` draws the curves.
"""

import argparse
import gc
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from benchmarks import answers, ours, peers
from benchmarks.cases import Case
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.growth_cases import CASES, SIZES, SWEEPS, Verbs, ring, use_threads
from benchmarks.rows import Row, machine_name, print_table, write_csv

PEERS = ("meshlib", "coal", "fcl")
QUICK = 30  # times fewer at the most
PER_DECADE = 2
MOST_GROWTH = 1.5  # exponent of a step that no verb should exceed
CLIFF = 0.6  # exponent of a step beyond that of its neighbours
SHORTEST_S, LEAST_ROUNDS = 0.005, 3  # of a sample, and samples


@dataclass
class Curve:
    """Times of one verb of one library over sizes."""

    sweep: str
    verb: str
    sizes: list[float] = field(default_factory=list)
    samples: list[list[float]] = field(default_factory=list)  # ms
    library: str = "abut"

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
    mine = [curve for curve in curves if curve.library == "abut"]
    cliffs = [line for curve in mine for line in curve.cliffs()]
    print("\n".join(["cliffs:", *cliffs]) if cliffs else "no cliffs")
    rows = [row for curve in curves for row in _rows(curve, args.device)]
    if "faces" in args.sweeps:
        rows += _memory_rows(args)
    out = args.out or RESULTS / machine_name(args.device) / "growth.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return 0


def _sweep(sweep: str, args: argparse.Namespace) -> list[Curve]:
    """Curves of the verbs of a sweep, and of the peers that have them."""
    make = SWEEPS[sweep]
    modules = peers.installed(tuple(args.peers))[0] if args.device == "cpu" else []
    curves: dict[tuple[str, str], Curve] = {}
    for size in _sizes(sweep, args):
        measured, verbs = make(int(size), args.device)
        for (library, verb), call in {**_own(verbs), **_of_peers(sweep, size, modules)}.items():
            curve = curves.setdefault((library, verb), Curve(sweep, verb, library=library))
            if curve.next_ms(measured) > args.limit * 1e3:
                continue
            ask, share = (call, 1.0) if library == "abut" else call()
            found = _samples(ask, args, by_clock=sweep == "threads")
            curve.sizes.append(measured)
            curve.samples.append([ms / share for ms in found])
        del verbs
        gc.collect()  # meshes go before larger ones come
    use_threads(None)
    _print(sweep, list(curves.values()))
    return list(curves.values())


def _own(verbs: Verbs) -> dict[tuple[str, str], Callable[[], Any]]:
    return {("abut", verb): call for verb, call in verbs.items()}


def _of_peers(sweep: str, size: int, modules: list[Any]) -> dict[tuple[str, str], Any]:
    """Functions that make calls of peers, for verbs of a sweep that they have."""
    found = {}
    cases = CASES[sweep](int(size)) if sweep in CASES else {}
    for verb, case in cases.items():
        for module in modules:
            if case.question in module.SUPPORTS:
                choice = module.SUPPORTS[case.question][0]
                made = partial(_checked_call, module, case, choice)
                found[module.NAME, verb] = made
    return found


def _checked_call(module: Any, case: Case, choice: str) -> tuple[Callable[[], Any], float]:
    """A call of a peer, whose answer is compared with abut's, and its share of the question."""
    mine = ours.answer(ours.run(ours.prepare(case, "")))
    prepared = module.prepare(case, choice)
    tolerance = getattr(module, "TOLERANCE", None)
    theirs = module.answer(module.run(prepared))
    surplus, missing = answers.difference(mine, theirs, tolerance, prepared.part)
    if len(surplus) + len(missing):
        where = f"{case.job} {case.variant}"
        print(f"{where}: {module.NAME} differs: +{len(surplus)} -{len(missing)}. {module.NOTE}")
    return lambda: module.run(prepared), prepared.steps


def _samples(
    call: Callable[[], Any], args: argparse.Namespace, *, by_clock: bool = False
) -> list[float]:
    """Milliseconds of calls, after two that compile and prepare; short ones are repeated."""
    cuda = args.device.startswith("cuda")
    clock = time.perf_counter if cuda or by_clock else time.process_time

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
    if sweep == "threads":
        return np.arange(least, most + 1)
    most = max(most // QUICK, 10 * least) if args.quick else most
    count = round(PER_DECADE * np.log10(most / least)) + 1
    return np.unique(np.geomspace(least, most, count).astype(np.int64))


def _memory_rows(args: argparse.Namespace) -> Iterator[Row]:
    """Bytes of a mesh's hierarchy over its faces."""
    for size in _sizes("faces", args):
        mesh = ring(int(size), args.device)
        held = bvh_of(mesh).nbytes
        yield Row("growth_memory", f"hierarchy_{size:g}", "abut", args.device, answer_size=held)


def _print(sweep: str, curves: list[Curve]) -> None:
    sizes = sorted({size for curve in curves for size in curve.sizes})
    lines = []
    for curve in curves:
        known = dict(zip(curve.sizes, curve.ms, strict=True))
        times = [f"{known[size]:.3g}" if size in known else "" for size in sizes]
        lines.append([curve.library, curve.verb, *times, f"{curve.exponent:.2f}"])
    print_table(
        f"{sweep}: ms", ["library", "verb", *(f"{size:g}" for size in sizes), "exponent"], lines
    )


def _rows(curve: Curve, device: str) -> Iterator[Row]:
    """A row for each size, and one whose answer is the exponent."""
    job, verb = f"growth_{curve.sweep}", re.sub("[:, ]+", "_", curve.verb)
    for size, samples in zip(curve.sizes, curve.samples, strict=True):
        times = min(samples), float(np.median(samples)), len(samples)
        yield Row(job, f"{verb}_{size:g}", curve.library, device, *times)
    exponent = round(curve.exponent, 3)
    yield Row(job, f"{verb}_exponent", curve.library, device, answer_size=exponent)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench_growth", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--sweeps", nargs="+", choices=tuple(SIZES), default=tuple(SIZES))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, help="on the CPU")
    parser.add_argument("--quick", action="store_true", help=f"sizes up to a {QUICK}th")
    parser.add_argument("--budget", type=float, help="seconds a verb and size")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds that a call may take")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/growth.csv")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
