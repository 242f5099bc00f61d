"""Benchmark cases: meshes, poses, frames, and the question asked about them.

Models come from the folder ``ABUT_DATA``, else from ``../shared/data`` beside the checkout. Without
it procedural shapes replace them, and variants begin with ``procedural_``. All coordinates are
rounded to float32 first, so every library gets the same numbers.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
POSE_COUNT = 10_000


class Question(StrEnum):
    """Questions that a library may answer."""

    PAIRS = "pairs"  # every pair of intersecting faces of two meshes
    FIRST = "first"  # whether two meshes intersect
    POSES = "poses"  # the same for a batch of poses
    POSE_PAIRS = "pose_pairs"  # every pair at each of a batch of poses
    WITHIN = "within"  # every pair of faces at most so far apart
    SELF = "self"  # every pair of intersecting faces of one mesh
    SELF_REFIT = "self_refit"  # the same for each frame of a motion, hierarchy update included
    SELF_ANY = "self_any"  # whether a mesh intersects itself
    BUILD = "build"  # a hierarchy from nothing
    REFIT = "refit"  # a hierarchy for moved vertices
    DISTANCE = "distance"  # how far apart two meshes are
    DISTANCES = "distances"  # the same for a batch of poses
    POINTS = "points"  # how far a mesh is from points
    SIGNED_POINTS = "signed_points"  # the same, negative inside
    DISTANCE_REFIT = "distance_refit"  # for each frame of a motion, hierarchy update included
    BUILD_RSS = "build_rss"  # a hierarchy of rectangle swept spheres from nothing
    REFIT_RSS = "refit_rss"  # the same for moved vertices


@dataclass(frozen=True)
class Case:
    """One row of the table. ``other`` are the vertices of the second mesh.

    It has the same faces, unless ``other_faces`` says otherwise.
    """

    job: str
    variant: str
    question: Question
    device: str
    vertices: np.ndarray
    faces: np.ndarray
    other: np.ndarray | None = None
    pose: np.ndarray | None = None  # of the second mesh: (4, 4), or (B, 4, 4) for a batch
    frames: tuple[np.ndarray, ...] = ()
    other_faces: np.ndarray | None = None
    distance: float = 0.0  # for WITHIN
    points: np.ndarray | None = None  # (n, 3) float64, for POINTS and SIGNED_POINTS

    @property
    def placed(self) -> np.ndarray:
        """Vertices of the second mesh in float64, moved as abut moves them: bit for bit."""
        points = self.vertices if self.other is None else self.other
        points = points.astype(np.float64)
        if self.pose is None:
            return points
        x, y, z = points.T
        rows = [row[0] * x + row[1] * y + row[2] * z + row[3] for row in self.pose[:3]]
        return np.stack(rows, axis=1)


def bunny_bunny_distance(device: str) -> list[Case]:
    """How far apart two bunnies are: far, near, side by side, and turned."""
    prefix, vertices, faces = _model("models/bunny_69k.ply", _gem)
    extent = (vertices.max(axis=0) - vertices.min(axis=0)).astype(np.float64)
    poses = {name: np.eye(4) for name in ("far", "near", "aside")}
    poses["far"][0, 3] = 3.76 * extent[0]
    poses["near"][0, 3] = 1.1 * extent[0]
    poses["aside"][:3, 3] = extent * [1.02, 0.3, 0.2]
    poses["turned"] = _bunny_poses(vertices)["turned"]
    poses["turned"][1, 3] += 1.2 * extent[1]
    job, cases = "bunny_bunny_distance", []
    for name, pose in poses.items():
        question = Question.DISTANCE
        base = Case(job, prefix + name + "_pose", question, device, vertices, faces, pose=pose)
        moved = base.placed.astype(np.float32)
        cases.append(Case(job, prefix + name, question, device, vertices, faces, other=moved))
        cases.append(base)
    return cases


def dragon_armadillo_10k_poses(device: str) -> list[Case]:
    """How far apart two models of one size are in ten thousand random poses; few collide."""
    prefix, vertices, faces = _model("models/dragon_202k.ply", _gem)
    _, other, other_faces = _model("models/armadillo_86k.ply", _knot)
    vertices, other = _unit(vertices), _unit(other)
    poses = random_poses(other, POSE_COUNT, reach=1.0)
    job, question = "dragon_armadillo_10k_poses", Question.DISTANCES
    extras = {"other": other, "other_faces": other_faces, "pose": poses}
    return [Case(job, prefix + "random", question, device, vertices, faces, **extras)]


def rings_2m_distance(device: str) -> list[Case]:
    """Two rough rings of two million faces each, linked as in a chain and almost touching."""
    from abut.cases import torus

    ring = torus(1414, 707, thick=0.397)
    noise = np.random.default_rng(1).normal(scale=1e-4, size=(2, *ring.vertices.shape))
    turned = (ring.vertices + noise[1]) @ np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]).T
    first = (ring.vertices + noise[0]).astype(np.float32)
    other = (turned + np.array([0.8, 0.0, 0.0])).astype(np.float32)
    job, question = "rings_2m_distance", Question.DISTANCE
    return [Case(job, "linked", question, device, first, ring.faces, other=other)]


def cloth_ball_distance(device: str) -> list[Case]:
    """A cloth in motion and a ball beside it, hierarchy update included."""
    from abut.cases import icosphere

    prefix, faces, frames = _cloth()
    ball = icosphere(20_000)
    low, high = frames[0].min(axis=0), frames[0].max(axis=0)
    radius = 0.2 * float((high - low).max())
    centre = (low + high) / 2 + [0.0, 0.0, 1.2 * radius + float((high - low)[2]) / 2]
    other = (ball.vertices * radius + centre).astype(np.float32)
    job, question = "cloth_ball_distance", Question.DISTANCE_REFIT
    extras = {"other": other, "other_faces": ball.faces, "frames": frames}
    return [Case(job, prefix + "refit", question, device, frames[0], faces, **extras)]


def rss_245k(device: str) -> list[Case]:
    """The hierarchy of swept spheres of a quarter of a million faces."""
    from abut.cases import torus

    vertices, faces = torus(495, 248)
    noise = np.random.default_rng(1).normal(scale=1e-3, size=(2, *vertices.shape))
    frames = tuple((vertices + shift).astype(np.float32) for shift in noise)
    return [
        Case("rss_245k", question.value, question, device, frames[0], faces, frames=frames)
        for question in (Question.BUILD_RSS, Question.REFIT_RSS)
    ]


def _unit(vertices: np.ndarray) -> np.ndarray:
    """Scaled to a largest extent of 1, about the origin."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return ((vertices - (low + high) / 2) / (high - low).max()).astype(np.float32)


