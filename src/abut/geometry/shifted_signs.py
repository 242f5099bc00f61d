"""Orientation signs of two triangles, the second shifted by an infinitesimal translation.

The shift (e, e**3, e**2), positive for an infinitesimal e, makes every sign that the intersection
of two solids needs non-zero (Edelsbrunner and Mücke 1990, with one translation for all points):

- a corner on the plane of a face moves off it by the dot product of shift and normal;
- two edges on a common plane move off it by the dot product of shift and the cross product of the
  edges. Parallel edges stay on one, but neither then crosses the plane of the other's face.

The sign of such a product is that of the first component of the vector, in the order x, z, y, that
is not zero. design/overlap.md derives what the shift means for measures.
"""

import warp as wp

from abut.geometry.accumulator import LIMB_COUNT, add_product, empty_span, sum_sign
from abut.geometry.predicates import (
    ABSOLUTE_BOUND,
    RELATIVE_BOUND,
    UNDECIDED,
    filtered_sign,
    orient2d,
    orient3d,
)


@wp.func
def axis_of_rank(rank: wp.int32):
    """Return the axis whose component of the shift is the largest, second, third: x, z, y."""
    return (3 - rank) % 3


@wp.func
def normal_sign(t: wp.mat33d):
    """Return the sign of the dot product of the shift and a triangle's normal; 0 only if flat."""
    sign = wp.int32(0)
    for rank in range(3):
        if sign == 0:
            sign = orient2d(t[0], t[1], t[2], axis_of_rank(rank))
    return sign


@wp.func
def shifted_side(t: wp.mat33d, p: wp.vec3d, way: wp.int32):
    """Return the side of a triangle's plane on which p is, shifted if ``way`` is 1, back if -1.

    Guarantee:
        Exact. Not 0 if the triangle has an area.
    """
    sign = orient3d(t[0], t[1], t[2], p)
    if sign == 0:
        sign = way * normal_sign(t)
    return sign


@wp.func
def cross_sign(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d, s: wp.vec3d, axis: wp.int32):
    """Return the sign of a component of cross(q - p, s - r).

    Guarantee:
        Exact for all finite float64 coordinates.
    """
    x = (axis + 1) % 3
    y = (axis + 2) % 3
    if (q[x] == p[x] or s[y] == r[y]) and (q[y] == p[y] or s[x] == r[x]):
        return 0
    left = (q[x] - p[x]) * (s[y] - r[y])
    right = (q[y] - p[y]) * (s[x] - r[x])
    bound = RELATIVE_BOUND * (wp.abs(left) + wp.abs(right)) + ABSOLUTE_BOUND
    sign = filtered_sign(left - right, bound)
    if sign != UNDECIDED:
        return sign
    limbs = wp.zeros(shape=(LIMB_COUNT,), dtype=wp.int64)
    span = empty_span()
    for term in range(8):
        u = wp.where(term < 4, x, y)
        v = wp.where(term < 4, y, x)
        first = wp.where(term % 2 == 0, q[u], -p[u])
        second = wp.where((term / 2) % 2 == 0, s[v], -r[v])
        way = wp.where(term < 4, wp.float64(1.0), wp.float64(-1.0))
        span = add_product(limbs, span, first, second, way)
    return sum_sign(limbs, span)


@wp.func
def shifted_edges(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d, s: wp.vec3d):
    """Return orient3d of an edge p q and a shifted edge r s; 0 only if they are parallel.

    Guarantee:
        Exact.
    """
    sign = orient3d(p, q, r, s)
    for rank in range(3):
        if sign == 0:
            sign = cross_sign(r, s, p, q, axis_of_rank(rank))
    return sign


@wp.func
def shifted_line_side(u: wp.vec3d, v: wp.vec3d, p: wp.vec3d, way: wp.int32):
    """Return the orientation of u, v and the shifted p, seen along x; 0 if u and v coincide."""
    sign = orient2d(u, v, p, 0)
    if sign == 0 and v[1] != u[1]:
        sign = wp.where(v[1] > u[1], way, -way)
    if sign == 0 and v[2] != u[2]:
        sign = wp.where(v[2] > u[2], -way, way)
    return sign


@wp.func
def cross_ray_tri_shifted(p: wp.vec3d, t: wp.mat33d, way: wp.int32):
    """Return the sign of the normal along x if the ray along +x from the shifted p crosses ``t``.

    0 if it does not. With ``way`` 1 the same as ``cross_ray_tri``.

    Guarantee:
        Exact, also for p on the triangle.
    """
    sign = shifted_line_side(t[0], t[1], p, way)
    if (
        sign == 0
        or shifted_line_side(t[1], t[2], p, way) != sign
        or shifted_line_side(t[2], t[0], p, way) != sign
    ):
        return 0
    return wp.where(shifted_side(t, p, way) == -sign, sign, 0)
