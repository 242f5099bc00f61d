"""Motions of four points, as a vertex and a face or as two edges, on which float arithmetic trips.

All coordinates are exact: integers of a few bits, times powers of two. Where a family promises a
contact the promise holds for the coordinates as they are.
"""

import numpy as np


def grid(rng, n, size=3):
    """Small integers, at both ends of the step."""
    return [rng.integers(-size, size + 1, (n, 4, 3)).astype(float) for _ in range(2)]


def in_one_plane(rng, n):
    """In one oblique plane throughout."""
    basis = rng.integers(-3, 4, (n, 2, 3)).astype(float)
    flat = rng.integers(-4, 5, (2, n, 4, 2)).astype(float)
    middle = rng.integers(-50, 51, (n, 1, 3))
    return [middle + flat[k] @ basis for k in range(2)]


def in_one_line(rng, n):
    """On one line throughout."""
    along = rng.integers(-3, 4, (n, 1, 3)).astype(float)
    places = rng.integers(-6, 7, (2, n, 4, 1))
    return [places[k] * along for k in range(2)]


def in_a_sliding_plane(rng, n):
    """In one plane at each time, one that moves."""
    points = in_one_plane(rng, n)
    points[1] += rng.integers(-9, 10, (n, 1, 3))
    return points


def without_area(rng, n):
    """The last three on one line, at both ends; now and then in one point."""
    points = grid(rng, n, 4)
    share = rng.integers(-1, 3, (n, 1))
    for p in points:
        p[:, 3] = p[:, 1] + share * (p[:, 2] - p[:, 1])
        p[::5, 2:] = p[::5, 1:2]
    return points


def without_length(rng, n):
    """The last two are one point."""
    points = grid(rng, n)
    for p in points:
        p[:, 3] = p[:, 2]
        p[::3, 1] = p[::3, 0]
    return points


def parallel(rng, n):
    """The second two differ by a multiple of what the first two do, at both ends."""
    points = grid(rng, n)
    factor = rng.integers(-2, 3, (n, 1))
    for p in points:
        p[:, 3] = p[:, 2] + factor * (p[:, 1] - p[:, 0])
    return points


def parallel_in_between(rng, n):
    """Parallel at half time, so that the plane they share turns over."""
    points = grid(rng, n, 2)
    middle = points[0] + points[1]
    points[1][:, 3] += middle[:, 1] - middle[:, 0] - middle[:, 3] + middle[:, 2]
    return points


def slow_and_far(rng, n):
    """Far from the origin, where float64 has some 20 bits left."""
    return [p * 2.0**-20 + 2.0**13 for p in grid(rng, n, 40)]


def drifting(rng, n):
    """All go the same long way, besides what they do."""
    start, end = grid(rng, n)
    return [start, end + 2.0**30 * rng.integers(-3, 4, (n, 1, 3))]


def rushing(rng, n):
    """One goes a million times its own size."""
    start, end = grid(rng, n, 2)
    end[:, 0] += 2.0**20 * rng.integers(-1, 2, (n, 3))
    return [start, end]


def needles(rng, n):
    """One coordinate a billionth of the others."""
    return [p * [1.0, 2.0**-30, 1.0] for p in grid(rng, n)]


def uneven(rng, n):
    """One point far away from all others."""
    points = grid(rng, n)
    for p in points:
        p[:, 3] *= 2.0**24
    return points


def still(rng, n):
    """Nothing moves."""
    start, _ = grid(rng, n, 2)
    return [start, start.copy()]


def grazing(rng, n):
    """A hair's breadth above or below what lies in one plane."""
    points = in_one_plane(rng, n)
    hair = 2.0 ** -rng.integers(30, 60, (n, 1))
    for p in points:
        p[:, 0] += hair * rng.integers(-1, 2, (n, 3))
    return points


def turning_round(rng, n):
    """Face or edge turns about itself by a half, through nothing, while the others pass."""
    start, end = grid(rng, n)
    end[:, 2:] = start[:, 2:][:, ::-1]
    return [start, end]


FAMILIES = {
    name.__name__: name
    for name in (
        grid, in_one_plane, in_one_line, in_a_sliding_plane, without_area, without_length, parallel,
        parallel_in_between, slow_and_far, drifting, rushing, needles, uneven, still, grazing,
        turning_round,
    )
}  # fmt: skip


def nudged(rng, points):
    """One coordinate of each row goes to the next float, up or down."""
    start = points[0].copy()
    at = np.arange(len(start)), rng.integers(0, 4, len(start)), rng.integers(0, 3, len(start))
    start[at] = np.nextafter(start[at], np.where(rng.integers(0, 2, len(start)), np.inf, -np.inf))
    return [start, points[1]]