def bunny_bunny_all(device: str) -> list[Case]:
    """All pairs between two bunnies."""
    return _two_bunnies("bunny_bunny_all", Question.PAIRS, device)


def bunny_bunny_first(device: str) -> list[Case]:
    """Whether two bunnies intersect."""
    return _two_bunnies("bunny_bunny_first", Question.FIRST, device)


def cloth_ball_self(device: str) -> list[Case]:
    """Self-collision of a cloth on a turning ball, in motion and at rest."""
    prefix, faces, frames = _cloth()
    job = "cloth_ball_self"

    def case(variant: str, question: Question) -> Case:
        return Case(job, prefix + variant, question, device, frames[0], faces, frames=frames)

    moving = case("refit", Question.SELF_REFIT)
    return [moving, case("static", Question.SELF), case("any", Question.SELF_ANY)]


def lbvh_build_1m(device: str) -> list[Case]:
    """The hierarchy of a million faces."""
    from abut.cases import torus

    vertices, faces = torus(1000, 500)
    noise = np.random.default_rng(1).normal(scale=1e-3, size=(2, *vertices.shape))
    frames = tuple((vertices + shift).astype(np.float32) for shift in noise)
    job = "lbvh_build_1m"
    return [
        Case(job, question.value, question, device, frames[0], faces, frames=frames)
        for question in (Question.BUILD, Question.REFIT)
    ]


