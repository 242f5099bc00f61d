"""First contact of a moving vertex and a moving face."""

import warp as wp

from abut.geometry.approach import Approach, mat43d, usual_scale, vertex_face_polygon
from abut.geometry.coplanarity import may_vanish, vertex_face_cubic
from abut.geometry.first_contact import first_contact
from abut.geometry.separation import apart_throughout


@wp.func
def vertex_face_approach(p: mat43d, q: mat43d):
    """Approach of a vertex (row 0) and a face."""
    approach = Approach()
    approach.start = vertex_face_polygon(p)
    approach.end = vertex_face_polygon(q)
    return approach


@wp.func
def may_meet_vertex_face(p: mat43d, q: mat43d, min_distance: wp.float64, until: wp.float64):
    """False only when a vertex and a face provably do not meet until a time."""
    if apart_throughout(vertex_face_approach(p, q), min_distance, until):
        return False
    return may_vanish(vertex_face_cubic(p, q, min_distance), until)


@wp.func
def ccd_vertex_face(
    p: mat43d, q: mat43d, min_distance: wp.float64, tolerance: wp.float64, limit: wp.float64
):
    """First time in [0, 1] at which vertex and face are within ``min_distance``; NEVER if none.

    Args:
        p, q: The vertex and the corners of the face, one a row, at the start and at the end.
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
    f = vertex_face_cubic(start, end, gap)
    return first_contact(f, vertex_face_approach(start, end), gap, tolerance, limit)
