"""How much of the sphere around a point a triangle covers (Van Oosterom and Strackee 1983)."""

import warp as wp

from abut.geometry.predicates import orient3d

NEARLY_FLAT = wp.constant(wp.float64(2.0**-40))  # so far the sign is not in doubt
TWO_PI = wp.constant(wp.float64(6.283185307179586))


@wp.func
def side_of_plane(p: wp.vec3d, t: wp.mat33d):
    """Side of a triangle's plane, 1 where the normal points.

    A point on the plane counts as one moved along x, then z, then y: ``cross_ray_tri`` sees it
    there too, so that crossings and solid angles can be added up.
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
    """Share of the sphere around p that a triangle covers, positive where its back is seen.

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
        volume = wp.where(side_of_plane(p, t) > 0, -wp.abs(volume), wp.abs(volume))
    spread = product + wp.dot(a, b) * length_c + wp.dot(b, c) * length_a + wp.dot(c, a) * length_b
    return wp.atan2(volume, spread) / TWO_PI
