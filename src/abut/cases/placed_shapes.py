"""Crowd: many shapes and where each one stands."""

from typing import NamedTuple

import numpy as np

from abut.cases.shape import Shape
from abut.cases.shapes import box, icosphere


class Crowd(NamedTuple):
    """Shapes, often one shape many times, and a rigid pose (n, 4, 4) for each."""

    shapes: list[Shape]
    poses: np.ndarray

    @property
    def face_count(self) -> int:
        """Faces of all shapes together."""
        return sum(len(shape.faces) for shape in self.shapes)

    def placed(self) -> list[Shape]:
        """The shapes where their poses put them."""
        return [
            Shape(shape.vertices @ pose[:3, :3].T + pose[:3, 3], shape.faces)
            for shape, pose in zip(self.shapes, self.poses, strict=True)
        ]


def balls(count: int = 456, faces: int = 320, radius: float = 1.0, seed: int = 0) -> Crowd:
    """Balls with a little room between them, in a round swarm: 146K faces as they are."""
    ball = icosphere(faces, radius)
    return Crowd([ball] * count, _scattered(count, 2.3 * radius, 0.3 * radius, seed))


def boxes(count: int = 1000, size: float = 1.0, room: float = 1.6, seed: int = 0) -> Crowd:
    """Turned boxes of 12 faces in a round swarm; with ``room`` below 1.8 some meet.

    Args:
        count: How many.
        size: Edge of a box [mesh length unit].
        room: Distance of neighbours over ``size``, on average.
        seed: Of places and turns.
    """
    return Crowd([box((size, size, size))] * count, _scattered(count, room * size, size, seed))


def _scattered(count: int, room: float, jitter: float, seed: int) -> np.ndarray:
    """Poses on the ``count`` points of a grid nearest its middle, shifted up to half ``jitter``."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil((2 * count) ** (1 / 3))) + 1
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = grid - (side - 1) / 2
    inner = np.argsort((grid**2).sum(axis=1), kind="stable")[:count]
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_turns(count, rng)
    poses[:, :3, 3] = grid[inner] * room + rng.uniform(-0.5, 0.5, (count, 3)) * jitter
    return poses


def random_turns(count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, 3, 3) rotations, all equally likely."""
    return turns_of(rng.normal(size=(count, 4)))


def turns_of(quaternions: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotations of quaternions (n, 4), x y z w of any length but 0."""
    x, y, z, w = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)
