"""The integer model: what the machine computes, in NumPy. The RTL and the Warp kernels match it.

Python and NumPy integers of 64 bits; sums of wide numbers take two of them.
"""

import numpy as np

from abut.bounds.fixed import LOW_BITS, LOW_MASK
from abut.hardware.config import Machine
from abut.hardware.program import TURN_ONE, Program

AXIS_BITS = 17  # magnitude of an axis of the triangle unit
TURN_BITS = TURN_ONE.bit_length() - 1
# the axes of two triangles: their normals, then each pair of edges
TRIANGLE_AXES = [(None, 0), (None, 1), *((i, j) for i in range(3) for j in range(3))]


def picks_of(axes: np.ndarray) -> np.ndarray:
    """(n, 6) indices of normals: three of a, three of b."""
    return (axes[:, :1] >> (5 * np.arange(6))) & 31


def separations(
    axes: np.ndarray, width: int, reaches_a: np.ndarray, reaches_b: np.ndarray
) -> np.ndarray:
    """Which axes separate which pairs of DOPs.

    Args:
        axes: (n, 9) rows of the axis table.
        width: Bits of reaches.
        reaches_a, reaches_b: (p, k) or (k,) integers.

    Returns:
        (p, n) or (n,) bool.
    """
    half = reaches_a.shape[-1] // 2
    picks = picks_of(axes)
    others = np.where(picks < half, picks + half, picks - half)
    before = [reaches_a[..., picks[:, :3]], reaches_b[..., others[:, 3:]]]
    behind = [reaches_a[..., others[:, :3]], reaches_b[..., picks[:, 3:]]]
    weights = axes[:, 1:7]
    return _positive(np.concatenate(before, -1), weights, axes[:, 7], width) | _positive(
        np.concatenate(behind, -1), weights, axes[:, 8], width
    )


def _positive(
    reaches: np.ndarray, weights: np.ndarray, constants: np.ndarray, width: int
) -> np.ndarray:
    """Whether products and constant, with ones below it, add up to no negative number."""
    high = (weights * (reaches >> LOW_BITS)).sum(axis=-1)
    low = (weights * (reaches & LOW_MASK)).sum(axis=-1)
    below = width - 1 - LOW_BITS  # bits below the constant, above the 17 low ones
    if below < 0:
        total = (high << LOW_BITS) + low + (constants << (width - 1)) + (1 << (width - 1)) - 1
        return total >= 0
    high = high + (constants << below) + (1 << below) - 1
    return high + ((low + LOW_MASK) >> LOW_BITS) >= 0


def turned_corners(program: Program, face_a: int) -> np.ndarray:
    """(3, 3) corners of a face of a in b's frame."""
    return (program.a.triangles[face_a] @ program.turn.T + program.shift) >> TURN_BITS


def triangle_axis(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    """One of the eleven axes of two triangles, scaled to 18 bits by a shift."""
    i, j = TRIANGLE_AXES[axis]
    if i is None:
        corners = (a, b)[j]
        x, y = corners[1] - corners[0], corners[2] - corners[1]
    else:
        x, y = a[(i + 1) % 3] - a[i], b[(j + 1) % 3] - b[j]
    across = [
        int(x[(n + 1) % 3] * y[(n + 2) % 3] - x[(n + 2) % 3] * y[(n + 1) % 3]) for n in range(3)
    ]
    spread = 0
    for part in across:
        spread |= part if part >= 0 else ~part
    shift = max(spread.bit_length() - AXIS_BITS, 0)
    return np.array([part >> shift for part in across], dtype=np.int64)


def triangle_apart(program: Program, face_a: int, face_b: int) -> int:
    """The first of the eleven axes that separates two faces, else 11."""
    a, b = turned_corners(program, face_a), program.b.triangles[face_b]
    for n in range(len(TRIANGLE_AXES)):
        axis = triangle_axis(a, b, n)
        on_a, on_b = a @ axis, b @ axis
        slack = int(np.abs(axis).sum()) << program.slack
        if on_a.min() - on_b.max() > slack or on_b.min() - on_a.max() > slack:
            return n
    return len(TRIANGLE_AXES)


def axis_rows(program: Program) -> list[int]:
    """The axis table as the machine's words, one for each axis.

    A pick is coded as row (three bits), odd, swapped: slabs lie two a row, each with its opposite.
    """
    machine = program.machine
    words = []
    for row, picks in zip(program.axes.tolist(), picks_of(program.axes).tolist(), strict=True):
        word, at = 0, 0
        for pick in picks:
            slab = pick % machine.half
            code = (slab >> 1) | ((slab & 1) << 3) | (int(pick >= machine.half) << 4)
            word |= code << at
            at += 5
        for weight in row[1:7]:
            word |= (weight & ((1 << machine.width) - 1)) << at
            at += machine.width
        for constant in row[7:]:
            word |= (constant & ((1 << machine.constant_bits) - 1)) << at
            at += machine.constant_bits
        words.append(word)
    return words


def idle_row(machine: Machine) -> int:
    """A row that separates nothing, for pipelines that have no axis left."""
    lowest = 1 << (machine.constant_bits - 1)
    at = machine.axis_bits - machine.constant_bits
    return (lowest << at) | (lowest << (at - machine.constant_bits))
