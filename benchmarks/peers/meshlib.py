"""MeshLib: axis-aligned boxes, float32 coordinates and poses, all cores."""

import ctypes
from typing import Any

import meshlib.mrmeshnumpy as mn
import meshlib.mrmeshpy as mm
import numpy as np

from benchmarks.answers import posed_pairs, sorted_pairs, stacked
from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

NAME, PACKAGE = "meshlib", "meshlib"
NOTE = "MeshLib leaves out faces that only touch or lie in one plane, and moves points in float32."
TOLERANCE = 1e-5
UPDATES = ("refit", "rebuild")  # updateCaches refits the tree; invalidateCaches drops it
SUPPORTS = {
    Question.PAIRS: ("",),
    Question.FIRST: ("",),
    Question.POSES: ("",),
    Question.POSE_PAIRS: ("",),
    Question.POINTS: ("",),
    Question.SELF: ("",),
    Question.SELF_ANY: ("",),
    Question.SELF_REFIT: UPDATES,
    Question.BUILD: ("",),
    Question.REFIT: ("",),
    Question.DISTANCE: ("",),
    Question.DISTANCES: ("",),
    Question.DISTANCE_REFIT: UPDATES,
}
POSES_TRIED = 500  # of a batch: with cows each takes some 0.4 ms
FACES_TRIED = 10**7  # of a batch: faces of both meshes, times poses


def prepare(case: Case, choice: str = "") -> Prepared | None:
    """Meshes with their trees; results stay in MeshLib's containers."""
    if case.question is Question.POINTS:
        return _point(case) if len(case.points) == 1 else None
    mesh = _mesh(case.vertices, case.faces)
    part = mm.MeshPart(mesh)
    if case.question in (Question.DISTANCE, Question.DISTANCES, Question.DISTANCE_REFIT):
        return _distances(case, mesh, part, choice)
    if case.question in (Question.PAIRS, Question.FIRST):
        return _two_meshes(case, mesh, part)
    if case.question in (Question.POSES, Question.POSE_PAIRS):
        return _poses(case, mesh, part)
    if case.question is Question.SELF:
        return Prepared(lambda: [mm.findSelfCollidingTriangles(part)])
    if case.question is Question.SELF_ANY:
        return Prepared(lambda: mm.findSelfCollidingTriangles(part, None))
    if case.question is Question.BUILD:
        return Prepared(lambda: _rebuilt(mesh))
    return _moving(case, mesh, part, choice)


def run(prepared: Prepared) -> Any:
    """The library's own result."""
    return prepared.call()


def answer(result: Any) -> Any:
    """Pairs, one list for all frames or poses; yes and no; or a count."""
    if isinstance(result, tuple):
        pairs = [_pairs(one) for one in result]
        pose = np.repeat(np.arange(len(pairs)), [len(one) for one in pairs])
        return posed_pairs(np.concatenate(pairs), pose)
    if isinstance(result, list):
        return stacked([sorted_pairs(_pairs(pairs), unordered=True) for pairs in result])
    return sorted_pairs(_pairs(result)) if isinstance(result, mm.std_vector_FaceFace) else result


def tree_bytes(case: Case) -> dict[str, int]:
    """Heap of the tree, without the mesh."""
    return {"aabb": _mesh(case.vertices, case.faces).getAABBTree().heapBytes()}


def _mesh(vertices: np.ndarray, faces: np.ndarray) -> mm.Mesh:
    mesh = mn.meshFromFacesVerts(faces, vertices)
    mesh.getAABBTree()
    return mesh


