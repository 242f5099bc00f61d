"""Shapes of parts in a page: rounded to 16 bits, compressed, each once or a piece near a clash."""

import base64
import zlib

import numpy as np

from abut.coordination.parts.part_table import PartTable

WHOLE_FACES = 20_000  # a mesh of more faces is cut to the faces around each clash
PIECE_FACES = 6_000
STEPS = 65535  # of positions over the box of a shape


def deflated_text(data: bytes) -> str:
    """Deflated bytes as base64."""
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(squeezed.compress(data) + squeezed.flush()).decode("ascii")


def is_whole(parts: PartTable, row: int) -> bool:
    """Whether a part is small enough to be shown whole."""
    return len(parts.part_meshes[parts.mesh[row]].faces) <= WHOLE_FACES


def piece_of(parts: PartTable, row: int, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices in the world and faces of a part that reach into a box (2, 3), the nearest ones."""
    points, faces = parts.world_points(row), parts.part_meshes[parts.mesh[row]].faces
    corners = points[faces]
    low, high = corners.min(axis=1), corners.max(axis=1)
    near = np.flatnonzero((low <= frame[1]).all(axis=1) & (high >= frame[0]).all(axis=1))
    if len(near) > PIECE_FACES:
        middle = frame.mean(axis=0)
        away = np.maximum(low[near] - middle, 0) + np.maximum(middle - high[near], 0)
        near = np.sort(near[np.argsort((away**2).sum(axis=1), kind="stable")[:PIECE_FACES]])
    return points, faces[near]


def shape_bytes(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """A shape as bytes, little endian.

    Number of vertices and of faces (2 uint32), low corner and extent of a step (6 float64),
    differences of successive x, then y, then z (uint16), and of successive corners of faces
    (uint32), both modulo their range. Equal positions are merged; faces without area are dropped.
    """
    used, index = np.unique(faces, return_inverse=True)
    points = vertices[used]
    low = points.min(axis=0) if len(points) else np.zeros(3)
    step = (np.ptp(points, axis=0) if len(points) else np.zeros(3)) / STEPS
    rounded = np.round((points - low) / np.where(step > 0, step, 1)).astype(np.int64)
    places, at = np.unique(rounded, axis=0, return_inverse=True)
    corners = at.reshape(-1)[index.reshape(-1)].reshape(-1, 3)
    distinct = (corners != np.roll(corners, 1, axis=1)).all(axis=1)
    corners = corners[distinct]
    head = np.array([len(places), len(corners)], "<u4").tobytes()
    box = np.concatenate([low, step]).astype("<f8").tobytes()
    moves = [np.diff(axis, prepend=0).astype("<u2").tobytes() for axis in places.T]
    return b"".join(
        [head, box, *moves, np.diff(corners.ravel(), prepend=0).astype("<u4").tobytes()]
    )
