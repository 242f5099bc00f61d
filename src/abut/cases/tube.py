"""A closed surface along a polyline."""

import numpy as np

from abut.cases.shape import Shape, grid_faces


def tube(line: np.ndarray, radius: float, sides: int, *, closed: bool) -> Shape:
    """A round tube along ``line`` (n, 3); watertight, oriented outwards.

    Args:
        line: Points with distinct neighbours; n >= 2, or 3 when closed.
        radius: Distance from the line [mesh length unit].
        sides: Vertices of each ring.
        closed: Join the last point to the first; otherwise both ends are capped.
    """
    ahead, across = _frames(line, closed)
    over = np.cross(ahead, across)
    angle = np.linspace(0, 2 * np.pi, sides, endpoint=False)[:, None]
    ring = np.cos(angle) * across[:, None] + np.sin(angle) * over[:, None]
    vertices = (line[:, None] + radius * ring).reshape(-1, 3)
    # columns run about the line and rows along it: outwards is the side that grid faces show
    faces = grid_faces(len(line), sides, wrap=(closed, True))
    if closed:
        return Shape(vertices, faces)
    start, end = len(vertices), len(vertices) + 1
    here, east = np.arange(sides), np.roll(np.arange(sides), -1)
    last = (len(line) - 1) * sides
    caps = [
        np.stack([np.full(sides, start), east, here], axis=1),
        np.stack([here + last, east + last, np.full(sides, end)], axis=1),
    ]
    faces = np.concatenate([faces, *caps]).astype(np.int32)
    return Shape(np.concatenate([vertices, line[[0, -1]]]), faces)


def _frames(line: np.ndarray, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unit tangents, and unit normals that turn as little as possible from point to point."""
    steps = np.diff(line, axis=0, append=line[:1] if closed else 2 * line[-1:] - line[-2:-1])
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    before = np.roll(steps, 1, axis=0) if closed else np.concatenate([steps[:1], steps[:-1]])
    ahead = steps + before
    lengths = np.linalg.norm(ahead, axis=1, keepdims=True)
    ahead = np.where(lengths > 1e-9, ahead / np.maximum(lengths, 1e-9), steps)
    across = np.empty_like(ahead)
    normal = np.eye(3)[np.argmin(np.abs(ahead[0]))]
    for k, tangent in enumerate(ahead):
        normal = normal - tangent * (tangent @ normal)
        normal = normal / np.linalg.norm(normal)
        across[k] = normal
    return (ahead, _untwisted(ahead, across)) if closed else (ahead, across)


def _untwisted(ahead: np.ndarray, across: np.ndarray) -> np.ndarray:
    """Spread the angle by which the last normal misses the first over the whole closed line."""
    arrived = across[-1] - ahead[0] * (ahead[0] @ across[-1])
    over = np.cross(ahead[0], across[0])
    miss = np.arctan2(arrived @ over, arrived @ across[0])
    angle = -miss * np.arange(len(ahead))[:, None] / len(ahead)
    return np.cos(angle) * across + np.sin(angle) * np.cross(ahead, across)
