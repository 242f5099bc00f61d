"""Cut a mesh by a plane across a coordinate axis."""

from typing import NamedTuple

import numpy as np


class Plane(NamedTuple):
    """A plane across a coordinate axis, and the side of it that is kept.

    Attributes:
        axis: 0, 1 or 2.
        offset: Coordinate of the plane on this axis.
        high: Keep the side of larger coordinates, not that of smaller ones.
    """

    axis: int
    offset: float
    high: bool = False

    def hides(self, points: np.ndarray) -> np.ndarray:
        """(…) bool: points (…, 3) strictly on the side that is not kept, decided exactly."""
        along = points[..., self.axis]
        return along < self.offset if self.high else along > self.offset


class Section(NamedTuple):
    """The part of a mesh on one side of a plane.

    Attributes:
        corners: (k, 3, 3) float64, its faces.
        outline: (n, 2, 3) float64, the segments in which faces cross the plane.
    """

    corners: np.ndarray
    outline: np.ndarray


def cut_mesh(vertices: np.ndarray, faces: np.ndarray, plane: Plane) -> Section:
    """Keep the points of a mesh on one side of a plane, and on the plane.

    Args:
        vertices: (n, 3) float64.
        faces: (m, 3).
        plane: The plane.

    Guarantee:
        Exact in its decisions: vertices are compared with the plane as they are, without a
        tolerance, and every new point lies on the plane. Its other coordinates are rounded; two
        faces with a common edge cut it at the same point.
    """
    hidden = plane.hides(vertices)
    count = hidden[faces].sum(axis=1)
    whole, one_kept, one_hidden = (faces[count == k] for k in (0, 2, 1))
    a, b, c = _from_lone(one_kept, ~hidden)
    tip = (vertices[a], *(_crossing(vertices, a, end, plane) for end in (b, c)))
    d, e, f = _from_lone(one_hidden, hidden)
    p, q = (_crossing(vertices, d, end, plane) for end in (e, f))
    cut = [tip, (p, vertices[e], vertices[f]), (p, vertices[f], q)]
    corners = np.concatenate([vertices[whole], *(np.stack(parts, axis=1) for parts in cut)])
    outline = np.concatenate([np.stack(tip[1:], axis=1), np.stack([q, p], axis=1)])
    return Section(corners, outline[(outline[:, 0] != outline[:, 1]).any(axis=1)])


def _from_lone(faces: np.ndarray, lone: np.ndarray) -> np.ndarray:
    """(3, m) corners of faces, turned so that the one for which ``lone`` is true comes first."""
    first = np.argmax(lone[faces], axis=1)
    rows = np.arange(len(faces))
    return np.stack([faces[rows, (first + k) % 3] for k in range(3)])


def _crossing(vertices: np.ndarray, a: np.ndarray, b: np.ndarray, plane: Plane) -> np.ndarray:
    """Points where edges cross a plane, the same whichever end is given first."""
    start, end = vertices[np.minimum(a, b)], vertices[np.maximum(a, b)]
    with np.errstate(over="ignore"):
        share = (plane.offset - start[:, plane.axis]) / (end - start)[:, plane.axis]
    points = start + share[:, None] * (end - start)
    points = np.clip(points, np.minimum(start, end), np.maximum(start, end))
    points[:, plane.axis] = plane.offset
    return points
