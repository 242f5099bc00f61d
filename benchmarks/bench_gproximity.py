"""Tables of gProximity: ``python -m benchmarks.bench_gproximity --device cpu``.

Lauterbach, Mo, Manocha 2010, Figures 6 to 10, with the scenes of ``gproximity_scenes``: building
and refitting; self-collision by boxes, oriented boxes and swept spheres, at frames and between
them, from the root and from fronts; the shares of its stages; distances; and work balancing
beside the other strategies. One command measures a machine. Times on the CPU are processor time of
all threads, so that other programs matter less; but for the shares. Rows are compared before
anything is timed; a difference is an error.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.lbvh import build_lbvh
from abut.bvh.node_obbs import fit_node_obbs, fit_node_rss
from abut.bvh.refit import refit
from abut.core.pair_queue import KeyLayout
from abut.core.timing import recording
from abut.geometry.common_corners import SHARED_BY_POSITION
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Bound
from abut.query.contact_plan import ContactPlan
from abut.query.contact_stages import Strategy
from benchmarks import cases
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.gproximity_scenes import ANIMATIONS, APPROACHES, BATCH, Animation, mesh_of
from benchmarks.rows import Row, machine_name, print_rows, write_csv
from benchmarks.timing import Timed, measure

BOUNDS = ("aabb", "obb", "rss")
QUESTIONS = {"discrete": abut.Tracker.step, "continuous": abut.Tracker.advance}
PARTS = ("trees", "discrete", "continuous", "shares", "strategies", "distance")
STRATEGIES = {
    "cpu": (Strategy.PACKETS, Strategy.LEAF_WALK, Strategy.BALANCED),
    "cuda": (Strategy.CLUSTERS, Strategy.LEAF_WALK, Strategy.BALANCED),
}
NODE_FITS = {Bound.OBB: fit_node_obbs, Bound.RSS: fit_node_rss}


class ProcessorTimed(Timed):
    """A call and its processor time, of all threads."""

    def turn(self, repeats: int) -> tuple[float, Any]:
        """Return mean processor seconds per call and the last result."""
        result, start = None, time.process_time()
        for _ in range(repeats):
            result = self.call()
        return (time.process_time() - start) / repeats, result


def main(argv: list[str] | None = None) -> int:
    """Compare, time, print, write the CSV. 1 if rows differ."""
    parser = argparse.ArgumentParser(prog="bench_gproximity", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--scenes", nargs="+", choices=tuple(ANIMATIONS), default=tuple(ANIMATIONS))
    parser.add_argument("--bounds", nargs="+", choices=BOUNDS, default=BOUNDS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=8.0, help="seconds a variant")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/gproximity.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    if cases.data_folder() is None:
        print("no data folder (ABUT_DATA): there is nothing to measure")
        return 0
    out = args.out or RESULTS / machine_name(args.device) / "gproximity.csv"
    wrong = False
    for part in args.parts:
        scenes = APPROACHES if part == "distance" else args.scenes
        for scene in scenes:
            rows = MAKERS[part](scene, args)
            print_rows(f"{part}, {scene}, ms", rows)
            write_csv(out, rows)
            wrong |= any(row.agrees == "no" for row in rows)
    print(f"written to {out}")
    return int(wrong)


def trees(scene: str, args: argparse.Namespace) -> list[Row]:
    """Figure 6: a linear hierarchy from nothing, and refitted, with its volumes."""
    mesh = _mesh(_animation(scene), args.device)
    tree = build_lbvh(mesh.points, mesh.faces, mesh.bounds)
    calls: dict[tuple[str, str], Callable[[], Any]] = {}
    for name in args.bounds:
        calls["build", name] = partial(_built, mesh, Bound(name))
        calls["refit", name] = partial(_refitted, mesh, tree, Bound(name))
    return _timed(f"trees_{scene}", calls, args, answer=mesh.face_count)


def discrete(scene: str, args: argparse.Namespace) -> list[Row]:
    """Figure 7, discrete: contacts of every frame."""
    return _tracked(scene, "discrete", args)


def continuous(scene: str, args: argparse.Namespace) -> list[Row]:
    """Figure 7, continuous: impacts on the way to every frame."""
    return _tracked(scene, "continuous", args)


def shares(scene: str, args: argparse.Namespace) -> list[Row]:
    """Figure 9: milliseconds of each stage of a frame, from the root."""
    animation, rows = _animation(scene), []
    frames = _on_device(animation, args.device)
    for question, step in QUESTIONS.items():
        for bound in args.bounds:
            tracker = abut.Tracker(_mesh(animation, args.device), bound=bound)
            call = partial(_follow, partial(step, tracker), frames)
            call()
            with recording() as timer:
                call()
            for stage, ms in timer.milliseconds.items():
                each = ms / len(frames)
                job = f"shares_{scene}"
                variant = f"{question}_{bound}_{stage.replace(' ', '-')}"
                rows.append(Row(job, variant, "abut", args.device, each, each, 1))
    return rows


def strategies(scene: str, args: argparse.Namespace) -> list[Row]:
    """Figure 10, for contacts: work balancing and the other strategies, without the refit."""
    animation = _animation(scene)
    mesh = _mesh(animation, args.device)
    mesh.deform(animation.frames[1])
    layout = KeyLayout.of(mesh.face_count, mesh.face_count)
    side, plans, answers = make_posed_mesh(mesh.points, mesh.faces), {}, {}
    for strategy in STRATEGIES["cpu" if args.device == "cpu" else "cuda"]:
        for bound in map(Bound, args.bounds):
            if bound is not Bound.AABB and strategy in (Strategy.PACKETS, Strategy.CLUSTERS):
                continue
            operands = (mesh.device, side, side, (bvh_of(mesh, bound),), SHARED_BY_POSITION)
            plan = ContactPlan(*operands, layout, 1, False, bound, strategy=strategy)
            plans[strategy.name.lower(), str(bound)] = plan.run
            answers[strategy, bound] = np.array(_host(plan.run()))
    first = next(iter(answers.values()))
    agrees = all(np.array_equal(first, other) for other in answers.values())
    return _timed(f"strategies_{scene}", plans, args, answer=len(first), agrees=agrees)


def distance(scene: str, args: argparse.Namespace) -> list[Row]:
    """Figure 8: one distance near contact, a batch, and the hierarchies of both meshes."""
    approach = APPROACHES[scene]()
    a, b = (mesh_of(shape, args.device) for shape in (approach.a, approach.b))
    calls: dict[tuple[str, str], Callable[[], Any]] = {}
    found = []
    for bound in args.bounds:
        one = partial(abut.distance, a, b, pose_b=approach.poses[0], bound=bound)
        batch = partial(abut.distance, a, b, pose_b=approach.poses, bound=bound)
        calls["one", bound], calls[f"batch{BATCH}", bound] = one, batch
        found.append(batch().value.numpy())
        calls["build", bound] = partial(_built_all, (a, b), Bound(bound))
        pair = [(mesh, build_lbvh(mesh.points, mesh.faces, mesh.bounds)) for mesh in (a, b)]
        calls["refit", bound] = partial(_refitted_all, pair, Bound(bound))
    agrees = all(np.allclose(found[0], other, rtol=0, atol=1e-12) for other in found)
    return _timed(f"distance_{scene}", calls, args, answer=float(found[0][0]), agrees=agrees)


def _tracked(scene: str, question: str, args: argparse.Namespace) -> list[Row]:
    """Rows of all volumes, from the root and from fronts, in ms a frame."""
    animation, step = _animation(scene), QUESTIONS[question]
    frames = _on_device(animation, args.device)
    trackers = {
        (method, bound): abut.Tracker(_mesh(animation, args.device), method=method, bound=bound)
        for method in ("bvh", "front")
        for bound in args.bounds
    }
    agrees, size = _agree([partial(step, tracker) for tracker in trackers.values()], frames)
    calls = {
        name: partial(_follow, partial(step, tracker), frames) for name, tracker in trackers.items()
    }
    return _timed(f"{question}_{scene}", calls, args, len(frames), size, agrees)


def _agree(steps: list[partial], frames: list[wp.array]) -> tuple[bool, float]:
    """Whether all return the same rows at every frame, and the mean number of rows."""
    count = 0
    for vertices in frames:
        found = [step(vertices).numpy() for step in steps]
        count += len(next(iter(found[0].values())))
        for other in found[1:]:
            if not all(np.array_equal(found[0][name], other[name]) for name in found[0]):
                return False, 0.0
    return True, count / len(frames)


def _timed(
    job: str,
    calls: dict[tuple[str, str], Callable[[], Any]],
    args: argparse.Namespace,
    steps: int = 1,
    answer: float = 0.0,
    agrees: bool = True,
) -> list[Row]:
    """Rows of interleaved calls; a variant is the parts of its name."""
    kind = ProcessorTimed if args.device == "cpu" else Timed
    timed = [kind(call, args.device, steps) for call in calls.values()]
    measure(timed, args.rounds, args.budget)
    return [
        Row(
            job,
            "_".join(name),
            "abut",
            args.device,
            one.ms_min,
            one.ms_median,
            len(one.samples),
            answer,
            "yes" if agrees else "no",
        )
        for name, one in zip(calls, timed, strict=True)
    ]


def _follow(step: partial, frames: list[wp.array]) -> None:
    """Step through all frames, and release each answer when the next arrives."""
    for vertices in frames:
        hits = step(vertices)
    del hits


_made: dict[str, Animation] = {}


def _animation(scene: str) -> Animation:
    if scene not in _made:
        _made[scene] = ANIMATIONS[scene]()
    return _made[scene]


def _mesh(animation: Animation, device: str) -> abut.Mesh:
    return abut.Mesh(animation.frames[0], animation.faces, device)


def _on_device(animation: Animation, device: str) -> list[wp.array]:
    return [wp.array(v, dtype=wp.vec3d, device=device) for v in animation.frames]


def _built(mesh: abut.Mesh, bound: Bound) -> Any:
    tree = build_lbvh(mesh.points, mesh.faces, mesh.bounds)
    if bound in NODE_FITS:
        NODE_FITS[bound](tree, mesh.points, mesh.faces)
    return tree


def _refitted(mesh: abut.Mesh, tree: Any, bound: Bound) -> None:
    refit(tree, mesh.points, mesh.faces)
    if bound in NODE_FITS:
        NODE_FITS[bound](tree, mesh.points, mesh.faces)


def _built_all(meshes: tuple[abut.Mesh, ...], bound: Bound) -> list[Any]:
    return [_built(mesh, bound) for mesh in meshes]


def _refitted_all(pairs: list[tuple[abut.Mesh, Any]], bound: Bound) -> None:
    for mesh, tree in pairs:
        _refitted(mesh, tree, bound)


def _host(keys: Any) -> np.ndarray:
    return keys if isinstance(keys, np.ndarray) else keys.numpy()


MAKERS = {
    "trees": trees,
    "discrete": discrete,
    "continuous": continuous,
    "shares": shares,
    "strategies": strategies,
    "distance": distance,
}

if __name__ == "__main__":
    sys.exit(main())
