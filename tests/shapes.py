"""Motions and shapes that tests need beside ``abut.cases``."""

import numpy as np

from abut.cases import Shape, icosphere


def moved(vertices, pose):
    """Vertices moved by a pose as documented: ((r0 x + r1 y) + r2 z) + t, each step rounded."""
    x, y, z = np.asarray(vertices, float).T
    rows = [((r[0] * x + r[1] * y) + r[2] * z) + r[3] for r in np.asarray(pose, float)[:3]]
    return np.stack(rows, axis=1)


def shift(x, y, z):
    """The pose that moves by a vector."""
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def random_poses(count, reach, seed=0):
    """(count, 4, 4) rigid motions: any turn, shifts up to ``reach`` along each axis."""
    rng = np.random.default_rng(seed)
    turns, _ = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    turns[np.linalg.det(turns) < 0] *= -1
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = turns
    poses[:, :3, 3] = rng.uniform(-reach, reach, size=(count, 3))
    return poses


def soup(shape):
    """The same faces with vertices of their own, as an STL file has them."""
    return _unjoined(shape.vertices[shape.faces])


def strips(count, along=0):
    """Long thin triangles side by side in the xy plane, along the x axis (0) or the y axis (1)."""
    at = np.linspace(-1, 1, count)
    half = 0.4 / count
    corners = np.zeros((count, 3, 3))
    corners[:, :, along] = [-2, -2, 2]
    corners[:, :, 1 - along] = np.stack([at - half, at + half, at], axis=1)
    return _unjoined(corners)


def walls(count):
    """Tall triangles side by side, each across all strips along x."""
    corners = np.tile([[0.0, -2, -1], [0, 2, -1], [0, 0, 5]], (count, 1, 1))
    corners[:, :, 0] = np.linspace(-1, 1, count)[:, None]
    return _unjoined(corners)


def _unjoined(corners):
    """Triangles (n, 3, 3) as a shape."""
    return Shape(corners.reshape(-1, 3), np.arange(3 * len(corners), dtype=np.int32).reshape(-1, 3))


def octahedron(size, at=(0, 0, 0)):
    """Six corners along the axes: rays along x from them meet the edges of boxes."""
    corners = np.concatenate([np.eye(3), -np.eye(3)]) * size + np.asarray(at, float)
    signs = [(i, j, k) for i in (0, 3) for j in (1, 4) for k in (2, 5)]
    faces = [(i, j, k) if (i + j + k) % 2 else (i, k, j) for i, j, k in signs]
    return Shape(corners, np.array(faces, np.int32))


def flipped(shape):
    """The same faces turned over."""
    return Shape(shape.vertices, shape.faces[:, ::-1].copy())


def bowl(faces=1280, rim=0.3):
    """A ball that is open above a height: inside and outside meet in the air."""
    ball = icosphere(faces)
    below = ball.vertices[ball.faces][:, :, 2].max(axis=1) < rim
    return Shape(ball.vertices, ball.faces[below])
