"""Faces of a view that rounding is hard on, made on purpose: corners (n, 3, 3), float32."""

from fractions import Fraction

import numpy as np

FINE = 2.0**-24  # of a pixel: what numbers from 1/2 to 1 are multiples of, in float32


def convergent(ratio, most):
    """The best fraction (p, q) near a ratio below 1 with q at most ``most``."""
    p, q, last_p, last_q, rest = 0, 1, 1, 0, ratio
    while rest:
        rest = 1 / rest
        whole = rest.numerator // rest.denominator
        p, last_p = whole * p + last_p, p
        q, last_q = whole * q + last_q, q
        rest -= whole
        if q > most:
            return last_p, last_q
    return p, q


def slope_across(face):
    """Of the depths of a face: truly, and as float64 has it."""
    ends = (face[1:].astype(float) - face[0].astype(float)).tolist()
    slopes = []
    for (u1, v1, z1), (u2, v2, z2) in (ends, [[Fraction(x) for x in end] for end in ends]):
        slopes.append((z1 * v2 - z2 * v1) / (u1 * v2 - u2 * v1))
    return float(slopes[1]), slopes[0]


def needle(rng, side):
    """A millionth of a pixel wide, all along the left border of a view of so many pixels.

    Its area is little more than 2**-28 of the products that it is the difference of, the least that
    planes are made of. Depths are such that the slope across is a difference like that, too.
    """
    border = side * 2.0**-12
    u0 = np.float32(border * (1 + rng.integers(1, 2**6) * 2.0**-12))
    wide, less = (int(x) for x in np.sort(rng.choice(np.arange(12, 64), 2, replace=False))[::-1])
    unit = 4 * np.spacing(u0)
    v0, v1 = np.float32(border * (1 + rng.random())), np.float32(side * rng.uniform(0.5, 0.99))
    v2 = np.float32(less * (float(v1) - float(v0)) / wide + float(v0))
    up1, up2 = (Fraction(float(v)) - Fraction(float(v0)) for v in (v1, v2))
    p, q = convergent(up2 / up1, 2**23)
    z0 = np.float32(rng.integers(2**16, 2**22) * 2.0**-24)
    z1, z2 = (z0 + np.float32(x * (2**23 // q) * 2.0**-24) for x in (q, p))
    area = abs(wide * up2 - less * up1)
    usable = area * 2**28 > wide * up2 + less * up1 and q > 2**17
    face = [[u0, v0, z0], [u0 + np.float32(wide * unit), v1, z1], [u0 + less * unit, v2, z2]]
    return np.array(face, np.float32) if usable else None


def needles(rng, count, side):
    """Needles whose slope across is mostly what its products were rounded by in float64."""
    out = []
    while len(out) < count:
        face = needle(rng, side)
        if face is not None:
            truly, computed = slope_across(face)
            if abs(truly) < 4 * abs(computed - truly) > 2.0**-14:
                out.append(face)
    return np.array(out)


def corner_of_tile(rng, side):
    """The middle of a pixel in the corner of an 8 x 8 tile."""
    return 8 * rng.integers(0, side // 8, 2) + 7 * rng.integers(0, 2, 2) + 0.5


def edge_past(rng, middle):
    """An edge past a point, all but through it: the least that its grid of 2**-17 allows."""
    way = rng.integers(1, 2**19, 2) | 1
    if np.gcd(*way) > 1:
        return edge_past(rng, middle)
    (a, b), miss = way.tolist(), int(rng.integers(-3, 4))
    v = miss * pow(a, -1, b) % b
    on = np.array([(a * v - miss) // b, v]) - rng.integers(1, 9) * way
    turn = rng.choice([-1, 1], 2) * 2.0**-17
    return middle + turn * way, middle + turn * on


def edge_from_afar(rng, middle):
    """An edge through a point but for rounding, from where float32 has more bits than there."""
    start = rng.uniform(0.5, 1, 2).astype(np.float32)
    return start, middle + rng.uniform(0.1, 4) * (middle - start)


def through_centres(rng, count, side):
    """Whose first edge goes through the middle of a pixel, or nearly so; multiples of FINE."""
    out = []
    while len(out) < count:
        edge = (edge_past, edge_from_afar)[len(out) % 2]
        face = np.stack([*edge(rng, corner_of_tile(rng, side)), rng.uniform(1, side - 1, 2)])
        if (face >= 0.5).all() and (face < side).all():
            out.append(face)
    depths = rng.uniform(0.01, 0.99, (count, 3, 1))
    return np.concatenate([np.array(out), depths], axis=2).astype(np.float32)
