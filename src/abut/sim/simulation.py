"""Play: a scene that moves by itself, as demos, benchmarks and tests run it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from abut.cases.shape import Shape


@dataclass(frozen=True)
class Seen:
    """Something to look at.

    Attributes:
        shape: Where it is now.
        role: What it is: ``cloth``, ``leaf``, ``wood``, ``stone``, ``piece`` or ``floor``.
        part: (m,) which part of it each face belongs to, to tell parts by colour; None is one part.
    """

    shape: Shape
    role: str
    part: np.ndarray | None = None


class Play(Protocol):
    """A scene that moves frame by frame.

    Attributes:
        stages: Names of the stages that ``recording`` will have times of.
        around: (n, 3) points that hold the whole play.
        face_count: Faces of everything that takes part.
        other_method: What ``rows`` is best compared with ``bvh`` by.
    """

    stages: tuple[str, ...]
    around: np.ndarray
    face_count: int
    other_method: str

    def advance(self) -> dict[str, int]:
        """Go on to the next frame; returns counts of what happened."""
        ...

    def seen(self) -> list[Seen]:
        """What there is to look at now."""
        ...

    def rows(self, method: str) -> np.ndarray:
        """(n, 4) contacts of the present frame, found by a method: objects, then faces."""
        ...


def box_corners(low: tuple[float, ...], high: tuple[float, ...]) -> np.ndarray:
    """The (8, 3) corners of a box."""
    return np.stack(np.meshgrid(*zip(low, high, strict=True), indexing="ij"), axis=-1).reshape(
        -1, 3
    )
