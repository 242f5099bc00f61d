"""Advance in time along directions that keep two approaching features apart."""

import warp as wp

from abut.geometry.approach import Approach
from abut.geometry.separation import (
    NEVER,
    apart_across_sides,
    apart_until,
    nearest_at,
    polygon_size,
)

LEAST_STEP = wp.constant(wp.float64(2.0**-50))
AT_CONTACT = wp.constant(wp.float64(2.0**-36))  # of the polygon's size: near contact
RESOLVED = wp.constant(wp.float64(2.0**-44))  # of the polygon's size: the resolution of float64
MOST_STEPS = wp.constant(96)
MORE_STEPS = wp.constant(384)  # with a gap to keep, where the cubic helps little


@wp.struct
class Passage:
    """Time until which features provably stay apart; NEVER: to the end of the interval."""

    time: wp.float64
    converged: wp.bool


@wp.struct
class ApproachState:
    """A time, the vector from the origin to the polygon at that time, and its length."""

    time: wp.float64
    near: wp.vec3d
    gap: wp.float64


@wp.func
def state_at(approach: Approach, time: wp.float64):
    """Nearest point and gap of the polygon at a time."""
    out = ApproachState()
    out.time = time
    out.near = nearest_at(approach, time)
    out.gap = wp.length(out.near)
    return out


@wp.func
def is_converged(
    approach: Approach,
    end: ApproachState,
    last: wp.float64,
    size: wp.float64,
    min_distance: wp.float64,
    tolerance: wp.float64,
):
    """True when a search that ended before ``last`` is within the tolerance of a contact."""
    beyond = end.gap - min_distance
    converged = last - end.time <= tolerance or beyond <= RESOLVED * size
    if not converged and beyond <= AT_CONTACT * size:  # is it approaching fast enough?
        earlier = wp.max(end.time - tolerance, wp.float64(0.0))
        converged = beyond <= wp.length(nearest_at(approach, earlier)) - end.gap
    return converged


@wp.func
def pass_by(
    approach: Approach,
    first: wp.float64,
    last: wp.float64,
    min_distance: wp.float64,
    tolerance: wp.float64,
    limit: wp.float64,
):
    """Step through [first, last] while some direction keeps the features apart.

    Each step tries the direction between the nearest points now, and the one predicted shortly
    before contact, which holds until then if all corners approach. The search ends beyond
    ``limit`` as if at ``last``.
    """
    out = Passage()
    out.time = NEVER
    out.converged = True
    middle = nearest_at(approach, wp.float64(0.5) * (first + last))
    until = apart_until(approach, middle, first, min_distance)
    if until >= last:
        return out
    here = state_at(approach, wp.max(first, until))
    size = polygon_size(approach) + min_distance
    most = wp.where(min_distance > wp.float64(0.0), MORE_STEPS, MOST_STEPS)
    step = wp.int32(0)
    share = wp.float64(0.9)  # of the predicted time to contact
    searching = wp.bool(True)
    within_reach = wp.bool(False)
    while searching:
        until = apart_until(approach, here.near, here.time, min_distance)
        least = here.time + LEAST_STEP * here.time
        stuck = not (until > least) and here.gap - min_distance > RESOLVED * size
        if stuck or step % 4 == 2:  # or slow, as with motion in one plane
            ahead = wp.where(stuck, wp.float64(0.0), wp.float64(1.0))
            across = apart_across_sides(approach, here.time, min_distance, ahead)
            until = wp.max(until, across)
        if until >= last or here.time > limit:
            return out
        searching = until > least and step < most
        step += 1
        if searching:
            there = state_at(approach, until)
            fall = (here.gap - there.gap) / (there.time - here.time)
            here = there
            if fall > wp.float64(0.0):
                left = (here.gap - min_distance) / fall
                predicted = wp.min(here.time + share * left, last)
                share = wp.float64(0.25) * share
                if predicted > here.time:
                    better = nearest_at(approach, predicted)
                    until = apart_until(approach, better, here.time, min_distance)
                    if until >= last:
                        return out
                    if until > here.time:
                        share = wp.min(wp.float64(8.0) * share, wp.float64(0.9))
                        here = state_at(approach, until)
                soon = wp.min(here.time + tolerance, last)
                if left < tolerance and wp.length(nearest_at(approach, soon)) < min_distance:
                    within_reach = True
                    searching = False
    out.time = here.time
    out.converged = within_reach
    if not within_reach:
        out.converged = is_converged(approach, here, last, size, min_distance, tolerance)
    return out
