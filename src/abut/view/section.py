"""Cut a mesh by a plane across a coordinate axis."""

from typing import NamedTuple

import numpy as np


class Section(NamedTuple):
    """The part of a mesh on the low side of a plane.

    Attributes:
        corners: (k, 3, 3) float64, its faces.
        outline: (n, 2, 3) float64, the segments in which faces cross the plane.
    """

    corners: np.ndarray
    outline: np.ndarray


def cut_mesh(vertices: np.ndarray, faces: np.ndarray, axis: int, offset: float) -> Section:
    """Keep the points of a mesh whose coordinate is at most ``offset``.

    Args:
        vertices: (n, 3) float64.
        faces: (m, 3).
        axis: 0, 1 or 2.
        offset: Coordinate of the plane on this axis.

    Guarantee:
        Exact in its decisions: vertices are compared with the plane as they are, without a
        tolerance, and every new point lies on the plane. Its other coordinates are rounded; two
        faces with a common edge cut it at the same point.
    """
    above = vertices[:, axis] > offset
    count = above[faces].sum(axis=1)
    kept, lone_below, lone_above = (faces[count == k] for k in (0, 2, 1))
    a, b, c = _from_lone(lone_below, ~above)
    low = (
        vertices[a],
        _crossing(vertices, a, b, axis, offset),
        _crossing(vertices, a, c, axis, offset),
    )
    d, e, f = _from_lone(lone_above, above)
    p, q = _crossing(vertices, d, e, axis, offset), _crossing(vertices, d, f, axis, offset)
    cut = [low, (p, vertices[e], vertices[f]), (p, vertices[f], q)]
    corners = np.concatenate([vertices[kept], *(np.stack(parts, axis=1) for parts in cut)])
    outline = np.concatenate([np.stack(low[1:], axis=1), np.stack([q, p], axis=1)])
    return Section(corners, outline[(outline[:, 0] != outline[:, 1]).any(axis=1)])


def _from_lone(faces: np.ndarray, lone: np.ndarray) -> np.ndarray:
    """(3, m) corners of faces, turned so that the one for which ``lone`` is true comes first."""
    first = np.argmax(lone[faces], axis=1)
    rows = np.arange(len(faces))
    return np.stack([faces[rows, (first + k) % 3] for k in range(3)])


def _crossing(
    vertices: np.ndarray, a: np.ndarray, b: np.ndarray, axis: int, offset: float
) -> np.ndarray:
    """Points where edges cross the plane, the same whichever end is given first."""
    start, end = vertices[np.minimum(a, b)], vertices[np.maximum(a, b)]
    with np.errstate(over="ignore"):
        share = (offset - start[:, axis]) / (end[:, axis] - start[:, axis])
    points = start + share[:, None] * (end - start)
    points = np.clip(points, np.minimum(start, end), np.maximum(start, end))
    points[:, axis] = offset
    return points
