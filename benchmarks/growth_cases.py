"""Questions of ``bench_growth`` at any size, for abut and for its peers."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.core.device import thread_count
from benchmarks.cases import Case, Question

SIZES = {
    "faces": {"cpu": (10_000, 3_000_000), "cuda": (10_000, 20_000_000)},
    "objects": {"cpu": (100, 100_000), "cuda": (100, 1_000_000)},
    "poses": {"cpu": (1, 100_000), "cuda": (1, 100_000)},
    "contacts": {"cpu": (100, 1_000_000), "cuda": (100, 1_000_000)},
    "pixels": {"cpu": (64, 4096), "cuda": (64, 4096)},
    "threads": {"cpu": (1, os.cpu_count() or 1), "cuda": (1, 1)},
}
BATCH = 1000  # poses of the threads sweep
SOUP = 20_000  # faces of each of two meshes whose contacts grow
Verbs = dict[str, Callable[[], Any]]


def ring(faces: int, device: str, *, upright: bool = False) -> abut.Mesh:
    """A ring with ripples; two, one of them upright, cross each other."""
    columns = max(3, int((faces / 6) ** 0.5))
    shape = cases.torus(3 * columns, columns)
    points = shape.vertices * (1.0 + 0.01 * np.sin(40.0 * shape.vertices[:, :1]))
    if upright:
        points = points[:, [0, 2, 1]] + np.array([0.6, 0.0, 0.1])
    return abut.Mesh(points, shape.faces, device)


def _faces(count: int, device: str) -> tuple[float, Verbs]:
    """Two rings that cross; apart by a pose for the distance."""
    a, b = ring(count, device), ring(count, device, upright=True)
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
        "build": lambda: bvh_of(abut.Mesh(a.vertices, a.faces, device)),
    }


def _objects(count: int, device: str) -> tuple[float, Verbs]:
    """Boxes at one density, some of which touch."""
    scene, box = abut.Scene(device), abut.Mesh(*cases.box(), device)
    poses = random_poses(count, 1.6 * count ** (1 / 3))
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
    a, b = ring(1000, device), ring(1000, device)
    poses = random_poses(count, 4.0)
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


def _pixels(count: int, device: str) -> tuple[float, Verbs]:
    """Two rings that cross, looked at with so many pixels along a side."""
    a, b = ring(20_000, device), ring(20_000, device, upright=True)
    field = abut.DistanceField(a, resolution=64)
    return count, {
        "cull far": lambda: abut.cull([a, b], method="far", pixels=count).faces,
        "response": lambda: field.response(b, pixels=count).force,
        "closest": lambda: field.closest(b, pixels=count).distance,
    }


def _threads(count: int, device: str) -> tuple[float, Verbs]:
    """Two rings, a batch of poses and many points, by so many threads."""
    use_threads(count)
    a, b = ring(100_000, device), ring(100_000, device, upright=True)
    small = ring(1000, device)
    poses = random_poses(BATCH, 4.0)
    points = np.random.default_rng(0).normal(size=(20_000, 3))
    return count, {
        "collide": lambda: abut.collide(a, b).pairs,
        "self_collide": lambda: abut.self_collide(a).pairs,
        "closest_point": lambda: abut.closest_point(a, points).distance,
        "poses: collide first": lambda: abut.collide(small, small, pose_b=poses, first=True),
        "poses: distance": lambda: abut.distance(small, small, pose_b=poses).distance,
    }


def use_threads(count: int | None) -> None:
    """Let abut use so many threads; None: as many as it would."""
    if count is None:
        os.environ.pop("ABUT_THREADS", None)
    else:
        os.environ["ABUT_THREADS"] = str(count)
    thread_count.cache_clear()


def _face_cases(count: int) -> dict[str, Case]:
    """The rings of the faces sweep, as peers take them."""
    a, b = (ring(count, "cpu", upright=up).vertices.numpy().astype(np.float32) for up in (0, 1))
    faces = ring(count, "cpu").faces.numpy()
    away = np.eye(4)
    away[:3, 3] = 1.5, 2.0, 0.5
    about = "growth_faces", str(count)
    return {
        "collide": Case(*about, Question.PAIRS, "cpu", a, faces, other=b),
        "collide first": Case(*about, Question.FIRST, "cpu", a, faces, other=b),
        "distance": Case(*about, Question.DISTANCE, "cpu", a, faces, other=b, pose=away),
    }


def _pose_cases(count: int) -> dict[str, Case]:
    """The rings of the poses sweep, as peers take them."""
    mesh = ring(1000, "cpu")
    vertices, faces = mesh.vertices.numpy().astype(np.float32), mesh.faces.numpy()
    pose, about = random_poses(count, 4.0), ("growth_poses", str(count))
    return {
        "collide first": Case(*about, Question.POSES, "cpu", vertices, faces, pose=pose),
        "distance": Case(*about, Question.DISTANCES, "cpu", vertices, faces, pose=pose),
    }


def random_poses(count: int, room: float) -> np.ndarray:
    rng = np.random.default_rng(count)
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    turns[np.linalg.det(turns) < 0] *= -1
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = turns, rng.uniform(0, room, (count, 3))
    return poses


SWEEPS = {
    "faces": _faces,
    "objects": _objects,
    "poses": _poses,
    "contacts": _contacts,
    "pixels": _pixels,
    "threads": _threads,
}
CASES = {"faces": _face_cases, "poses": _pose_cases}
