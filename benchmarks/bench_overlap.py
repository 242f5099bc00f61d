"""Overlaps of solids: ``python -m benchmarks.bench_overlap --device cpu``.

- ``bunnies``: two bunnies of 69K faces, their holes closed by fans, that overlap: relation, beside
  ``abut.collide`` of all pairs and FCL's yes or no; depths to 1e-6; separation; volume, beside
  manifold3d's boolean from arrays.
- ``cows``: 10,000 poses of two cows: relation, beside FCL's yes or no pose by pose; depths to 1e-3.

Every call asks anew; trees and topology of the meshes lie ready. Answers are checked first:
relations against FCL, depths against points of a grid, the separation by its relation,
volumes against manifold3d.
"""

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from benchmarks.cases import Case, Question, bunny_bunny_all, cow_cow_10k_poses
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.peers import installed
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

Calls = dict[str, Callable[[], Any]]
GRID = 40  # points a side of the box of the common part
POSE_CHECKS = 200


def main(argv: list[str] | None = None) -> int:
    """Check, time, print, write the CSV. 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="bench_overlap", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds a library")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/overlap.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    rows: list[Row] = []
    wrong: list[str] = []
    for job, make in (("bunnies", bunny_jobs), ("cows", cow_jobs)):
        for variant, calls in make(args, wrong).items():
            on = {name: args.device if name.startswith("abut") else "cpu" for name in calls}
            timed = {name: Timed(call, on[name]) for name, call in calls.items()}
            for one in timed.values():
                one.first()
            measure(list(timed.values()), args.rounds, args.budget)
            found = [
                Row(job, variant, name, one.device, one.ms_min, one.ms_median, len(one.samples))
                for name, one in timed.items()
            ]
            set_ratios(found, {"abut"})
            print_rows(f"{job} {variant}", found)
            rows += found
    for message in wrong:
        print(f"ERROR: {message}")
    out = args.out or RESULTS / machine_name(args.device) / "overlap.csv"
    write_csv(out, rows)
    print(f"written to {out}")
    return int(bool(wrong))


def fcl_of(args: argparse.Namespace) -> list[Any]:
    """The peer FCL, if it is asked for and installed."""
    return [] if args.no_peers else installed(("fcl",))[0]


def bunny_jobs(args: argparse.Namespace, wrong: list[str]) -> dict[str, Calls]:
    """Calls about two bunnies."""
    case = next(c for c in bunny_bunny_all(args.device) if c.pose is not None)
    case = closed_case(case)
    a, b = (abut.Mesh(case.vertices, case.faces, args.device) for _ in range(2))
    pose = overlapping_pose(case.vertices)
    found = abut.overlap(a, b, pose_b=pose, volume=True)
    check_depths(a, b, pose, found, wrong)
    after = pose.copy()
    after[:3, 3] += found.separation.numpy()
    if abut.overlap(a, b, pose_b=after).overlapping:
        wrong.append("bunnies overlap after their separation")
    jobs: dict[str, Calls] = {
        "relation": {
            "abut": lambda: abut.overlap(a, b, pose_b=pose).relation,
            "abut.collide": lambda: len(abut.collide(a, b, pose_b=pose)),
        },
        "inside_1e-6": {"abut": lambda: abut.overlap(a, b, pose_b=pose).inside_bounds},
        "separation": {"abut": lambda: abut.overlap(a, b, pose_b=pose).separation},
        "volume": {"abut": lambda: abut.overlap(a, b, pose_b=pose, volume=True).volume},
        "regions": {"abut": lambda: len(abut.overlap(a, b, pose_b=pose).regions)},
    }
    for fcl in fcl_of(args):
        question = Case("", "", Question.FIRST, "cpu", case.vertices, case.faces, pose=pose)
        jobs["relation"]["fcl"] = fcl.prepare(question).call
    if not args.no_peers and find_spec("manifold3d"):
        boolean = manifold_call(case, pose)
        jobs["volume"]["manifold3d"] = boolean
        if not np.isclose(found.volume, boolean(), rtol=1e-6):
            wrong.append(f"volume {found.volume}, manifold3d {boolean()}")
    return jobs


def cow_jobs(args: argparse.Namespace, wrong: list[str]) -> dict[str, Calls]:
    """Calls about 10,000 poses of two cows."""
    case = cow_cow_10k_poses(args.device)[0]
    assert case.pose is not None
    a, b = (abut.Mesh(case.vertices, case.faces, args.device) for _ in range(2))
    poses = case.pose
    relation = abut.overlap(a, b, pose_b=poses)
    jobs: dict[str, Calls] = {
        "relation": {"abut": lambda: abut.overlap(a, b, pose_b=poses).relation},
        "inside_1e-3": {
            "abut": lambda: abut.overlap(a, b, pose_b=poses, tolerance=1e-3).inside_bounds
        },
    }
    for fcl in fcl_of(args):
        peer = fcl.prepare(case)
        jobs["relation"]["fcl"] = peer.call
        meets = np.asarray(fcl.answer(peer.call()), bool)
        ours = abut.collide(a, b, pose_b=poses, solid=True, first=True).colliding.numpy()
        shared = relation.relation.numpy() != 0
        if (shared[: len(meets)] < meets).any() or (shared != ours).any():
            wrong.append("cows: relations differ from FCL or from collide(solid=True)")
    bounds = abut.overlap(a, b, pose_b=poses[:POSE_CHECKS], tolerance=1e-3).inside_bounds.numpy()
    tight = abut.overlap(a, b, pose_b=poses[:POSE_CHECKS], tolerance=1e-7).inside_bounds.numpy()
    if (bounds[..., 1] < tight[..., 0]).any() or (tight[..., 1] < bounds[..., 0]).any():
        wrong.append("cows: bounds of depths contradict each other")
    return jobs


def closed_case(case: Case) -> Case:
    """The case with a fan over every hole of its mesh."""
    vertices, faces = case.vertices, case.faces
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    known = {(int(i), int(j)) for i, j in edges}
    after = {j: i for i, j in known if (j, i) not in known}  # along the hole, against its faces
    points, fans = [vertices], [faces]
    while after:
        start, loop = next(iter(after)), []
        at = start
        while at in after:
            loop.append(at)
            at = after.pop(at)
        middle = sum(map(len, points))
        points.append(vertices[loop].mean(axis=0, keepdims=True))
        fans.append(
            np.array([[i, j, middle] for i, j in zip(loop, [*loop[1:], start], strict=True)])
        )
    return Case(
        case.job,
        case.variant,
        case.question,
        case.device,
        np.concatenate(points).astype(vertices.dtype),
        np.concatenate(fans).astype(faces.dtype),
    )


def overlapping_pose(vertices: np.ndarray) -> np.ndarray:
    """A pose that moves a mesh by a third of its size and turns it by half a radian."""
    size = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]]
    pose[:3, 3] = 0.3 * size, 0.05 * size, 0.1 * size
    return pose


def check_depths(a: Any, b: Any, pose: np.ndarray, found: Any, wrong: list[str]) -> None:
    """Compare bounds of depths with the depths of points on a grid."""
    low, high = (np.maximum, np.minimum)
    corners = b.points.numpy() @ pose[:3, :3].T + pose[:3, 3]
    low = low(a.bounds[0], corners.min(axis=0))
    high = high(a.bounds[1], corners.max(axis=0))
    axes = [np.linspace(x, y, GRID) for x, y in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 3)
    inside_a = -abut.signed_distance(a, points).numpy()
    inside_b = -abut.signed_distance(b, points, pose=pose).numpy()
    common = (inside_a >= 0) & (inside_b >= 0)
    deepest = inside_a[common].max(), inside_b[common].max()
    bounds = found.inside_bounds.numpy()
    if (bounds[:, 1] < deepest).any() or np.ptp(bounds, axis=1).max() > 1.1e-6 * a_size(a):
        wrong.append(f"bunnies: bounds {bounds.tolist()}, depths of points {deepest}")


def a_size(mesh: Any) -> float:
    """Diagonal of the box of a mesh."""
    return float(np.linalg.norm(np.ptp(mesh.bounds, axis=0)))


def manifold_call(case: Case, pose: np.ndarray) -> Callable[[], float]:
    """The volume of the common part by manifold3d, from arrays."""
    import manifold3d

    moved = case.vertices.astype(np.float64) @ pose[:3, :3].T + pose[:3, 3]
    faces = case.faces.astype(np.uint64)

    def call() -> float:
        a, b = (
            manifold3d.Manifold(manifold3d.Mesh64(np.asarray(v, np.float64), faces))
            for v in (case.vertices, moved)
        )
        return (a ^ b).volume()

    return call


if __name__ == "__main__":
    raise SystemExit(main())
