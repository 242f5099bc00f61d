"""Simulation: a moving scene, as demos, benchmarks and tests run it."""

from dataclasses import dataclass
from typing import Protocol

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


class Simulation(Protocol):
    """A scene that moves frame by frame.

    Attributes:
        stages: Names of the stages that ``core.timing.recording`` has times of.
        around: (n, 3) points that bound the whole simulation.
        face_count: Faces of all objects.
        other_method: The method of ``rows`` to compare with ``bvh``.
    """

    @property
    def stages(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def around(self) -> np.ndarray: ...  # noqa: D102

    @property
    def face_count(self) -> int: ...  # noqa: D102

    @property
    def other_method(self) -> str: ...  # noqa: D102

    def advance(self) -> dict[str, int]:
        """Compute the next frame; returns counts of events."""
        ...

    def seen(self) -> list[Seen]:
        """Return the shapes to draw now."""
        ...

    def rows(self, method: str) -> np.ndarray:
        """Return the contacts (n, 4) of the present frame by a method: objects, then faces."""
        ...


def box_corners(low: tuple[float, ...], high: tuple[float, ...]) -> np.ndarray:
    """Return the (8, 3) corners of a box."""
    return np.stack(np.meshgrid(*zip(low, high, strict=True), indexing="ij"), axis=-1).reshape(
        -1, 3
    )
