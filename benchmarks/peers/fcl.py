"""FCL through python-fcl, which trimesh uses too: OBB-RSS hierarchies, one core."""

from typing import Any

import fcl
import numpy as np

from benchmarks.answers import posed_pairs, sorted_pairs
from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

NAME, PACKAGE = "fcl", "python-fcl"
NOTE = "FCL tests triangles in float64 without exact arithmetic."
SUPPORTS = dict.fromkeys((Question.PAIRS, Question.FIRST, Question.POSES, Question.BUILD), ("",))
SUPPORTS |= dict.fromkeys((Question.DISTANCE, Question.DISTANCES, Question.BUILD_RSS), ("",))
SUPPORTS[Question.POSE_PAIRS] = ("",)
UNKNOWN_COUNT = 10_000_000
POSES_TRIED = {Question.POSES: 10_000, Question.DISTANCES: 1000, Question.POSE_PAIRS: 500}


def prepare(case: Case, choice: str = "") -> Prepared:
    """Objects with their trees; python-fcl turns all contacts into Python objects by itself."""
    if case.question in (Question.BUILD, Question.BUILD_RSS):
        return Prepared(lambda: len(case.faces) if _model(case.vertices, case.faces) else 0)
    model = _model(case.vertices, case.faces)
    a = fcl.CollisionObject(model)
    faces = case.faces if case.other_faces is None else case.other_faces
    b = fcl.CollisionObject(model if case.other is None else _model(case.other, faces))
    if case.question in (Question.DISTANCE, Question.DISTANCES):
        return _distances(case, a, b)
    if case.question in (Question.POSES, Question.POSE_PAIRS):
        return _poses(case, a, b)
    if case.pose is not None:
        b.setTransform(_pose(case.pose))
    every = case.question is Question.PAIRS
    request = fcl.CollisionRequest(UNKNOWN_COUNT if every else 1, enable_contact=False)

    def call() -> fcl.CollisionResult | bool:
        result = fcl.CollisionResult()
        found = fcl.collide(a, b, request, result)
        return result if every else found > 0

    return Prepared(call)


def run(prepared: Prepared) -> Any:
    """The library's own result."""
    return prepared.call()


def answer(result: Any) -> Any:
    """Pairs, yes and no, or a count."""
    if isinstance(result, list):
        rows = [(k, c.b1, c.b2) for k, one in enumerate(result) for c in one.contacts]
        rows = np.array(rows, np.int64).reshape(-1, 3)
        return posed_pairs(rows[:, 1:], rows[:, 0])
    if not isinstance(result, fcl.CollisionResult):
        return result
    return sorted_pairs([(contact.b1, contact.b2) for contact in result.contacts])


def _model(vertices: np.ndarray, faces: np.ndarray) -> fcl.BVHModel:
    model = fcl.BVHModel()
    model.beginModel(len(vertices), len(faces))
    model.addSubModel(vertices.astype(np.float64), faces)
    model.endModel()
    return model


def _poses(case: Case, a: fcl.CollisionObject, b: fcl.CollisionObject) -> Prepared:
    """A Python loop; transforms are made beforehand. A result cannot be used twice."""
    every = case.question is Question.POSE_PAIRS
    poses = [_pose(pose) for pose in case.pose[: POSES_TRIED[case.question]]]
    request = fcl.CollisionRequest(UNKNOWN_COUNT if every else 1, enable_contact=False)

    def loop() -> np.ndarray | list[fcl.CollisionResult]:
        counts, results = [], []
        for pose in poses:
            b.setTransform(pose)
            result = fcl.CollisionResult()
            counts.append(fcl.collide(a, b, request, result))
            if every:
                results.append(result)
        return results if every else np.array(counts) > 0

    return Prepared(loop, len(poses) / len(case.pose), part=len(poses) if every else None)


def _distances(case: Case, a: fcl.CollisionObject, b: fcl.CollisionObject) -> Prepared:
    """One distance, or a loop; without nearest points, which are the default."""
    poses = np.eye(4)[None] if case.pose is None else case.pose.reshape(-1, 4, 4)
    steps = min(POSES_TRIED[Question.DISTANCES] / len(poses), 1.0)
    poses = [_pose(pose) for pose in poses[: POSES_TRIED[Question.DISTANCES]]]
    request = fcl.DistanceRequest()

    def loop() -> np.ndarray | float:
        found = []
        for pose in poses:
            b.setTransform(pose)
            found.append(max(fcl.distance(a, b, request, fcl.DistanceResult()), 0.0))
        return np.array(found) if case.question is Question.DISTANCES else found[0]

    return Prepared(loop, steps)


def _pose(pose: np.ndarray) -> fcl.Transform:
    return fcl.Transform(pose[:3, :3], pose[:3, 3])
