"""Shape: the plain arrays of a mesh; faces of vertex grids."""

from typing import NamedTuple

import numpy as np


class Shape(NamedTuple):
    """Vertices (n, 3) float64 and faces (m, 3) int32; ``abut.Mesh(*shape)`` makes a mesh."""

    vertices: np.ndarray
    faces: np.ndarray

    def moved(self, by: tuple[float, float, float]) -> "Shape":
        """The shape shifted by a vector."""
        return Shape(self.vertices + np.asarray(by), self.faces)

    def turned(self, axis: str, degrees: float) -> "Shape":
        """The shape rotated about a coordinate axis, by the right-hand rule."""
        i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        vertices = self.vertices.copy()
        vertices[:, i] = c * self.vertices[:, i] - s * self.vertices[:, j]
        vertices[:, j] = s * self.vertices[:, i] + c * self.vertices[:, j]
        return Shape(vertices, self.faces)


def joined(*shapes: Shape) -> Shape:
    """Concatenate shapes to one."""
    firsts = np.cumsum([0] + [len(shape.vertices) for shape in shapes]).astype(np.int32)
    return Shape(
        np.concatenate([shape.vertices for shape in shapes]),
        np.concatenate([s.faces + f for s, f in zip(shapes, firsts, strict=False)]),
    )


def grid_faces(rows: int, columns: int, *, wrap: tuple[bool, bool]) -> np.ndarray:
    """Two triangles for each cell of a grid of vertices; ``wrap`` joins its far sides.

    Faces are counter-clockwise when rows go up and columns go right.
    """
    i, j = np.meshgrid(
        np.arange(rows if wrap[0] else rows - 1),
        np.arange(columns if wrap[1] else columns - 1),
        indexing="ij",
    )
    up, right = (i + 1) % rows, (j + 1) % columns
    here, east = i * columns + j, i * columns + right
    north, far = up * columns + j, up * columns + right
    lower = np.stack([here, east, far], axis=-1)
    upper = np.stack([here, far, north], axis=-1)
    return np.stack([lower, upper], axis=2).reshape(-1, 3).astype(np.int32)


def tube_faces(rings: int, sides: int) -> np.ndarray:
    """Faces of a grid of rings that is closed by two further vertices, first end and last."""
    first, last = rings * sides, rings * sides + 1
    here, east = np.arange(sides), np.roll(np.arange(sides), -1)
    top = (rings - 1) * sides
    start = np.stack([np.full(sides, first), east, here], axis=1)
    end = np.stack([here + top, east + top, np.full(sides, last)], axis=1)
    belt = grid_faces(rings, sides, wrap=(False, True))
    return np.concatenate([belt, start, end]).astype(np.int32)
