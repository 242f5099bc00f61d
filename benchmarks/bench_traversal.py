"""Where the time goes inside abut: ``python -m benchmarks.bench_traversal --device cpu``.

Stage times (hierarchy, search, settle, sort) as ``abut.core.runtime.recording`` takes them, the
best of some rounds each; ``rest`` is what lies outside all stages. On CUDA a recording waits for
the device after every stage, so that there the stages add up to more than an undisturbed call.

Then ways to reach the overlapping leaves of one mesh: leaf by leaf, as abut does, and by queues of
node pairs (benchmarks/queues.py). ``--jobs`` chooses.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.layout import Bvh
from abut.bvh.leaf_clusters import leaf_clusters_of
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.runtime import UNKNOWN_COUNT, Task, recording
from abut.traversal.overlap.leaf_cluster_pairs import SHARES, cluster_walks, self_open_kernel
from abut.traversal.overlap.leaf_packets import packet_count_of, self_groups_kernel
from benchmarks import cases, ours
from benchmarks.cases import Case, Question
from benchmarks.competition import QUIET
from benchmarks.queues import Persistent, Rounds
from benchmarks.rows import print_table
from benchmarks.timing import Timed, measure

EFFORT = 10**6  # enough for a tree built with care


def main(argv: list[str] | None = None) -> int:
    """Print a table of stages."""
    parser = argparse.ArgumentParser(prog="bench_traversal", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", nargs="+", choices=("stages", "queues"), default=["stages"])
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    if "stages" in args.jobs:
        found = {name: stages(call, args.rounds) for name, call in _calls(args.device)}
        _print(found)
    if "queues" in args.jobs:
        _print_ways(args.device, args.rounds)
    return 0


def stages(call: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Best milliseconds of each stage, of what lies outside them, and of all together."""
    call()
    best: dict[str, float] = {}
    for _ in range(rounds):
        start = time.perf_counter()
        with recording() as timer:
            call()
        total = (time.perf_counter() - start) * 1e3
        spent = sum(timer.milliseconds.values())
        times = {**timer.milliseconds, "rest": total - spent, "total": total}
        for name, ms in times.items():
            best[name] = min(ms, best.get(name, ms))
    return best


def _calls(device: str) -> list[tuple[str, Callable[[], Any]]]:
    """The calls of the jobs, in all configurations, and alternatives of self_collide."""
    calls = []
    for case in [*cases.bunny_bunny_all(device), *cases.cloth_ball_self(device)]:
        for choice in ours.SUPPORTS[case.question]:
            prepared = ours.prepare(case, choice)
            if prepared is not None and case.question is not Question.SELF_ANY:
                frames = " (all frames)" if case.question is Question.SELF_REFIT else ""
                calls.append((f"{case.job} {case.variant} {choice}{frames}", prepared.call))
    return calls + _unwelded(cases.cloth_ball_self(device)[0])


def _unwelded(case: Case) -> list[tuple[str, Callable[[], Any]]]:
    mesh = abut.Mesh(case.vertices, case.faces, case.device)
    return [(f"{case.job} static weld=False", lambda: abut.self_collide(mesh, weld=False))]


def _print_ways(device: str, rounds: int) -> None:
    """Best milliseconds of each way to list the overlapping leaves of a mesh."""
    lines = []
    for name, mesh in _bodies(device):
        expected = None
        for way, call in _ways(mesh):
            count = call()
            expected = expected or count
            note = "" if count == expected else f"WRONG: {count}"
            timed = Timed(call, device)
            measure([timed], rounds, 5.0)
            lines.append([name, way, f"{timed.ms_min:.3f}", str(expected), note])
    print_table("ways", ["mesh", "way", "best ms", "pairs", ""], lines, ruled=True)


def _bodies(device: str) -> list[tuple[str, abut.Mesh]]:
    bodies = []
    folder = cases.data_folder()
    if folder is not None:
        dance = np.load(folder / "anim" / "rumba_dancing_25k_f0-59.npz")
        bodies.append(("dancer", abut.Mesh(dance["V"][30], dance["F"], device)))
    cloth = cases.cloth_ball_self(device)[0]
    return [*bodies, ("cloth", abut.Mesh(cloth.vertices, cloth.faces, device))]


def _ways(mesh: abut.Mesh) -> list[tuple[str, Callable[[], int]]]:
    tree, bits = bvh_of(mesh, effort=EFFORT), KeyLayout.of(*[mesh.face_count] * 2).bits
    names = ("candidates", "even", "odd", "twigs", *SHARES)
    queues = PairQueues(mesh.device, **dict.fromkeys(names, 1 << 22))
    ways = [("leaf by leaf", _leaf_by_leaf(mesh, tree, bits, queues))]
    for most in (1, 4, 16, 64):
        rounds = Rounds(tree, bits, most, queues)
        ways.append((f"rounds, {most} opened ({rounds.rounds} rounds)", rounds.run))
    for threads in (1 << 13, 1 << 15, 1 << 17) if mesh.device.is_cuda else (1,):
        for most in (1, 4, 16):
            threaded = Persistent(tree, bits, most, queues, threads)
            ways.append((f"persistent, {threads} threads, {most} opened", threaded.run))
    return ways


def _leaf_by_leaf(mesh: abut.Mesh, tree: Bvh, bits: Any, queues: PairQueues) -> Callable[[], int]:
    device, found = mesh.device, queues["candidates"]
    if device.is_cpu:
        args = [tree.view(), bits, found]
        tasks = [
            Task(self_groups_kernel, packet_count_of(mesh.face_count), args, device, grain=128)
        ]
    else:
        walks = cluster_walks(tree.view(), leaf_clusters_of(tree), queues)
        tasks = [Task(kernel, count, args, device) for kernel, count, args in walks]
        args = [tree.view(), bits, False, queues["clusters"], found]
        tasks.append(Task(self_open_kernel, UNKNOWN_COUNT, args, device))

    def call() -> int:
        queues.clear()
        for task in tasks:
            task.run()
        return queues.read()["candidates"]

    return call


def _print(found: dict[str, dict[str, float]]) -> None:
    names = list(dict.fromkeys(name for times in found.values() for name in times))
    names.sort(key=("rest", "total").__contains__)
    lines = [
        [call, *(f"{times[name]:.3f}" if name in times else "" for name in names)]
        for call, times in found.items()
    ]
    print_table("best ms", ["call", *names], lines)


if __name__ == "__main__":
    sys.exit(main())
