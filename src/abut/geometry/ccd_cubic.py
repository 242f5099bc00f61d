"""First contact at a zero of the coplanarity cubic (Provot 1997)."""

import warp as wp

from abut.geometry.approach import Approach
from abut.geometry.coplanarity import Cubic, cubic_at
from abut.geometry.separation import NEVER, nearest_at, polygon_size

NEAR_ENOUGH = wp.constant(wp.float64(1e-9))  # of the size of the features
BISECTIONS = wp.constant(48)


@wp.func
def extrema_of(f: Cubic):
    """The two extrema of f in (0, 1), in order; 1 where there is none."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    a = f.k[1] - f.k[0]
    b = f.k[2] - f.k[1]
    c = f.k[3] - f.k[2]
    # slope / 3 = a (1-t)^2 + 2 b t (1-t) + c t^2 = qa t^2 + 2 qb t + a
    qa = a - b - b + c
    qb = b - a
    root = qb * qb - qa * a
    first = one
    second = one
    if root > zero:
        s = -(qb + wp.where(qb < zero, -wp.sqrt(root), wp.sqrt(root)))
        if wp.abs(s) > zero:
            t = a / s
            if t > zero and t < one:
                first = t
        if wp.abs(qa) > zero:
            t = s / qa
            if t > zero and t < one:
                second = t
    return wp.vec2d(wp.min(first, second), wp.max(first, second))


@wp.func
def zero_between(f: Cubic, low: wp.float64, high: wp.float64):
    """A zero of f between two times with different signs, by bisection."""
    left = wp.float64(low)
    right = wp.float64(high)
    falls = cubic_at(f, left) > wp.float64(0.0)
    for _ in range(BISECTIONS):
        middle = wp.float64(0.5) * (left + right)
        if (cubic_at(f, middle) > wp.float64(0.0)) == falls:
            left = middle
        else:
            right = middle
    return right


@wp.func
def first_contact_cubic(f: Cubic, approach: Approach, min_distance: wp.float64):
    """First zero of f at which the features are near each other; NEVER if there is none.

    Guarantee:
        Approximate. Zeros without a change of sign, motion in one plane and contacts at the
        border of features may be missed.
    """
    extrema = extrema_of(f)
    near = wp.max(min_distance, NEAR_ENOUGH * polygon_size(approach))
    found = wp.float64(NEVER)
    if wp.length(nearest_at(approach, wp.float64(0.0))) <= near:
        found = wp.float64(0.0)
    low = wp.float64(0.0)
    for piece in range(3):
        high = wp.float64(1.0)
        if piece < 2:
            high = extrema[piece]
        if found > wp.float64(1.0) and low < high:
            at_low = cubic_at(f, low)
            at_high = cubic_at(f, high)
            if (at_low > wp.float64(0.0)) != (at_high > wp.float64(0.0)):
                t = zero_between(f, low, high)
                if wp.length(nearest_at(approach, t)) <= near:
                    found = t
        low = high
    return found
