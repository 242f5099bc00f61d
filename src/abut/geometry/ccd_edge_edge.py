"""First contact of two moving edges."""

import warp as wp

from abut.geometry.approach import Approach, edge_edge_polygon, mat43d, usual_scale
from abut.geometry.coplanarity import edge_edge_cubic, may_vanish
from abut.geometry.first_contact import first_contact
from abut.geometry.separation import apart_throughout


@wp.func
def edge_edge_approach(p: mat43d, q: mat43d):
    """Approach of an edge (rows 0 and 1) and another."""
    approach = Approach()
    approach.start = edge_edge_polygon(p)
    approach.end = edge_edge_polygon(q)
    return approach


@wp.func
def may_meet_edge_edge(p: mat43d, q: mat43d, min_distance: wp.float64, until: wp.float64):
    """False only when two edges provably do not meet until a time."""
    if apart_throughout(edge_edge_approach(p, q), min_distance, until):
        return False
    return may_vanish(edge_edge_cubic(p, q, min_distance), until)


@wp.func
def ccd_edge_edge(
    p: mat43d, q: mat43d, min_distance: wp.float64, tolerance: wp.float64, limit: wp.float64
):
    """First time in [0, 1] at which two edges are within ``min_distance``; NEVER if none.

    Args:
        p, q: Endpoints of both edges, one a row, at the start and at the end of the step.
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
    f = edge_edge_cubic(start, end, gap)
    return first_contact(f, edge_edge_approach(start, end), gap, tolerance, limit)
