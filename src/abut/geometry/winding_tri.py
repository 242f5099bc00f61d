"""Ray crossings and solid angles of a triangle, for winding numbers.

A ray along x through an edge or corner is perturbed symbolically, by e in z and e squared in y for
an infinitesimal e (Edelsbrunner and Mücke 1990), so that each crossing of a closed surface counts
exactly once. Solid angles after Van Oosterom and Strackee 1983.
"""

import warp as wp

from abut.geometry.predicates import (
    UNDECIDED,
    orient2d,
    orient2d_filtered,
    orient3d,
    orient3d_filtered,
)

NEARLY_FLAT = wp.constant(wp.float64(2.0**-40))  # beyond, the rounded sign is right
TWO_PI = wp.constant(wp.float64(6.283185307179586))


@wp.func
def perturbed_orient2d(u: wp.vec3d, v: wp.vec3d, p: wp.vec3d):
    """Return the orientation of u, v, p seen along x, p perturbed; 0 only if u and v coincide."""
    sign = orient2d(u, v, p, 0)
    if sign != 0:
        return sign
    if v[1] != u[1]:
        return wp.where(v[1] > u[1], 1, -1)
    if v[2] != u[2]:
        return wp.where(v[2] > u[2], -1, 1)
    return 0


@wp.func
def cross_line_tri(p: wp.vec3d, t: wp.mat33d):
    """Return the sign of the normal along x if the line along x through p crosses ``t``, else 0.

    Guarantee:
        Exact.
    """
    sign = perturbed_orient2d(t[0], t[1], p)
    if (
        sign == 0
        or perturbed_orient2d(t[1], t[2], p) != sign
        or perturbed_orient2d(t[2], t[0], p) != sign
    ):
        return 0
    return sign


@wp.func
def cross_ray_tri(p: wp.vec3d, t: wp.mat33d):
    """Return the sign of the normal along x if the ray from p along +x crosses ``t``, else 0.

    Guarantee:
        Exact for p not on the triangle.
    """
    sign = cross_line_tri(p, t)
    if sign != 0:
        if orient3d(t[0], t[1], t[2], p) != -sign:
            sign = 0
    return sign


@wp.func
def cross_ray_tri_filtered(p: wp.vec3d, t: wp.mat33d):
    """Return ``cross_ray_tri`` where a filter decides it, else UNDECIDED."""
    low = wp.int32(1)
    high = wp.int32(-1)
    decided = wp.bool(True)
    for i in range(3):
        u = t[i]
        v = t[(i + 1) % 3]
        sign = orient2d_filtered(u[1], u[2], v[1], v[2], p[1], p[2])
        if sign == UNDECIDED:
            decided = False
        else:
            low = wp.min(low, sign)
            high = wp.max(high, sign)
    if low < high:  # on different sides of two edges
        return 0
    side = orient3d_filtered(t[0], t[1], t[2], p)
    if not decided or side == UNDECIDED:
        return UNDECIDED
    return wp.where(side == -low, low, 0)


@wp.func
def perturbed_side(p: wp.vec3d, t: wp.mat33d):
    """Return the side of a triangle's plane, 1 where the normal points.

    A point on the plane is perturbed along x, then z, then y, as in ``cross_ray_tri``, so that
    crossings and solid angles can be added up.
    """
    side = orient3d(t[0], t[1], t[2], p)
    if side == 0:
        n = wp.cross(t[1] - t[0], t[2] - t[0])
        along = wp.where(
            n[0] != wp.float64(0.0), n[0], wp.where(n[2] != wp.float64(0.0), n[2], n[1])
        )
        side = wp.int32(wp.sign(along))
    return side


@wp.func
def solid_angle(p: wp.vec3d, t: wp.mat33d):
    """Return the share of the sphere around p that a triangle covers, positive from its back.

    Summed over a closed surface with outward normals: 1 inside, 0 outside.
    """
    a = t[0] - p
    b = t[1] - p
    c = t[2] - p
    length_a = wp.length(a)
    length_b = wp.length(b)
    length_c = wp.length(c)
    volume = wp.dot(a, wp.cross(b, c))
    product = length_a * length_b * length_c
    if wp.abs(volume) <= NEARLY_FLAT * product:
        volume = wp.where(perturbed_side(p, t) > 0, -wp.abs(volume), wp.abs(volume))
    spread = product + wp.dot(a, b) * length_c + wp.dot(b, c) * length_a + wp.dot(c, a) * length_b
    return wp.atan2(volume, spread) / TWO_PI
