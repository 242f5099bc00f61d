"""Faces that a plane of either keeps apart, in float32: the cheapest proof, and it serves for most.

Corners are float32, relative to some origin; where that is not exact, each coordinate is within
``slack``. If all corners of one face that are not corners of the other too lie strictly on one side
of the other's plane, the faces meet in what they share and nowhere else.

Error: let w = 2**-24, U, V, X the largest components of two sides of a face and of the difference
between a corner and it. Differences are within w U of those of the given numbers. Their determinant
sums products up to 6 U V X, of three rounded factors and with five roundings each: it is within
48.1 w U V X, and ``PLANE_MARGIN`` has 64. Given numbers that are each off by a slack s move it by
at most 12 s (V X + U X + U V), with 2 s added to U, V and X. Lengths outside LEAST and MOST are
left alone: within, underflow adds less than 2**-146 where the margin leaves 2**-141.
"""

import warp as wp

from abut.geometry.common_corners import STRANGERS, WELDED

PLANE_MARGIN = wp.constant(wp.float32(2.0**-18))
SLACK_FACTOR = wp.constant(wp.float32(12.01))
INEXACT = wp.constant(wp.float32(2.0**-24 * (1.0 + 2.0**-20)))
LEAST_SLACK = wp.constant(wp.float32(2.0**-80))  # far below LEAST, and not 0
LEAST = wp.constant(wp.float32(2.0**-40))
MOST = wp.constant(wp.float32(2.0**40))


@wp.struct
class Corners:
    """The corners of a face, one a row, and their vertices."""

    points: wp.mat33f
    index: wp.vec3i
    slack: wp.float32  # 0: corners are exactly where they are said to be


@wp.func
def is_shared(relation: wp.int32, p: wp.vec3f, index: wp.int32, exact: wp.bool, other: Corners):
    """Is a corner known to be one of the other face's too?"""
    if relation == STRANGERS:
        return False
    named = index == other.index[0] or index == other.index[1] or index == other.index[2]
    if relation == WELDED and exact:
        t = other.points
        named = named or p == t[0] or p == t[1] or p == t[2]
    return named


@wp.func
def side_of_plane(
    normal: wp.vec3f, u: wp.float32, v: wp.float32, away: wp.vec3f, slack: wp.float32
):
    """1 or -1 for a point certainly above or below a plane, else 0; u, v: lengths of two sides."""
    x = wp.max(wp.abs(away)) + wp.float32(2.0) * slack
    shift = SLACK_FACTOR * slack * (v * x + u * x + u * v)
    need = PLANE_MARGIN * u * v * x + shift
    height = wp.dot(normal, away)
    known = x >= LEAST and x <= MOST
    return wp.int32(known and height > need) - wp.int32(known and -height > need)


@wp.func
def beyond_plane(relation: wp.int32, a: Corners, b: Corners):
    """True only when a meets the plane of b in corners of b, or not at all."""
    s = wp.max(a.slack, b.slack)
    first = b.points[0]
    side_u = b.points[1] - first
    side_v = b.points[2] - first
    normal = wp.cross(side_u, side_v)
    u = wp.max(wp.abs(side_u)) + wp.float32(2.0) * s
    v = wp.max(wp.abs(side_v)) + wp.float32(2.0) * s
    if not (wp.min(u, v) >= LEAST and wp.max(u, v) <= MOST):
        return False
    exact = s == wp.float32(0.0)
    above = wp.int32(0)
    below = wp.int32(0)
    loose = wp.int32(0)
    for i in range(3):
        if not is_shared(relation, a.points[i], a.index[i], exact, b):
            side = side_of_plane(normal, u, v, a.points[i] - first, s)
            loose += 1
            above += wp.int32(side == 1)
            below += wp.int32(side == -1)
    return loose > 0 and (above == loose or below == loose)


@wp.func
def planes_apart(relation: wp.int32, a: Corners, b: Corners):
    """Does the plane of either face keep it from the other, but for what they share?

    Guarantee:
        True only when the faces do not meet beyond common corners.
    """
    return beyond_plane(relation, a, b) or beyond_plane(relation, b, a)
