"""Integer model of the machine in NumPy; the RTL and the Warp kernels match it bit for bit.

Integers have 64 bits; sums of wide numbers take two of them.
"""

import numpy as np

from abut.bounds.fixed import LOW_BITS, LOW_MASK
from abut.hardware.program import ROTATION_ONE, Program, picks_of

AXIS_BITS = 17  # magnitude of an axis of the triangle unit
ROTATION_BITS = ROTATION_ONE.bit_length() - 1
TRIANGLE_AXES = 11  # the normals of a and b, then each edge of a with each of b


class AxisTable:
    """Rows of the axis table, ready to be applied to many pairs.

    Args:
        axes: (n, 9) rows, as in dop_frames.
        shift: Bits of a sum below a constant; ``width - 1`` where weights have ``width`` bits and
            constants two more.
        sides: Faces of a DOP.
    """

    def __init__(self, axes: np.ndarray, shift: int, sides: int) -> None:
        self.axes, self.shift = axes, shift
        picks, half = picks_of(axes), sides // 2
        others = np.where(picks < half, picks + half, picks - half)
        self.before = picks[:, :3], others[:, 3:]
        self.behind = others[:, :3], picks[:, 3:]
        self.weights = axes[:, 1:7]

    def separations(self, reaches_a: np.ndarray, reaches_b: np.ndarray) -> np.ndarray:
        """Whether axes separate pairs of DOPs: (p, n) bool for reaches (p, k), (n,) for (k,)."""
        apart = [
            _positive(
                np.concatenate([reaches_a[..., of_a], reaches_b[..., of_b]], axis=-1),
                self.weights,
                self.axes[:, column],
                self.shift,
            )
            for (of_a, of_b), column in ((self.before, 7), (self.behind, 8))
        ]
        return apart[0] | apart[1]


def _positive(
    reaches: np.ndarray, weights: np.ndarray, constants: np.ndarray, shift: int
) -> np.ndarray:
    """Whether the sum of products and constant, with ones below it, is not negative."""
    high = (weights * (reaches >> LOW_BITS)).sum(axis=-1)
    low = (weights * (reaches & LOW_MASK)).sum(axis=-1)
    below = shift - LOW_BITS  # bits below the constant, above the 17 low ones
    if below < 0:
        total = (high << LOW_BITS) + low + (constants << shift) + (1 << shift) - 1
        return total >= 0
    high = high + (constants << below) + (1 << below) - 1
    return high + ((low + LOW_MASK) >> LOW_BITS) >= 0


def triangle_axes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(11, 3): the axes of two triangles, each scaled to 18 bits by a shift."""
    edges_a, edges_b = np.roll(a, -1, axis=0) - a, np.roll(b, -1, axis=0) - b
    left = np.concatenate([edges_a[:1], edges_b[:1], np.repeat(edges_a, 3, axis=0)])
    right = np.concatenate([edges_a[1:2], edges_b[1:2], np.tile(edges_b, (3, 1))])
    across = np.cross(left, right)
    spread = np.bitwise_or.reduce(across ^ (across >> 63), axis=1)
    bits = np.frexp(spread.astype(np.float64))[1]
    return across >> np.maximum(bits - AXIS_BITS, 0)[:, None]


def triangle_apart(program: Program, face_a: int, face_b: int) -> int:
    """The first of the eleven axes that separates two faces, else 11."""
    a, b = program.a.triangles[face_a], program.b.triangles[face_b]
    a = (a @ program.rotation.T + program.shift) >> ROTATION_BITS  # in b's frame
    axes = triangle_axes(a, b)
    on_a, on_b = axes @ a.T, axes @ b.T
    norms = np.abs(axes).sum(axis=1)
    slack = (norms + (norms >> 2) + 1) << program.slack
    above = on_a.min(axis=1) - on_b.max(axis=1) > slack
    below = on_b.min(axis=1) - on_a.max(axis=1) > slack
    return int(np.argmax(np.append(above | below, True)))
