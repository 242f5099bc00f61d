"""Rotations of ball joints: quaternions w x y z among the values of a robot's joints."""

import numpy as np

from abut.errors import SceneError

LEAST_LENGTH, MOST_LENGTH = 1e-6, 1e6  # of a quaternion that is a rotation


def unit_quaternions(values: np.ndarray) -> np.ndarray:
    """(…, 4) of length 1."""
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def shorter_quaternions(values: np.ndarray) -> np.ndarray:
    """(…, 4) of length 1 with w >= 0: rotations by at most half a turn."""
    units = unit_quaternions(values)
    return np.where(units[..., :1] < 0, -units, units)


def rotations_of(values: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotations of (n, 4) quaternions of any length."""
    w, x, y, z = unit_quaternions(values).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def quaternion_of(rotation: np.ndarray) -> np.ndarray:
    """(4,) with w >= 0, of a (3, 3) rotation, as an eigenvector (Bar-Itzhack, 2000)."""
    (a, b, c), (d, e, f), (g, h, i) = rotation
    rows = [
        [a + e + i, h - f, c - g, d - b],
        [h - f, a - e - i, b + d, c + g],
        [c - g, b + d, e - a - i, f + h],
        [d - b, c + g, f + h, i - a - e],
    ]
    return shorter_quaternions(np.linalg.eigh(np.array(rows))[1][:, -1])


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 4) quaternions of the rotations a, then b about axes that move along."""
    w = a[:, 0] * b[:, 0] - (a[:, 1:] * b[:, 1:]).sum(axis=1)
    rest = a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:] + np.cross(a[:, 1:], b[:, 1:])
    return np.column_stack([w, rest])


def turns_between(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(n, 4) angle and unit axis, in the frame at the start, of the shorter way to the end."""
    back = unit_quaternions(start) * [1, -1, -1, -1]
    between = shorter_quaternions(product(back, unit_quaternions(end)))
    size = np.linalg.norm(between[:, 1:], axis=1)
    axes = np.tile([1.0, 0.0, 0.0], (len(start), 1))
    axes[size > 0] = between[size > 0, 1:] / size[size > 0, None]
    return np.column_stack([2.0 * np.arctan2(size, between[:, 0]), axes])


def motion_rates(start: np.ndarray, end: np.ndarray, balls: list[int]) -> np.ndarray:
    """(n, k) changes of values; for a ball the angle and the axis of its turn."""
    rates = end - start
    for column in balls:
        part = slice(column, column + 4)
        rates[:, part] = turns_between(start[:, part], end[:, part])
    return rates


def values_between(
    start: np.ndarray, end: np.ndarray, balls: list[int], t: np.ndarray
) -> np.ndarray:
    """(k,) or (n, k) values at a time, or (n,) of them, of the straight motion between (k,)."""
    values = start + t[..., None] * (end - start)
    for column in balls:
        part = slice(column, column + 4)
        angle, *axis = turns_between(start[None, part], end[None, part])[0]
        half = np.atleast_1d(0.5 * angle * t)
        turn = np.column_stack([np.cos(half), np.sin(half)[:, None] * np.array(axis)])
        first = np.tile(unit_quaternions(start[part]), (len(turn), 1))
        values[..., part] = product(first, turn).reshape(values[..., part].shape)
    return values


def require_rotations(values: np.ndarray, balls: list[int], joints: list[str]) -> None:
    """Refuse quaternions among (k,) or (B, k) finite values that have no length to speak of.

    Raises:
        SceneError: Names the first joint.
    """
    for column in balls:
        part = np.atleast_2d(values)[:, column : column + 4]
        with np.errstate(over="ignore"):
            length = np.linalg.norm(part, axis=1)
        bad = np.flatnonzero(~((length >= LEAST_LENGTH) & (length <= MOST_LENGTH)))
        if len(bad):
            row = f" of configuration {bad[0]}" if values.ndim == 2 else ""
            name = joints[column].removesuffix("_w")
            raise SceneError(
                f"joint {name}{row} is {part[bad[0]].tolist()}, which is no quaternion w x y z "
                "of a rotation; its length should be 1."
            )
