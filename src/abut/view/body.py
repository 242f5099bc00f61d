"""Body: a surface in a picture; and a palette of colours."""

from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field
from itertools import cycle
from typing import Any

import numpy as np

from abut.cases.shape import Shape
from abut.errors import MeshError, PoseError
from abut.mesh import Mesh

Color = tuple[float, float, float]

CORAL: Color = (0.94, 0.43, 0.34)
TEAL: Color = (0.20, 0.58, 0.68)
SAND: Color = (0.91, 0.78, 0.60)
GOLD: Color = (1.00, 0.84, 0.30)
INDIGO: Color = (0.44, 0.42, 0.72)
INK: Color = (0.16, 0.19, 0.30)
RED: Color = (0.84, 0.07, 0.07)
PALETTE = (SAND, TEAL, INDIGO, CORAL, GOLD)  # of shapes that are given without a colour

MATTE, GLOW, SHADOW = 0, 1, 2  # lit; emissive; visible only in shadow
CREASE = np.cos(np.radians(40.0))  # edges sharper than this stay sharp


@dataclass(frozen=True, repr=False)
class Body:
    """A surface in a picture.

    Args:
        pose: Rigid motion (4, 4) of the shape; None leaves it in place.

    Attributes:
        shape: Vertices and faces, as float64 and int32; made of a Mesh, a trimesh, or a pair of
            arrays.
        color: sRGB, each in [0, 1]; one for all faces, or (m, 3).
        opacity: 1 is opaque.
        marked: Faces (indices or a mask) drawn in the colour ``mark``, more opaque.
        finish: MATTE, GLOW or SHADOW.
    """

    shape: Any
    color: Any = CORAL
    opacity: float = 1.0
    marked: Any = field(default_factory=list)
    mark: Color = GOLD
    finish: int = MATTE
    pose: InitVar[Any] = None

    def __post_init__(self, pose: Any) -> None:
        """Read the arrays of the shape, and move them."""
        vertices, faces = _arrays_of(self.shape)
        if pose is not None:
            matrix = np.asarray(pose, float)
            if matrix.shape != (4, 4):
                raise PoseError(f"pose must be a (4, 4) matrix, not {matrix.shape}.")
            vertices = vertices @ matrix[:3, :3].T + matrix[:3, 3]
        object.__setattr__(self, "shape", Shape(vertices, faces))

    def __repr__(self) -> str:
        """Size of the shape."""
        vertices, faces = self.shape
        return f"Body({len(vertices):,} vertices, {len(faces):,} faces)"

    def is_marked(self) -> np.ndarray:
        """(m,) bool, whether each face is marked."""
        marked = np.zeros(len(self.shape.faces), bool)
        marked[np.asarray(self.marked, dtype=None if len(self.marked) else np.int64)] = True
        return marked

    def paint(self) -> np.ndarray:
        """(m, 4) linear colour and opacity of each face."""
        paint = np.empty((len(self.shape.faces), 4), np.float32)
        paint[:, :3], paint[:, 3] = _linear(self.color), self.opacity
        paint[self.is_marked()] = *_linear(self.mark), max(self.opacity, 0.7)
        return paint


def bodies_of(shapes: Iterable[Any]) -> list[Body]:
    """Bodies; other shapes become bodies in the colours of the palette."""
    painted = zip(shapes, cycle(PALETTE), strict=False)
    return [x if isinstance(x, Body) else Body(x, color) for x, color in painted]


def _arrays_of(shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) float64 and faces (m, 3) int32 of a Mesh, a trimesh or a pair of arrays."""
    if isinstance(shape, Mesh):
        return np.array(shape.points.numpy()), shape.faces.numpy()
    pair = (shape.vertices, shape.faces) if hasattr(shape, "vertices") else tuple(shape)
    if len(pair) != 2:
        raise MeshError(f"a body takes a mesh, or vertices and faces, not {type(shape).__name__}.")
    vertices, faces = np.asarray(pair[0], np.float64), np.asarray(pair[1], np.int32)
    if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,):
        found = f"{vertices.shape} and {faces.shape}"
        raise MeshError(f"a body takes vertices (n, 3) and faces (m, 3), not {found}.")
    return vertices, faces


def vertex_normals(shape: Shape) -> np.ndarray:
    """(n, 3) unit vertex normals, weighted by the area of adjacent faces."""
    corners = shape.faces.ravel()
    weights = np.repeat(_area_vectors(shape), 3, axis=0).T
    count = len(shape.vertices)
    return unit(np.stack([np.bincount(corners, axis, count) for axis in weights], axis=1))


def corner_normals(shape: Shape, smooth: np.ndarray) -> np.ndarray:
    """(m, 3, 3) normals of face corners: the vertex normal or, at creases, the face normal."""
    flat = unit(_area_vectors(shape))[:, None]
    rounded = smooth[shape.faces]
    return np.where((flat * rounded).sum(axis=2, keepdims=True) > CREASE, rounded, flat)


def _area_vectors(shape: Shape) -> np.ndarray:
    a, b, c = (shape.vertices[corner] for corner in shape.faces.T)
    return np.cross(b - a, c - a)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; z for those without a direction."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(lengths > 0, vectors / np.where(lengths > 0, lengths, 1), [0.0, 0.0, 1.0])


def _linear(color: Any) -> np.ndarray:
    """Convert sRGB to linear colour."""
    srgb = np.asarray(color)
    return np.where(srgb < 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
