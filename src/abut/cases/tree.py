"""A tree with leaves."""

import numpy as np

from abut.cases.placed_shapes import PlacedShapes
from abut.cases.shape import Shape, grid_faces, joined
from abut.cases.shapes import tube

LEAF_CELLS = 13, 6  # 156 faces
SIDES, RINGS = 8, 7  # of a branch, which has 8 (2 * 6 + 2) = 112 faces
FORKS = 3
UP = np.array([0.0, 0.0, 1.0])


def leaves(
    count: int = 150, tree_faces: int = 16_600, *, bend: float = 0.8, seed: int = 0
) -> PlacedShapes:
    """A tree and ``count`` leaves of 156 faces at its outer branches; the tree comes first.

    The default has 40K faces. Leaves are open sheets, bent at random. Some touch the tree or each
    other.

    Args:
        count: Number of leaves.
        tree_faces: Approximate number of faces of the tree.
        bend: Largest bend of a leaf along its length [radians].
        seed: Seed of branches and leaves.
    """
    rng = np.random.default_rng(seed)
    lines, radii = _branches(max(1, tree_faces // (SIDES * 2 * RINGS)), rng)
    wood = [tube(line, r, SIDES, closed=False) for line, r in zip(lines, radii, strict=True)]
    outer = lines[len(lines) // 2 :]
    shapes, poses = [joined(*wood)], np.tile(np.eye(4), (count + 1, 1, 1))
    for k in range(count):
        line = outer[rng.integers(len(outer))]
        at, way = _along(line, rng.uniform(0.3, 1.0)), rng.normal(size=3) - 0.3 * UP
        shapes.append(leaf(bend * rng.uniform(0.3, 1.0), 0.5 * rng.uniform(-1, 1)))
        poses[k + 1, :3, :3] = _frame(way, rng.normal(size=3))
        poses[k + 1, :3, 3] = at + 0.03 * poses[k + 1, :3, 0]
    return PlacedShapes(shapes, poses)


def leaf(bend: float = 0.0, curl: float = 0.0, length: float = 0.22) -> Shape:
    """A leaf of 156 faces from the origin along x, facing up.

    Args:
        bend: Downward angle of its tip [radians].
        curl: Upward angle of its sides [radians].
        length: Length from stalk to tip [mesh length unit].
    """
    rows, columns = LEAF_CELLS[0] + 1, LEAF_CELLS[1] + 1
    along, across = np.linspace(0, 1, rows)[:, None], np.linspace(-1, 1, columns)[None]
    wide = 0.02 + 0.24 * np.sin(np.pi * along**0.8) ** 0.9
    y = wide * across
    lift = np.abs(y) * np.sin(curl)
    x, z = along + 0 * across, 0 * across * along
    if bend:
        x, z = np.sin(bend * along) / bend + 0 * y, (np.cos(bend * along) - 1) / bend + 0 * y
    vertices = np.stack([x, y * np.cos(curl), z + lift], axis=-1).reshape(-1, 3)
    return Shape(length * vertices, grid_faces(rows, columns, wrap=(False, False)))


def _branches(count: int, rng: np.random.Generator) -> tuple[list[np.ndarray], list[float]]:
    """Lines and radii of ``count`` branches, thick ones first; each grows out of another."""
    lines, radii = [_grown(np.zeros(3), UP, 1.1, rng)], [0.07]
    parent = 0
    while len(lines) < count:
        for fork in range(FORKS):
            if len(lines) == count:
                break
            line = lines[parent]
            size = 0.7 * float(np.linalg.norm(line[-1] - line[0]))
            start = _along(line, 1.0 if fork == 0 else rng.uniform(0.6, 0.95))
            ahead = line[-1] - line[-2]
            way = ahead / np.linalg.norm(ahead) + 0.7 * rng.normal(size=3) + 0.3 * UP
            way[2] = max(way[2], 0.1)
            lines.append(_grown(start, way, max(size, 0.12), rng))
            radii.append(max(0.62 * radii[parent], 0.004))
        parent += 1
    return lines, radii


def _grown(
    start: np.ndarray, way: np.ndarray, length: float, rng: np.random.Generator
) -> np.ndarray:
    """A crooked line of RINGS points."""
    steps = way / np.linalg.norm(way) + 0.12 * rng.normal(size=(RINGS - 1, 3))
    walked = np.cumsum(steps * (length / (RINGS - 1)), axis=0)
    return np.concatenate([[start], start + walked])


def _along(line: np.ndarray, share: float) -> np.ndarray:
    at = share * (len(line) - 1)
    return np.array([np.interp(at, np.arange(len(line)), axis) for axis in line.T])


def _frame(ahead: np.ndarray, side: np.ndarray) -> np.ndarray:
    """A rotation whose x axis points ``ahead``."""
    x = ahead / np.linalg.norm(ahead)
    y = np.cross(side, x)
    y /= np.linalg.norm(y)
    return np.stack([x, y, np.cross(x, y)], axis=1)
