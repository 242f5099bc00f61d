"""Simulation: a moving scene, as demos, benchmarks and tests run it."""

from dataclasses import dataclass

import numpy as np

from abut.cases.shape import Shape


@dataclass(frozen=True)
class Seen:
    """A shape to draw.

    Attributes:
        shape: Its present geometry.
        role: One of ``cloth``, ``leaf``, ``wood``, ``stone``, ``piece`` and ``floor``.
        part: (m,) part of each face, for colours; None is one part.
    """

    shape: Shape
    role: str
    part: np.ndarray | None = None


class Simulation:
    """A scene that moves frame by frame.

    Attributes:
        stages: Names of the stages that ``core.timing.recording`` has times of.
        around: (n, 3) points that bound the whole simulation.
        face_count: Faces of all objects.
        other_method: The method of ``rows`` to compare with ``bvh``.
    """

    stages: tuple[str, ...]
    around: np.ndarray
    face_count: int
    other_method: str

    def advance(self) -> dict[str, int]:
        """Compute the next frame; returns counts of events."""
        raise NotImplementedError

    def seen(self) -> list[Seen]:
        """Return the shapes to draw now."""
        raise NotImplementedError

    def rows(self, method: str) -> np.ndarray:
        """Return the contacts (n, 4) of the present frame by a method: objects, then faces."""
        raise NotImplementedError


def box_corners(low: tuple[float, ...], high: tuple[float, ...]) -> np.ndarray:
    """Return the (8, 3) corners of a box."""
    grid = np.meshgrid(*zip(low, high, strict=True), indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 3)
