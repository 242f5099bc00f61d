"""PlacedShapes: many shapes, each at a pose."""

from typing import NamedTuple

import numpy as np

from abut.cases.shape import Shape
from abut.cases.shapes import box, icosphere


class PlacedShapes(NamedTuple):
    """Shapes, often one shape many times, and a rigid pose (n, 4, 4) for each."""

    shapes: list[Shape]
    poses: np.ndarray

    @property
    def face_count(self) -> int:
        """Number of faces of all shapes."""
        return sum(len(shape.faces) for shape in self.shapes)

    def placed(self) -> list[Shape]:
        """The shapes, transformed by their poses."""
        return [
            Shape(shape.vertices @ pose[:3, :3].T + pose[:3, 3], shape.faces)
            for shape, pose in zip(self.shapes, self.poses, strict=True)
        ]


def balls(count: int = 456, faces: int = 320, radius: float = 1.0, seed: int = 0) -> PlacedShapes:
    """Disjoint balls in a round swarm: 146K faces by default."""
    ball = icosphere(faces, radius)
    return PlacedShapes([ball] * count, _scattered(count, 2.3 * radius, 0.3 * radius, seed))


def boxes(count: int = 1000, size: float = 1.0, room: float = 1.6, seed: int = 0) -> PlacedShapes:
    """Rotated boxes of 12 faces in a round swarm; with ``room`` below 1.8 some intersect.

    Args:
        count: Number of boxes.
        size: Edge of a box [mesh length unit].
        room: Mean distance of neighbours over ``size``.
        seed: Seed of positions and rotations.
    """
    return PlacedShapes(
        [box((size, size, size))] * count, _scattered(count, room * size, size, seed)
    )


def _scattered(count: int, room: float, jitter: float, seed: int) -> np.ndarray:
    """Poses on the ``count`` points of a grid nearest its middle, shifted up to half ``jitter``."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil((2 * count) ** (1 / 3))) + 1
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = grid - (side - 1) / 2
    inner = np.argsort((grid**2).sum(axis=1), kind="stable")[:count]
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_rotations(count, rng)
    poses[:, :3, 3] = grid[inner] * room + rng.uniform(-0.5, 0.5, (count, 3)) * jitter
    return poses


def random_rotations(count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, 3, 3) uniformly distributed rotations."""
    return rotations_of_quaternions(rng.normal(size=(count, 4)))


def rotations_of_quaternions(quaternions: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotations of quaternions (n, 4), x y z w of any non-zero length."""
    x, y, z, w = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)
