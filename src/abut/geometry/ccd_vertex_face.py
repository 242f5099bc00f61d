"""When does a moving vertex first touch a moving face?"""

import warp as wp

from abut.geometry.approach import Approach, mat43d, vertex_face_polygon
from abut.geometry.coplanarity import vertex_face_cubic
from abut.geometry.first_contact import first_contact


@wp.func
def ccd_vertex_face(
    p: mat43d, q: mat43d, min_distance: wp.float64, tolerance: wp.float64, limit: wp.float64
):
    """First time in [0, 1] at which vertex and face are within ``min_distance``; NEVER if none.

    Args:
        p, q: Vertex and the face's corners, one a row, at the start and at the end.
        min_distance: Gap to keep.
        tolerance: How much earlier than the contact a converged time may be.
        limit: Contacts after this time need not be found.

    Guarantee:
        Conservative, see first_contact.
    """
    approach = Approach()
    approach.start = vertex_face_polygon(p)
    approach.end = vertex_face_polygon(q)
    f = vertex_face_cubic(p, q, min_distance)
    return first_contact(f, approach, min_distance, tolerance, limit)
