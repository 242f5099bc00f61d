"""Cells of a cubic grid, and their order along the Morton curve."""

from dataclasses import dataclass

import numpy as np

BITS = 20  # of a cell along each axis: codes and their ends fit int64
SIDE = 1 << BITS  # cells along each axis


@dataclass(frozen=True)
class Grid:
    """SIDE³ cells around points.

    Attributes:
        origin: (3,) low corner.
        size: Side of a cell.
    """

    origin: np.ndarray
    size: float

    @classmethod
    def around(cls, low: np.ndarray, high: np.ndarray) -> "Grid":
        """The grid around boxes (n, 3)."""
        if not len(low):
            return cls(np.zeros(3), 1.0)
        origin = low.min(axis=0)
        size = float((high.max(axis=0) - origin).max()) / SIDE
        return cls(origin, size if size > 0.0 else 1.0)

    def cells(self, points: np.ndarray) -> np.ndarray:
        """(n, 3) int32 cells of points; those outside are in the nearest cell.

        Ascending coordinates have ascending cells: subtraction, division and rounding down are
        monotone in floating point.
        """
        places = np.floor((points - self.origin) / self.size)
        return np.clip(places, 0, SIDE - 1).astype(np.int32)


def morton_codes(cells: np.ndarray) -> np.ndarray:
    """(n,) int64 codes of cells (n, 3): their bits, interleaved."""
    x, y, z = (_spread(cells[:, axis].astype(np.int64)) for axis in range(3))
    return (x << 2) | (y << 1) | z


def cells_of_codes(codes: np.ndarray) -> np.ndarray:
    """(n, 3) int64 cells of codes."""
    return np.stack([_gathered(codes >> shift) for shift in (2, 1, 0)], axis=1)


_STEPS = [
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
]
_LOW = (1 << BITS) - 1


def _spread(x: np.ndarray) -> np.ndarray:
    """Put two zero bits between the bits of x."""
    for shift, mask in _STEPS:
        x = (x | (x << shift)) & mask
    return x


def _gathered(x: np.ndarray) -> np.ndarray:
    """Every third bit of x."""
    x = x & _STEPS[-1][1]
    for (shift, _), mask in zip(_STEPS[::-1], [m for _, m in _STEPS[-2::-1]] + [_LOW], strict=True):
        x = (x | (x >> shift)) & mask
    return x
