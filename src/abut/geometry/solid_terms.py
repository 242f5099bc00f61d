"""Terms of the volume, first moment and area of a solid, by parts of its boundary.

A solid bounded by parts of planes is a sum of tetrahedra: the origin, the foot of the origin on a
plane, and a directed edge of a part (Franklin 1987, Polygon properties calculated from the vertex
neighborhoods). design/overlap.md derives the sums.
"""

import warp as wp

from abut.geometry.clip_tri_tri import POLYGON_SIZE, clip_tri_tri, polygon_area_vector
from abut.geometry.shifted_signs import normal_sign

SolidTerms = wp.types.vector(length=5, dtype=wp.float64)  # 6 volume, 24 first moment, 2 area


@wp.func
def edge_terms(t: wp.mat33d, u: wp.vec3d, v: wp.vec3d, first: wp.float64, second: wp.float64):
    """Return the terms of pieces of a directed edge u v that bounds a part of the face ``t``.

    A piece from share p to share q of the edge, with the foot of the origin on the face's plane,
    spans a triangle, and with the origin a tetrahedron.

    Args:
        t, u, v: Relative to the origin.
        first, second: Sums of q - p and of q**2 - p**2 over the pieces.
    """
    normal = wp.cross(t[1] - t[0], t[2] - t[0])
    size = wp.length(normal)
    foot = normal * (wp.dot(normal, t[0]) / (size * size))
    cross = wp.cross(u - foot, v - foot)
    volume = wp.dot(foot, cross)
    moment = volume * ((foot + wp.float64(2.0) * u) * first + (v - u) * second)
    return SolidTerms(
        volume * first, moment[0], moment[1], moment[2], wp.dot(normal, cross) / size * first
    )


@wp.func
def face_terms(t: wp.mat33d):
    """Return the terms of a whole face, relative to the origin."""
    volume = wp.dot(t[0], wp.cross(t[1], t[2]))
    moment = volume * (t[0] + t[1] + t[2])
    area = wp.length(wp.cross(t[1] - t[0], t[2] - t[0]))
    return SolidTerms(volume, moment[0], moment[1], moment[2], area)


@wp.func
def tri_about(t: wp.mat33d, origin: wp.vec3d):
    """Return a triangle relative to an origin."""
    return wp.matrix_from_rows(t[0] - origin, t[1] - origin, t[2] - origin)


@wp.func
def crossing_terms(
    t: wp.mat33d, edges: wp.vec2i, first_edge: wp.int32, shares: wp.vec2d, exits: wp.float64
):
    """Return the terms of the crossings on a face's own edges, numbered from ``first_edge``.

    ``exits`` is 1 if an edge leaves the other solid where the segment starts, -1 if it enters.
    """
    out = SolidTerms()
    for end in range(2):
        k = edges[end] - first_edge
        if k >= 0 and k < 3:
            sign = wp.where(end == 0, exits, -exits)
            share = shares[end]
            out += edge_terms(t, t[k], t[(k + 1) % 3], sign * share, sign * share * share)
    return out


@wp.func
def coplanar_areas(a: wp.mat33d, b: wp.mat33d):
    """Return what the areas of a and b lack where coplanar faces overlap, times 2.

    The shift of b counts a's face if it moves b's face out of b, and b's if into a. Faces of
    solids on the same side should both count, on opposite sides neither.
    """
    polygon = wp.zeros(shape=(POLYGON_SIZE,), dtype=wp.vec3d)
    area = polygon_area_vector(polygon, clip_tri_tri(a, b, polygon))
    twice = wp.float64(2.0) * wp.length(area)
    sign_a = normal_sign(a)
    sign_b = normal_sign(b)
    if sign_a == sign_b:
        return wp.where(
            sign_b < 0, wp.vec2d(twice, wp.float64(0.0)), wp.vec2d(wp.float64(0.0), twice)
        )
    return wp.where(sign_b > 0, wp.vec2d(-twice, -twice), wp.vec2d(wp.float64(0.0)))
