"""Impacts by the zeros of the coplanarity cubic, as in gProximity: fast and Approximate."""

import warp as wp

from abut.core.pair_queue import queue_stop, unpack_pair
from abut.geometry.ccd_cubic import first_contact_cubic
from abut.geometry.ccd_edge_edge import edge_edge_approach
from abut.geometry.ccd_vertex_face import vertex_face_approach
from abut.geometry.coplanarity import edge_edge_cubic, vertex_face_cubic
from abut.narrow.impact import push_impact
from abut.operands.ccd_operands import CcdOperands, edge_edge_at, vertex_face_at

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 4})


@wp.kernel
def vertex_face_cubic_kernel(
    # in
    span: wp.vec3i,
    operands: CcdOperands,
):
    """Find when the remaining vertices and faces meet."""
    for i in range(span[0] + wp.tid(), queue_stop(operands.possible, span[1]), span[2]):
        pair = unpack_pair(operands.possible.keys[i], operands.bits)
        f = operands.b.faces[pair[2]]
        p = vertex_face_at(operands.a.points_t0, operands.b.points_t0, pair[1], f)
        q = vertex_face_at(operands.a.points_t1, operands.b.points_t1, pair[1], f)
        approach = vertex_face_approach(p, q)
        cubic = vertex_face_cubic(p, q, wp.float64(0.0))
        time = first_contact_cubic(cubic, approach, operands.min_distance)
        if time <= wp.float64(1.0):
            push_impact(operands, pair, time, True)


@wp.kernel
def edge_edge_cubic_kernel(
    # in
    span: wp.vec3i,
    operands: CcdOperands,
):
    """Find when the remaining edges meet."""
    for i in range(span[0] + wp.tid(), queue_stop(operands.possible, span[1]), span[2]):
        pair = unpack_pair(operands.possible.keys[i], operands.bits)
        e = operands.a.edges[pair[1]]
        f = operands.b.edges[pair[2]]
        p = edge_edge_at(operands.a.points_t0, operands.b.points_t0, e, f)
        q = edge_edge_at(operands.a.points_t1, operands.b.points_t1, e, f)
        approach = edge_edge_approach(p, q)
        cubic = edge_edge_cubic(p, q, wp.float64(0.0))
        time = first_contact_cubic(cubic, approach, operands.min_distance)
        if time <= wp.float64(1.0):
            push_impact(operands, pair, time, True)
