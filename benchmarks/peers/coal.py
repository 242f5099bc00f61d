"""Coal (formerly HPP-FCL): oriented boxes, GJK between triangles, one core."""

from typing import Any

import coal
import numpy as np

from benchmarks.answers import posed_pairs, sorted_pairs
from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

NAME, PACKAGE = "coal", "coal"
NOTE = "Coal runs GJK with a tolerance (1e-6 by default): near misses count as contacts."
BOUNDS = {"obbrss": coal.BVHModelOBBRSS, "obb": coal.BVHModelOBB}  # all that Python is given
SUPPORTS = dict.fromkeys(
    (Question.PAIRS, Question.FIRST, Question.POSES, Question.POSE_PAIRS, Question.BUILD),
    tuple(BOUNDS),
) | dict.fromkeys((Question.DISTANCE, Question.DISTANCES, Question.BUILD_RSS), ("obbrss",))
UNKNOWN_COUNT = 10_000_000
POSES_TRIED = {Question.POSES: 10_000, Question.DISTANCES: 1000, Question.POSE_PAIRS: 500}
EVERY = (Question.PAIRS, Question.POSE_PAIRS)


def prepare(case: Case, choice: str = "obbrss") -> Prepared:
    """Models built and placed; one request, and one functor as Coal advises for many calls."""
    if case.question in (Question.BUILD, Question.BUILD_RSS):
        return Prepared(lambda: _model(case.vertices, case.faces, choice).num_tris)
    a = _model(case.vertices, case.faces, choice)
    faces = case.faces if case.other_faces is None else case.other_faces
    b = a if case.other is None else _model(case.other, faces, choice)
    if case.question in (Question.DISTANCE, Question.DISTANCES):
        return _distances(case, a, b)
    request = coal.CollisionRequest()
    request.enable_contact = False
    request.num_max_contacts = UNKNOWN_COUNT if case.question in EVERY else 1
    collide, still = coal.ComputeCollision(a, b), coal.Transform3s()
    if case.question in (Question.POSES, Question.POSE_PAIRS):
        return _poses(case, collide, request, held=(a, b))
    pose = coal.Transform3s() if case.pose is None else _pose(case.pose)

    def call() -> coal.CollisionResult | bool:
        result = coal.CollisionResult()
        found = collide(still, pose, request, result)
        return result if case.question is Question.PAIRS else found > 0

    return Prepared(call, held=(a, b))  # the functor does not keep its models alive


def run(prepared: Prepared) -> Any:
    """The library's own result."""
    return prepared.call()


def answer(result: Any) -> Any:
    """Pairs, yes and no, or a count."""
    if isinstance(result, list):
        rows = [(k, c.b1, c.b2) for k, one in enumerate(result) for c in one.getContacts()]
        rows = np.array(rows, np.int64).reshape(-1, 3)
        return posed_pairs(rows[:, 1:], rows[:, 0])
    if not isinstance(result, coal.CollisionResult):
        return result
    return sorted_pairs([(contact.b1, contact.b2) for contact in result.getContacts()])


def tree_bytes(case: Case) -> dict[str, int]:
    """As Coal counts them: with vertices and triangles."""
    models = {name: _model(case.vertices, case.faces, name) for name in BOUNDS}
    return {name: model.memUsage(False) for name, model in models.items()}


def _model(vertices: np.ndarray, faces: np.ndarray, choice: str) -> coal.BVHModelBase:
    model = BOUNDS[choice]()
    model.beginModel(len(faces), len(vertices))
    model.addVertices(vertices.astype(np.float64))
    model.addTriangles(faces.astype(np.int64))
    model.endModel()
    return model


def _poses(case: Case, collide: Any, request: coal.CollisionRequest, held: Any) -> Prepared:
    """A Python loop; transforms are made beforehand and, for yes and no, one result is kept."""
    every = case.question is Question.POSE_PAIRS
    poses = [_pose(pose) for pose in case.pose[: POSES_TRIED[case.question]]]
    result, still = coal.CollisionResult(), coal.Transform3s()

    def loop() -> np.ndarray:
        counts = []
        for pose in poses:
            result.clear()
            counts.append(collide(still, pose, request, result))
        return np.array(counts) > 0

    def all_pairs() -> list[coal.CollisionResult]:
        results = [coal.CollisionResult() for _ in poses]
        for pose, found in zip(poses, results, strict=True):
            collide(still, pose, request, found)
        return results

    steps, part = len(poses) / len(case.pose), len(poses) if every else None
    return Prepared(all_pairs if every else loop, steps, held=held, part=part)


def _distances(case: Case, a: Any, b: Any) -> Prepared:
    """One distance, or a loop; nearest points are found in any case."""
    measure, still, request = coal.ComputeDistance(a, b), coal.Transform3s(), coal.DistanceRequest()
    poses = np.eye(4)[None] if case.pose is None else case.pose.reshape(-1, 4, 4)
    steps = min(POSES_TRIED[Question.DISTANCES] / len(poses), 1.0)
    poses = [_pose(pose) for pose in poses[: POSES_TRIED[Question.DISTANCES]]]

    def loop() -> np.ndarray | float:
        found = []
        for pose in poses:
            result = coal.DistanceResult()
            measure(still, pose, request, result)
            found.append(max(result.min_distance, 0.0))
        return np.array(found) if case.question is Question.DISTANCES else found[0]

    return Prepared(loop, steps, held=(a, b))


def _pose(pose: np.ndarray) -> coal.Transform3s:
    return coal.Transform3s(pose[:3, :3], pose[:3, 3])