def _tried(case: Case) -> int:
    faces = case.faces if case.other_faces is None else case.other_faces
    return min(POSES_TRIED, FACES_TRIED // (len(case.faces) + len(faces)))


def _other(case: Case, mesh: mm.Mesh) -> mm.MeshPart:
    faces = case.faces if case.other_faces is None else case.other_faces
    return mm.MeshPart(mesh if case.other is None else _mesh(case.other, faces))


def _two_meshes(case: Case, mesh: mm.Mesh, part: mm.MeshPart) -> Prepared:
    part_b, pose = _other(case, mesh), None if case.pose is None else _pose(case.pose)
    if case.question is Question.PAIRS:
        return Prepared(lambda: mm.findCollidingTriangles(part, part_b, pose))
    return Prepared(lambda: len(mm.findCollidingTriangles(part, part_b, pose, True)) > 0)


def _poses(case: Case, mesh: mm.Mesh, part: mm.MeshPart) -> Prepared:
    every, part_b = case.question is Question.POSE_PAIRS, _other(case, mesh)
    poses = [_pose(pose) for pose in case.pose[: _tried(case)]]

    def loop() -> np.ndarray:
        return np.array([len(mm.findCollidingTriangles(part, part_b, p, True)) > 0 for p in poses])

    def all_pairs() -> tuple:
        return tuple(mm.findCollidingTriangles(part, part_b, p) for p in poses)

    steps = len(poses) / len(case.pose)
    if every:
        return Prepared(all_pairs, steps, part=len(poses))
    return Prepared(loop, steps)


def _point(case: Case) -> Prepared:
    part, at = mm.MeshPart(_mesh(case.vertices, case.faces)), mm.Vector3f(*case.points[0].tolist())
    return Prepared(lambda: np.array([np.sqrt(mm.findProjection(at, part).distSq)]))


def _moving(case: Case, mesh: mm.Mesh, part: mm.MeshPart, choice: str) -> Prepared:
    """New points for every frame, the tree refitted or built anew, then the question."""
    everywhere = mesh.topology.getValidVerts()

    def step(frame: np.ndarray) -> Any:
        mesh.points.vec = mn.fromNumpyArray(frame)
        if choice == "rebuild":
            mesh.invalidateCaches()
        else:
            mesh.updateCaches(everywhere)
        if case.question is Question.REFIT:
            return mesh.getAABBTree().numLeaves()
        return mm.findSelfCollidingTriangles(part)

    steps = len(case.frames)
    if case.question is Question.REFIT:
        return Prepared(lambda: [step(frame) for frame in case.frames][-1], steps)
    return Prepared(lambda: [step(frame) for frame in case.frames], steps)


def _distances(case: Case, mesh: mm.Mesh, part: mm.MeshPart, choice: str) -> Prepared:
    """One distance, a loop over poses, or one distance a frame."""
    part_b = _other(case, mesh)

    def measured(pose: Any = None) -> float:
        return float(np.sqrt(mm.findDistance(part, part_b, pose).distSq))

    if case.question is Question.DISTANCE:
        pose = None if case.pose is None else _pose(case.pose)
        return Prepared(lambda: measured(pose))
    if case.question is Question.DISTANCES:
        poses = [_pose(pose) for pose in case.pose[: _tried(case)]]
        steps = len(poses) / len(case.pose)
        return Prepared(lambda: np.array([measured(pose) for pose in poses]), steps)
    everywhere = mesh.topology.getValidVerts()

    def step(frame: np.ndarray) -> float:
        mesh.points.vec = mn.fromNumpyArray(frame)
        if choice == "rebuild":
            mesh.invalidateCaches()
        else:
            mesh.updateCaches(everywhere)
        return measured()

    return Prepared(lambda: np.array([step(f) for f in case.frames]), len(case.frames))


def _rebuilt(mesh: mm.Mesh) -> int:
    mesh.invalidateCaches()
    return mesh.getAABBTree().numLeaves()


def _pose(pose: np.ndarray) -> mm.AffineXf3f:
    rows = [mm.Vector3f(*map(float, row)) for row in pose[:3, :3]]
    return mm.AffineXf3f(mm.Matrix3f(*rows), mm.Vector3f(*map(float, pose[:3, 3])))


def _pairs(pairs: Any) -> np.ndarray:
    """Two int32 a row, read in place: item by item takes a second for 100,000."""
    if len(pairs) == 0:
        return np.zeros((0, 2), np.int32)
    numbers = (ctypes.c_int32 * (2 * len(pairs))).from_address(pairs.data_pointer())
    return np.array(numbers, dtype=np.int32).reshape(-1, 2)
