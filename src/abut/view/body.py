"""Body: a surface in a picture; and a palette of colours."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from abut.cases.shape import Shape

Color = tuple[float, float, float]

CORAL: Color = (0.94, 0.43, 0.34)
TEAL: Color = (0.20, 0.58, 0.68)
SAND: Color = (0.91, 0.78, 0.60)
GOLD: Color = (1.00, 0.84, 0.30)
INDIGO: Color = (0.44, 0.42, 0.72)
INK: Color = (0.16, 0.19, 0.30)
RED: Color = (0.84, 0.07, 0.07)

MATTE, GLOW, SHADOW = 0, 1, 2  # lit; emissive; visible only in shadow
CREASE = np.cos(np.radians(40.0))  # edges sharper than this stay sharp


@dataclass(frozen=True)
class Body:
    """A surface in a picture.

    Attributes:
        shape: Vertices and faces.
        color: sRGB, each in [0, 1]; one for all faces, or (m, 3).
        opacity: 1 is opaque.
        marked: Faces (indices or a mask) drawn in the colour ``mark``, more opaque.
        finish: MATTE, GLOW or SHADOW.
    """

    shape: Shape
    color: Any = CORAL
    opacity: float = 1.0
    marked: Any = field(default_factory=list)
    mark: Color = GOLD
    finish: int = MATTE

    def paint(self) -> np.ndarray:
        """(m, 4) linear colour and opacity of each face."""
        paint = np.empty((len(self.shape.faces), 4), np.float32)
        paint[:, :3], paint[:, 3] = _linear(self.color), self.opacity
        marked = np.asarray(self.marked, dtype=None if len(self.marked) else np.int64)
        paint[marked] = *_linear(self.mark), max(self.opacity, 0.7)
        return paint

    def vertex_normals(self) -> np.ndarray:
        """(n, 3) unit vertex normals, weighted by the area of adjacent faces."""
        out = np.zeros_like(self.shape.vertices)
        for corner in self.shape.faces.T:
            np.add.at(out, corner, _area_vectors(self.shape))
        return _unit(out)

    def corner_normals(self) -> np.ndarray:
        """(m, 3, 3) normals of face corners: the vertex normal or, at creases, the face normal."""
        flat = _unit(_area_vectors(self.shape))[:, None]
        smooth = self.vertex_normals()[self.shape.faces]
        return np.where((flat * smooth).sum(axis=2, keepdims=True) > CREASE, smooth, flat)


def _area_vectors(shape: Shape) -> np.ndarray:
    a, b, c = (shape.vertices[corner] for corner in shape.faces.T)
    return np.cross(b - a, c - a)


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(lengths > 0, vectors / np.where(lengths > 0, lengths, 1), [0.0, 0.0, 1.0])


def _linear(color: Any) -> np.ndarray:
    """Convert sRGB to linear colour."""
    srgb = np.asarray(color)
    return np.where(srgb < 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
