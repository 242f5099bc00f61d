"""Does a ray along the x axis cross a triangle? Exact, each crossing of a closed surface once.

Rays through edges and corners are settled by moving the ray symbolically, by e in z and e squared
in y for an infinitesimal e (Edelsbrunner and Mücke 1990), so that no crossing is lost or doubled.
"""

import warp as wp

from abut.geometry.predicates import orient2d, orient3d


@wp.func
def side_of_moved(u: wp.vec3d, v: wp.vec3d, p: wp.vec3d):
    """Turn u, v, p seen along x, p moved symbolically; 0 only when u and v coincide there."""
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
    """1 or -1 (the way the normal points along x) when the line through p crosses ``t``, else 0.

    Guarantee:
        Exact.
    """
    way = side_of_moved(t[0], t[1], p)
    if way == 0 or side_of_moved(t[1], t[2], p) != way or side_of_moved(t[2], t[0], p) != way:
        return 0
    return way


@wp.func
def cross_ray_tri(p: wp.vec3d, t: wp.mat33d):
    """1 or -1 (the way the normal points along x) when the ray from p to +x crosses ``t``, else 0.

    Guarantee:
        Exact for p not on the triangle.
    """
    way = cross_line_tri(p, t)
    if way != 0:
        if orient3d(t[0], t[1], t[2], p) != -way:
            way = 0
    return way
