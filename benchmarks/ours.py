"""abut with the interface of a peer."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.lbvh import build_lbvh
from abut.bvh.node_obbs import fit_node_rss
from abut.bvh.refit import refit
from abut.core.device import thread_count
from benchmarks.answers import posed_pairs, sorted_pairs, stacked
from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

NAME, PACKAGE = "abut", "abut"
NOTE = ""
COMPILES = True
ONE_THREAD = "1_thread"
ON_DEVICE = "device_poses"  # poses that are on the GPU already
SUPPORTS = {
    Question.PAIRS: ("", ONE_THREAD),
    Question.FIRST: ("",),  # on one thread anyway
    Question.POSES: ("", ONE_THREAD, ON_DEVICE),
    Question.POSE_PAIRS: ("", ONE_THREAD, ON_DEVICE),
    Question.WITHIN: ("",),
    Question.SELF: ("", ONE_THREAD),
    Question.SELF_ANY: ("",),
    Question.SELF_REFIT: ("", ONE_THREAD),
    Question.BUILD: ("",),
    Question.REFIT: ("", "kernel"),  # through Mesh.deform, and the bare refit
    Question.DISTANCE: ("", "aabb", ONE_THREAD),  # as after many queries, and as at first
    Question.DISTANCES: ("", "aabb", ONE_THREAD, ON_DEVICE),
    Question.POINTS: ("",),
    Question.SIGNED_POINTS: ("",),
    Question.DISTANCE_REFIT: ("", "rss"),
    Question.BUILD_RSS: ("",),
    Question.REFIT_RSS: ("", "kernel"),
}
ONE_MESH = {
    *(Question.SELF, Question.SELF_ANY, Question.SELF_REFIT),
    *(Question.BUILD, Question.BUILD_RSS, Question.REFIT, Question.REFIT_RSS),
    *(Question.POINTS, Question.SIGNED_POINTS),
}
FRAME_BY_FRAME = {
    Question.SELF_REFIT,
    Question.REFIT,
    Question.DISTANCE_REFIT,
    Question.REFIT_RSS,
}


def prepare(case: Case, choice: str = "") -> Prepared | None:
    """Meshes; their trees are built by the first call, and improve with use."""
    if choice == ONE_THREAD and (case.device != "cpu" or thread_count() == 1):
        return None
    if choice == ON_DEVICE and case.device == "cpu":
        return None
    call = _call(case, choice)
    steps = len(case.frames) if case.question in FRAME_BY_FRAME else 1
    return Prepared(_alone(call) if choice == ONE_THREAD else call, steps, case.device)


def run(prepared: Prepared) -> Any:
    """Contacts, a bool or an array."""
    return prepared.call()


def answer(result: Any) -> Any:
    """Pairs, one list for all frames; yes and no; or a count."""
    if isinstance(result, list) and isinstance(result[0], float):
        return np.array(result)
    if isinstance(result, list):
        return stacked([sorted_pairs(hits.pairs.numpy()) for hits in result])
    if isinstance(result, abut.ClosestPoints):
        return result.distance.numpy()
    if isinstance(result, abut.Gaps):
        return sorted_pairs(result.pairs.numpy())
    if isinstance(result, abut.Contacts) and result.pose is not None:
        return posed_pairs(result.pairs.numpy(), result.pose.numpy())
    return sorted_pairs(result.pairs.numpy()) if isinstance(result, abut.Contacts) else result


def tree_bytes(case: Case) -> dict[str, int]:
    """Of each bounding volume that has a hierarchy of its own."""
    sizes, trees = {}, []
    mesh = abut.Mesh(case.vertices, case.faces, case.device)
    for bound in abut.Bound:
        tree = bvh_of(mesh, bound)
        if not any(tree is other for other in trees):
            trees.append(tree)
            sizes[str(bound)] = tree.nbytes
    return sizes


def commit() -> str:
    """The commit that is measured; empty where it was installed from a package."""
    git = ["git", "-C", str(Path(abut.__file__).parent), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return found.stdout.strip()


def _call(case: Case, choice: str) -> Callable[[], Any]:
    mesh = abut.Mesh(case.vertices, case.faces, case.device)
    if case.question in ONE_MESH:
        return _call_of_one(case, choice, mesh)
    other = mesh
    if case.other is not None:
        faces = case.faces if case.other_faces is None else case.other_faces
        other = abut.Mesh(case.other, faces, case.device)
    bound = choice if choice in list(abut.Bound) else None
    pose = case.pose
    if choice == ON_DEVICE:
        pose = wp.array(pose, dtype=wp.mat44d, device=case.device)
    if case.question is Question.DISTANCE:
        return lambda: abut.distance(mesh, other, pose_b=pose, bound=bound).value
    if case.question is Question.DISTANCES:
        return lambda: _plain(abut.distance(mesh, other, pose_b=pose, bound=bound).value)
    if case.question is Question.DISTANCE_REFIT:
        frames = _on_device(case)
        return lambda: [_moved_distance(mesh, frame, other, bound) for frame in frames]
    if case.question in (Question.PAIRS, Question.POSE_PAIRS):
        return lambda: abut.collide(mesh, other, pose_b=pose)
    if case.question is Question.WITHIN:
        return lambda: abut.within(mesh, other, case.distance, pose_b=pose)
    return lambda: _colliding(abut.collide(mesh, other, pose_b=pose, first=True))


def _call_of_one(case: Case, choice: str, mesh: abut.Mesh) -> Callable[[], Any]:
    """Questions about one mesh."""
    if case.question is Question.BUILD:
        return lambda: build_lbvh(mesh.points, mesh.faces, mesh.bounds).face_count
    if case.question is Question.BUILD_RSS:
        return lambda: _built_rss(mesh)
    if case.question is Question.SELF:
        return lambda: [abut.self_collide(mesh)]
    if case.question is Question.SELF_ANY:
        return lambda: bool(abut.self_collide(mesh))
    if case.question in (Question.POINTS, Question.SIGNED_POINTS):
        signed, points = case.question is Question.SIGNED_POINTS, case.points
        if len(points) > 1:
            points = wp.array(points, dtype=wp.vec3d, device=case.device)
        return lambda: abut.closest_point(mesh, points, signed=signed)
    frames = _on_device(case)
    if case.question is Question.REFIT:
        return _refit(mesh, frames, choice)
    if case.question is Question.REFIT_RSS:
        return _refit_rss(mesh, frames, choice)
    return lambda: [_deformed(mesh, frame) for frame in frames]


def _on_device(case: Case) -> list[wp.array]:
    return [wp.array(frame, dtype=wp.vec3, device=case.device) for frame in case.frames]


def _colliding(hits: abut.Contacts) -> bool | np.ndarray:
    return hits.colliding if isinstance(hits.colliding, bool) else hits.colliding.numpy()


def _plain(values: wp.array) -> np.ndarray:
    return values.numpy()


def _deformed(mesh: abut.Mesh, frame: wp.array) -> abut.Contacts:
    mesh.deform(frame)
    return abut.self_collide(mesh)


def _moved_distance(mesh: abut.Mesh, frame: wp.array, other: abut.Mesh, bound: Any) -> float:
    mesh.deform(frame)
    return abut.distance(mesh, other, bound=bound).value


def _built_rss(mesh: abut.Mesh) -> int:
    tree = build_lbvh(mesh.points, mesh.faces, mesh.bounds)
    fit_node_rss(tree, mesh.points, mesh.faces)
    return tree.face_count


def _refit_rss(mesh: abut.Mesh, frames: list[wp.array], choice: str) -> Callable[[], int]:
    def deform() -> int:
        for frame in frames:
            mesh.deform(frame)
            count = bvh_of(mesh, abut.Bound.RSS).face_count
        return count

    def kernel() -> int:
        for points in shapes:
            refit(tree, points, mesh.faces)
            fit_node_rss(tree, points, mesh.faces)
        return tree.face_count

    shapes = [abut.Mesh(frame, mesh.faces, mesh.device).points for frame in frames]
    tree = bvh_of(mesh, abut.Bound.RSS)
    return kernel if choice == "kernel" else deform


def _refit(mesh: abut.Mesh, frames: list[wp.array], choice: str) -> Callable[[], int]:
    def deform() -> int:
        for frame in frames:
            mesh.deform(frame)
            count = bvh_of(mesh).face_count
        return count

    def kernel() -> int:
        for points in shapes:
            refit(tree, points, mesh.faces)
        return tree.face_count

    shapes = [abut.Mesh(frame, mesh.faces, mesh.device).points for frame in frames]
    tree = bvh_of(mesh)
    return kernel if choice == "kernel" else deform


def _alone(call: Callable[[], Any]) -> Callable[[], Any]:
    def alone() -> Any:
        with _one_thread():
            return call()

    return alone


@contextmanager
def _one_thread() -> Iterator[None]:
    before = os.environ.get("ABUT_THREADS")
    os.environ["ABUT_THREADS"] = "1"
    thread_count.cache_clear()
    try:
        yield
    finally:
        if before is None:
            del os.environ["ABUT_THREADS"]
        else:
            os.environ["ABUT_THREADS"] = before
        thread_count.cache_clear()
