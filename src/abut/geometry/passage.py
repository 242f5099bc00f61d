"""A walk in time, from direction to direction that keeps two approaching features apart."""

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
AT_CONTACT = wp.constant(wp.float64(2.0**-36))  # of the polygon's size: near
RESOLVED = wp.constant(wp.float64(2.0**-44))  # likewise: what is nearer, float64 cannot tell
MOST_STEPS = wp.constant(96)
MORE_STEPS = wp.constant(384)  # with a gap to be kept, where the cubic is of little help


@wp.struct
class Passage:
    """How far in time features were seen to stay apart; NEVER: to the end of the interval."""

    time: wp.float64
    converged: wp.bool


@wp.struct
class Place:
    """A time of the walk, the way from the origin to the polygon then, and its length."""

    time: wp.float64
    near: wp.vec3d
    gap: wp.float64


@wp.func
def place_at(approach: Approach, time: wp.float64):
    """Where the walk is at a time."""
    out = Place()
    out.time = time
    out.near = nearest_at(approach, time)
    out.gap = wp.length(out.near)
    return out


@wp.func
def is_settled(
    approach: Approach,
    end: Place,
    last: wp.float64,
    size: wp.float64,
    min_distance: wp.float64,
    tolerance: wp.float64,
):
    """Whether a walk that ended before ``last`` is as near to contact as was asked for."""
    beyond = end.gap - min_distance
    settled = last - end.time <= tolerance or beyond <= RESOLVED * size
    if not settled and beyond <= AT_CONTACT * size:  # is it drawing near fast enough?
        earlier = wp.max(end.time - tolerance, wp.float64(0.0))
        settled = beyond <= wp.length(nearest_at(approach, earlier)) - end.gap
    return settled


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

    Each step tries the direction between the nearest points now, and the one foreseen a little
    before contact, which serves until then if all corners draw near. Beyond ``limit`` nobody
    asks: the walk ends as if at ``last``.
    """
    out = Passage()
    out.time = NEVER
    out.converged = True
    middle = nearest_at(approach, wp.float64(0.5) * (first + last))
    until = apart_until(approach, middle, first, min_distance)
    if until >= last:
        return out
    here = place_at(approach, wp.max(first, until))
    size = polygon_size(approach) + min_distance
    most = wp.where(min_distance > wp.float64(0.0), MORE_STEPS, MOST_STEPS)
    step = wp.int32(0)
    share = wp.float64(0.9)  # of the way to contact that is foreseen
    walking = wp.bool(True)
    within_reach = wp.bool(False)
    while walking:
        until = apart_until(approach, here.near, here.time, min_distance)
        least = here.time + LEAST_STEP * here.time
        stuck = not (until > least) and here.gap - min_distance > RESOLVED * size
        if stuck or step % 4 == 2:  # or slow: perhaps all is in one plane
            ahead = wp.where(stuck, wp.float64(0.0), wp.float64(1.0))
            across = apart_across_sides(approach, here.time, min_distance, ahead)
            until = wp.max(until, across)
        if until >= last or here.time > limit:
            return out
        walking = until > least and step < most
        step += 1
        if walking:
            there = place_at(approach, until)
            fall = (here.gap - there.gap) / (there.time - here.time)
            here = there
            if fall > wp.float64(0.0):
                left = (here.gap - min_distance) / fall
                foreseen = wp.min(here.time + share * left, last)
                share = wp.float64(0.25) * share
                if foreseen > here.time:
                    better = nearest_at(approach, foreseen)
                    until = apart_until(approach, better, here.time, min_distance)
                    if until >= last:
                        return out
                    if until > here.time:
                        share = wp.min(wp.float64(8.0) * share, wp.float64(0.9))
                        here = place_at(approach, until)
                soon = wp.min(here.time + tolerance, last)
                if left < tolerance and wp.length(nearest_at(approach, soon)) < min_distance:
                    within_reach = True
                    walking = False
    out.time = here.time
    out.converged = within_reach
    if not within_reach:
        out.converged = is_settled(approach, here, last, size, min_distance, tolerance)
    return out