def cow_cow_10k_poses(device: str) -> list[Case]:
    """Two cows in ten thousand random poses, of which about half collide."""
    prefix, vertices, faces = _model("models/cow_5k.ply", _knot)
    poses = random_poses(vertices, POSE_COUNT, reach=0.9 if prefix else 0.6)
    variant = prefix + "random"
    return [Case("cow_cow_10k_poses", variant, Question.POSES, device, vertices, faces, pose=poses)]


def random_poses(vertices: np.ndarray, count: int, reach: float) -> np.ndarray:
    """Uniform rotations about the centre of a mesh, then shifts of up to ``reach`` extents."""
    rng = np.random.default_rng(1)
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    centre, reach = (lower + upper) / 2.0, reach * float((upper - lower).max())
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = _rotations(rng.normal(size=(count, 4)))
    shifts = rng.uniform(-reach, reach, size=(count, 3))
    poses[:, :3, 3] = centre - poses[:, :3, :3] @ centre + shifts
    return poses


def _rotations(quaternions: np.ndarray) -> np.ndarray:
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def _two_bunnies(job: str, question: Question, device: str) -> list[Case]:
    """Three relative positions; the second bunny as moved vertices, and by a pose."""
    prefix, vertices, faces = _model("models/bunny_69k.ply", _gem)
    cases = []
    for name, pose in _bunny_poses(vertices).items():
        base = Case(job, prefix + name + "_pose", question, device, vertices, faces, pose=pose)
        moved = base.placed.astype(np.float32)
        cases.append(Case(job, prefix + name, question, device, vertices, faces, other=moved))
        cases.append(base)
    return cases


def _bunny_poses(vertices: np.ndarray) -> dict[str, np.ndarray]:
    """Shifted far and near, in shares of the x extent, and turned about its centre."""
    extent = (vertices.max(axis=0) - vertices.min(axis=0)).astype(np.float64)
    centre = vertices.astype(np.float64).mean(axis=0)
    poses = {name: np.eye(4) for name in ("x30", "turned", "x05")}
    poses["x30"][0, 3] = 0.3 * extent[0]
    poses["x05"][0, 3] = 0.05 * extent[0]
    turn = _rotations(np.array([[3.0, 1.0, 0.5, -0.75]]))[0]
    poses["turned"][:3, :3] = turn
    poses["turned"][:3, 3] = centre - turn @ centre + [0.0, 0.2 * extent[1], 0.0]
    return poses


def data_folder() -> Path | None:
    """Return the folder of models, or None."""
    folder = Path(os.environ.get("ABUT_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


@cache
def _model(name: str, stand_in: Callable) -> tuple[str, np.ndarray, np.ndarray]:
    """Return a variant prefix, vertices and faces of a model or its procedural substitute."""
    folder = data_folder()
    if folder is None:
        vertices, faces = stand_in()
        return "procedural_", vertices.astype(np.float32), faces
    return "", *_load(folder / name)


@cache
def _cloth() -> tuple[str, np.ndarray, tuple[np.ndarray, ...]]:
    """Return a variant prefix, the faces, and the later and earlier frame."""
    folder = data_folder()
    if folder is None:
        from abut.cases import folded_cloth

        shapes = [folded_cloth(370, 124, turns) for turns in (1.61, 1.6)]
        return "procedural_", shapes[0].faces, tuple(s.vertices.astype(np.float32) for s in shapes)
    files = [folder / "ccd_frames" / "cloth-ball" / f"cloth_ball{n}.ply" for n in (93, 92)]
    (later, faces), (earlier, _) = (_load(file) for file in files)
    return "", faces, (later, earlier)


def _load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import trimesh

    mesh = trimesh.load(path, process=False)
    return np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.int32)


def _gem() -> tuple[np.ndarray, np.ndarray]:
    from abut.cases import gem

    return gem(70_000)


def _knot() -> tuple[np.ndarray, np.ndarray]:
    from abut.cases import torus_knot

    return torus_knot(121, 24)
