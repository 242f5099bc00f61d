"""Conservative first contact of two approaching features.

The search advances over an interval of time only with a proof that it is free of contact: the
coplanarity cubic does not vanish there (``skip_to_zero``), or a direction keeps the features apart
(``pass_by``). The cubic brings the search to within rounding of its zeros in a few steps.
Directions decide in that short interval whether the features meet, and take over where the cubic
decides nothing: motion in one plane, degenerate features, a gap to keep.
"""

import warp as wp

from abut.geometry.approach import Approach, approach_of, mat43d, usual_scale
from abut.geometry.coplanarity import (
    Cubic,
    coplanarity_cubic,
    cubic_at,
    may_vanish,
    steepest_towards_zero,
)
from abut.geometry.passage import Passage, pass_by
from abut.geometry.separation import (
    NEVER,
    SHORTEN,
    apart_along_axes,
    apart_throughout,
    nearest_at,
)

NARROW = wp.constant(wp.float64(2.0**-47))  # interval around a zero
MOST_ZERO_STEPS = wp.constant(48)
MOST_INTERVALS = wp.constant(24)
ALIVE = wp.constant(wp.float64(2.0**10))  # margins that f must exceed to tell a time
WIDER = wp.constant(wp.float64(8.0))


@wp.func
def skip_to_zero(f: Cubic, start: wp.float64, limit: wp.float64):
    """Time until which f has no zero from ``start`` on; NEVER if it has none to the end.

    Newton's method with the steepest slope over an interval ahead never oversteps a zero. The
    interval shrinks with the steps, so that the slope converges to that at the zero.
    """
    one = wp.float64(1.0)
    t = wp.float64(start)
    side = wp.sign(cubic_at(f, t))
    until = wp.float64(one)
    searching = wp.bool(True)
    step = wp.int32(0)
    while searching:
        value = side * cubic_at(f, t) - f.margin
        if not (value > wp.float64(0.0)):
            return t
        fall = steepest_towards_zero(f, side, t, until)
        if fall * (until - t) < value:
            if until >= one or until > limit:
                return NEVER
            window = until - t
            t = until
            until = wp.min(one, t + wp.float64(4.0) * window)
        else:
            ahead = SHORTEN * (value / fall)
            t = t + ahead
            if t > limit:
                return NEVER
            until = wp.min(one, t + ahead)
            searching = ahead > NARROW
        step += 1
        if step == MOST_ZERO_STEPS:
            searching = False
    return t


@wp.func
def width_of_zero(f: Cubic, t: wp.float64):
    """Approximate duration for which f stays below its margin near a zero."""
    slope = wp.abs(steepest_towards_zero(f, wp.float64(1.0), t, t))
    width = wp.float64(1.0)
    if slope > f.margin:
        width = wp.max(NARROW, wp.float64(4.0) * (f.margin / slope))
    return width


@wp.func
def lingers(f: Cubic, approach: Approach, t: wp.float64, tolerance: wp.float64):
    """True when f stays near 0 for longer than the tolerance, so that its zero has no exact time.

    Such as a zero of the third order. False for an f that consists of rounding errors only.
    """
    soon = t + tolerance
    if soon >= wp.float64(1.0) or not (wp.max(wp.abs(f.k)) > ALIVE * f.margin):
        return False
    here = cubic_at(f, t)
    there = cubic_at(f, soon)
    slow = here * there > wp.float64(0.0) and wp.abs(there) > wp.float64(0.5) * wp.abs(here)
    still = wp.abs(there) <= f.margin or (slow and wp.abs(here) > f.margin)
    return still and wp.length(nearest_at(approach, t)) > wp.float64(0.0)


@wp.func
def first_contact(
    f: Cubic,
    approach: Approach,
    min_distance: wp.float64,
    tolerance: wp.float64,
    limit: wp.float64,
):
    """First time at which two features are within ``min_distance``; NEVER if none until ``limit``.

    Guarantee:
        Conservative. Not later than the first contact. The search ends after a bounded number of
        steps, if need be with an earlier time that is not ``converged``.
    """
    one = wp.float64(1.0)
    out = Passage()
    if apart_along_axes(approach, min_distance):
        out.time = NEVER
        return out
    t = wp.float64(0.0)
    width = wp.float64(0.0)
    for _ in range(MOST_INTERVALS):
        zero = skip_to_zero(f, t, limit)
        if zero > limit or zero > one:
            out.time = NEVER
            return out
        if zero > t or width == wp.float64(0.0):
            width = width_of_zero(f, zero)
        last = wp.min(zero + width, one)
        out = pass_by(approach, zero, last, min_distance, tolerance, limit)
        if out.time <= one or last >= one:
            if min_distance == wp.float64(0.0) and out.time <= one:
                out.converged = out.converged and not lingers(f, approach, out.time, tolerance)
            return out
        t = last
        width = WIDER * width
    out.time = t
    out.converged = False
    return out


@wp.func
def may_meet(p: mat43d, q: mat43d, edges: wp.bool, min_distance: wp.float64, until: wp.float64):
    """False only when a vertex and a face, or two edges, provably do not meet until a time."""
    if apart_throughout(approach_of(p, q, edges), min_distance, until):
        return False
    return may_vanish(coplanarity_cubic(p, q, edges, min_distance), until)


@wp.func
def ccd_features(
    p: mat43d,
    q: mat43d,
    edges: wp.bool,
    min_distance: wp.float64,
    tolerance: wp.float64,
    limit: wp.float64,
):
    """First time in [0, 1] at which two features are within ``min_distance``; NEVER if none.

    Args:
        p, q: A vertex and the corners of a face, or the endpoints of two edges, one a row, at the
            start and at the end of the step.
        edges: The features are edges.
        min_distance: Gap to keep.
        tolerance: How much earlier than the contact a converged time may be.
        limit: Contacts after this time need not be found.

    Guarantee:
        Conservative, see first_contact.
    """
    scale = usual_scale(p, q)
    start = scale * p
    end = scale * q
    gap = scale * min_distance
    f = coplanarity_cubic(start, end, edges, gap)
    return first_contact(f, approach_of(start, end, edges), gap, tolerance, limit)
