"""Edges of a face as a view shows it, and on which side of them pixels lie."""

import warp as wp

SIDE_ERROR = wp.constant(wp.float32(2.0**-21))  # of products of float32 differences


@wp.struct
class Edge:
    """From a corner to the next, with the corner across it."""

    u: wp.float32
    v: wp.float32
    to_u: wp.float32
    to_v: wp.float32
    across_u: wp.float32
    across_v: wp.float32


@wp.func
def picked(values: wp.vec3f, i: wp.int32):
    """The i-th of three, without memory."""
    return wp.where(i == 0, values[0], wp.where(i == 1, values[1], values[2]))


@wp.func
def edge_of(u: wp.vec3f, v: wp.vec3f, i: wp.int32):
    """The edge that starts at the i-th corner."""
    j = wp.where(i == 2, 0, i + 1)
    k = wp.where(i == 0, 2, i - 1)
    out = Edge()
    out.u = picked(u, i)
    out.v = picked(v, i)
    out.to_u = picked(u, j)
    out.to_v = picked(v, j)
    out.across_u = picked(u, k)
    out.across_v = picked(v, k)
    return out


@wp.func
def edge_passes(e: Edge, centre: wp.vec2f, reach: wp.vec2f):
    """False when a rectangle lies beside the strip between an edge and the corner across it."""
    du = e.to_u - e.u
    dv = e.to_v - e.v
    at = (centre[0] - e.u) * dv - (centre[1] - e.v) * du
    corner = (e.across_u - e.u) * dv - (e.across_v - e.v) * du
    around = reach[0] * wp.abs(dv) + reach[1] * wp.abs(du)
    zero = wp.float32(0.0)
    return at + around >= wp.min(zero, corner) and at - around <= wp.max(zero, corner)


@wp.func
def fine_side(
    iu: wp.float32, iv: wp.float32, ju: wp.float32, jv: wp.float32, u: wp.float32, v: wp.float32
):
    """Twice the area spanned by an edge and a point, in float64."""
    du = wp.float64(ju) - wp.float64(iu)
    dv = wp.float64(jv) - wp.float64(iv)
    return du * (wp.float64(v) - wp.float64(iv)) - dv * (wp.float64(u) - wp.float64(iu))


@wp.func
def fine_sign(x: wp.float64):
    """-1, 0 or 1; ``wp.sign`` of nothing is 1."""
    return wp.float32(wp.where(x == wp.float64(0.0), wp.float64(0.0), wp.sign(x)))


@wp.func
def sample_side(e: Edge, turn: wp.float32, u: wp.float32, v: wp.float32):
    """On which side of an edge a point is: positive inside; where float32 is unsure, by float64."""
    du = e.to_u - e.u
    dv = e.to_v - e.v
    first = du * (v - e.v)
    second = dv * (u - e.u)
    side = first - second
    if wp.abs(side) <= SIDE_ERROR * (wp.abs(first) + wp.abs(second)):
        side = fine_sign(fine_side(e.u, e.v, e.to_u, e.to_v, u, v))
    return side * turn


@wp.func
def owns_edge(e: Edge, turned: wp.bool):
    """Points on an edge belong to the one of its two faces that it bounds on the left or below."""
    du = e.to_u - e.u
    dv = e.to_v - e.v
    if turned:
        du = -du
        dv = -dv
    zero = wp.float32(0.0)
    return dv < zero or (dv == zero and du > zero)


@wp.func
def holds(e: Edge, turn: wp.float32, centre: wp.vec2f):
    """Is a point inside an edge, or on it where it belongs to this face?"""
    side = sample_side(e, turn, centre[0], centre[1])
    zero = wp.float32(0.0)
    return side > zero or (side == zero and owns_edge(e, turn < zero))
