"""Separating directions of two approaching features, and the times until which they hold.

Features stay more than d apart for as long as there is a direction along which every corner of the
polygon of their approach lies beyond d. Corners are linear in time, so the time until which a given
direction separates takes one division a corner. Any direction is valid; a better one only makes
the search faster and tighter.

Error: with w = 2**-53, a rounded inner product of a direction and a corner, interpolated over the
step, is within 9 w of the sum of its absolute products; ``DIRECTION_MARGIN`` is 32 w. It
leaves room for the rounding of times.
"""

import warp as wp

from abut.geometry.approach import (
    Approach,
    is_usual,
    largest_in,
    nearest_on_polygon,
    polygon_at,
)
from abut.geometry.coplanarity import ROUND_UP, mix

DIRECTION_MARGIN = wp.constant(wp.float64(2.0**-48))
LEAST_LENGTH = wp.constant(wp.float64(2.0**-1050))
SHORTEN = wp.constant(wp.float64(1.0 - 2.0**-40))
NEVER = wp.constant(wp.float64(2.0))  # a time after the step


@wp.func
def polygon_size(approach: Approach):
    """Largest absolute coordinate of the polygon in the step."""
    return wp.max(largest_in(approach.start), largest_in(approach.end))


@wp.func
def apart_until(approach: Approach, direction: wp.vec3d, t: wp.float64, min_distance: wp.float64):
    """Time until which, from t on, the direction separates the features; -1 if not even at t.

    NEVER where it separates to the end of the step.
    """
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    until = NEVER
    w = direction / wp.max(wp.abs(direction))
    gap = min_distance * wp.length(w) * ROUND_UP + LEAST_LENGTH
    for k in range(4):
        p = approach.start[k]
        q = approach.end[k]
        spread = wp.max(wp.dot(wp.abs(w), wp.abs(p)), wp.dot(wp.abs(w), wp.abs(q)))
        need = DIRECTION_MARGIN * spread + gap
        last = wp.dot(w, q)
        here = mix(wp.dot(w, p), last, t) - need
        there = last - need
        if not (here > zero):
            until = -one
        elif not (there > zero):
            until = wp.min(until, t + SHORTEN * (one - t) * (here / (here - there)))
    return until


@wp.func
def nearest_at(approach: Approach, t: wp.float64):
    """The vector from the origin to the polygon at a time, rounded."""
    return nearest_on_polygon(polygon_at(approach, t))


@wp.func
def apart_along(
    approach: Approach, w: wp.vec3d, min_distance: wp.float64, until: wp.float64, size: wp.float64
):
    """True only when a direction separates the features until a time; ``size`` is polygon_size."""
    spread = wp.float64(3.0) * wp.max(wp.abs(w)) * size
    need = DIRECTION_MARGIN * spread + min_distance * wp.length(w) * ROUND_UP + LEAST_LENGTH
    apart = wp.bool(True)
    for k in range(4):
        first = wp.dot(w, approach.start[k])
        last = mix(first, wp.dot(w, approach.end[k]), until)
        if not (first > need and last > need):
            apart = False
    return apart


@wp.func
def apart_along_axes(approach: Approach, min_distance: wp.float64):
    """True only when a coordinate axis separates the features during the whole step.

    Signs of differences are exact, so near misses that boxes separate are separated here too.
    """
    low = wp.min(approach.start[0], approach.end[0])
    high = wp.max(approach.start[0], approach.end[0])
    for k in range(1, 4):
        low = wp.min(low, wp.min(approach.start[k], approach.end[k]))
        high = wp.max(high, wp.max(approach.start[k], approach.end[k]))
    gap = min_distance * ROUND_UP
    return wp.max(low) > gap or wp.min(high) < -gap


@wp.func
def apart_throughout(approach: Approach, min_distance: wp.float64, until: wp.float64):
    """True only when one of two directions separates the features until a time.

    False for features of an unusual size, whose products may vanish. The direction to the centre of
    the polygon is the cheapest proof and separates most pairs. Its component across the motion of
    the centre separates features that pass each other.
    """
    half = wp.float64(0.5) * until
    p = approach.start
    q = approach.end
    start = p[0] + p[1] + p[2] + p[3]
    end = q[0] + q[1] + q[2] + q[3]
    middle = (wp.float64(1.0) - half) * start + half * end
    size = polygon_size(approach)
    if not is_usual(size):
        return False
    if apart_along(approach, middle, min_distance, until, size):
        return True
    way = end - start
    across = middle - (wp.dot(middle, way) / wp.dot(way, way)) * way
    return apart_along(approach, across, min_distance, until, size)


@wp.func
def next_zero(a: wp.float64, b: wp.float64, c: wp.float64, t: wp.float64):
    """First zero after t of a quadratic in Bernstein form; 1 if there is none before."""
    square = a - b - b + c
    half = b - a
    found = wp.float64(1.0)
    inside = half * half - square * a
    if inside >= wp.float64(0.0):
        s = -(half + wp.where(half < wp.float64(0.0), -wp.sqrt(inside), wp.sqrt(inside)))
        first = a / s
        second = s / square
        if first > t and first < found:
            found = first
        if second > t and second < found:
            found = second
    return found


@wp.func
def apart_across_sides(
    approach: Approach, t: wp.float64, min_distance: wp.float64, ahead: wp.float64
):
    """Latest ``apart_until`` across the polygon's plane, and in the plane across its sides.

    A polygon that moves in its own plane reaches the origin with a side. The direction across that
    side, as it lies when it passes through the origin, separates until then, unless the side
    rotates towards the origin. So sides are taken as they lie a share ``ahead`` of the way there.
    """
    x = polygon_at(approach, t)
    normal = wp.cross(x[1] - x[0], x[2] - x[1])
    start = approach.start
    end = approach.end
    until = wp.float64(-1.0)
    k = wp.int32(0)
    while k < 5:  # rows are rotated, not indexed by k, which is slow on CUDA
        mixed = wp.dot(wp.cross(start[0], end[1]) + wp.cross(end[0], start[1]), normal)
        then = next_zero(
            wp.dot(wp.cross(start[0], start[1]), normal),
            wp.float64(0.5) * mixed,
            wp.dot(wp.cross(end[0], end[1]), normal),
            t,
        )
        then = t + ahead * (then - t)
        side = (wp.float64(1.0) - then) * (start[1] - start[0]) + then * (end[1] - end[0])
        across = wp.cross(normal, side)
        if k == 4:
            across = normal
        if wp.dot(across, x[0]) < wp.float64(0.0):
            across = -across
        until = wp.max(until, apart_until(approach, across, t, min_distance))
        start = wp.matrix_from_rows(start[1], start[2], start[3], start[0])
        end = wp.matrix_from_rows(end[1], end[2], end[3], end[0])
        x = wp.matrix_from_rows(x[1], x[2], x[3], x[0])
        k += 1
    return until
