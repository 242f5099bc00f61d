"""Points that try exact arithmetic: flat, touching, nearly so, huge, tiny, all scales mixed.

A family makes ``count`` groups of ``size`` points, (count, size, 3) float64; within a group the
points stand in the awkward relation.
"""

import numpy as np

SMALLEST = 5e-324  # subnormal: all differences and products of the family "subnormal" underflow


def random(rng, count, size):
    return rng.normal(size=(count, size, 3))


def grid(rng, count, size):
    """Whole numbers from a small range: many equal, collinear and coplanar points."""
    return rng.integers(-2, 3, size=(count, size, 3)).astype(float)


def flat(rng, count, size):
    """All of a group in one slanted plane, exactly."""
    points = grid(rng, count, size)
    points[..., 2] = points[..., 0] - 2 * points[..., 1]
    return points


def on_a_line(rng, count, size):
    """All of a group on one slanted line, exactly."""
    return rng.integers(-4, 5, size=(count, size, 1)) * np.array([1.0, -2.0, 3.0])


def on_plane(rng, count, size):
    """Three free points; others in their plane, often in their triangle, but for rounding."""
    points = random(rng, count, size)
    for k in range(3, size):
        share = rng.uniform(-0.3, 0.9, size=(count, 2))
        share[rng.random(count) < 0.3, 0] = 0.0  # on an edge
        share = np.concatenate([1 - share.sum(axis=1, keepdims=True), share], axis=1)
        on = np.einsum("nj,njx->nx", share, points[:, :3])
        free = (rng.random(count) < 0.5) & (k > 3)
        points[:, k] = np.where(free[:, None], points[:, k], on)
    return points


def nudged(rng, count, size):
    """As ``on_plane``, moved by some units in the last place."""
    points = on_plane(rng, count, size)
    return (points.view(np.int64) + rng.integers(-2, 3, size=points.shape)).view(np.float64)


def nearly_whole(rng, count, size):
    """As ``grid`` (without zero), some coordinates moved by one unit in the last place."""
    points = grid(rng, count, size) + 3.0
    steps = rng.integers(-1, 2, size=points.shape) * (rng.random(points.shape) < 0.2)
    return (points.view(np.int64) + steps).view(np.float64)


def far_away(rng, count, size):
    return on_plane(rng, count, size) + 1e6


def small(rng, count, size):
    return on_plane(rng, count, size) * 1e-9


def huge(rng, count, size):
    """Differences and products overflow."""
    return grid(rng, count, size) * 0.8e308


def subnormal(rng, count, size):
    return grid(rng, count, size) * SMALLEST


def products_underflow(rng, count, size):
    """Products of two or of three differences are subnormal or vanish."""
    scale = rng.choice(np.r_[-362:-335, -540:-508], size=(count, 1, 1))
    return np.ldexp(on_plane(rng, count, size), scale)


def products_overflow(rng, count, size):
    """Products of two or of three differences are near the largest number, or beyond."""
    scale = rng.choice(np.r_[335:345, 505:515], size=(count, 1, 1))
    return np.ldexp(on_plane(rng, count, size), scale)


def mixed_scales(rng, count, size):
    """Exponents all over the range of float64, one for each coordinate."""
    exponent = rng.integers(-1070, 1020, size=(count, size, 3))
    return np.ldexp(rng.integers(-3, 4, size=(count, size, 3)).astype(float), exponent)


def two_scales(rng, count, size):
    """Sums of a large and a small whole number: nearly flat, and no rounding can tell."""
    return grid(rng, count, size) + np.ldexp(grid(rng, count, size), -50)


FAMILIES = [
    random,
    grid,
    flat,
    on_a_line,
    on_plane,
    nudged,
    nearly_whole,
    far_away,
    small,
    huge,
    subnormal,
    products_underflow,
    products_overflow,
    mixed_scales,
    two_scales,
]


def name(family):
    """The name of a family, for the names of tests."""
    return family.__name__
