"""Impacts of candidate pairs of moving features: a cheap filter, then the search for a time."""

import warp as wp

from abut.core.atomics import atomic_add_aggregated, atomic_min_int64
from abut.core.pair_queue import pack_pair, push_pair, queue_stop, store_pair, unpack_pair
from abut.geometry.ccd_edge_edge import ccd_edge_edge, may_meet_edge_edge
from abut.geometry.ccd_vertex_face import ccd_vertex_face, may_meet_vertex_face
from abut.operands.ccd_operands import (
    FACE_VERTEX,
    CcdOperands,
    edge_edge_at,
    edges_join,
    edges_touch,
    in_no_face,
    vertex_at_face,
    vertex_face_at,
    vertex_of_face,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 4})


@wp.func
def limit_of(operands: CcdOperands):
    """Time beyond which impacts are of no interest."""
    limit = wp.float64(1.0)
    if operands.first:
        limit = wp.min(limit, wp.cast(operands.best[0], wp.float64))
    return limit


@wp.func
def contact_limit(operands: CcdOperands):
    """Time beyond which contacts are of no interest; reported times may be earlier."""
    return wp.min(limit_of(operands) + operands.tolerance, wp.float64(1.0))


@wp.kernel
def vertex_face_filter_kernel(
    # in
    span: wp.vec3i,
    operands: CcdOperands,
):
    """Keep the pairs of a vertex and a face that two cheap proofs do not separate."""
    for i in range(span[0] + wp.tid(), queue_stop(operands.candidates, span[1]), span[2]):
        pair = unpack_pair(operands.candidates.keys[i], operands.bits)
        v = pair[1]
        face = pair[2]
        f = operands.b.faces[face]
        if vertex_of_face(operands.sharing, v, f) or in_no_face(operands.a, v):
            continue
        p = vertex_face_at(operands.a.points_t0, operands.b.points_t0, v, f)
        q = vertex_face_at(operands.a.points_t1, operands.b.points_t1, v, f)
        if may_meet_vertex_face(p, q, operands.min_distance, contact_limit(operands)):
            if not vertex_at_face(operands.sharing, p, q):
                push_pair(operands.possible, pack_pair(0, v, face, operands.bits))


@wp.kernel
def edge_edge_filter_kernel(
    # in
    span: wp.vec3i,
    operands: CcdOperands,
):
    """Keep the pairs of edges that two cheap proofs do not separate."""
    for i in range(span[0] + wp.tid(), queue_stop(operands.candidates, span[1]), span[2]):
        key = operands.candidates.keys[i]
        pair = unpack_pair(key, operands.bits)
        e = operands.a.edges[pair[1]]
        f = operands.b.edges[pair[2]]
        if edges_join(operands.sharing, e, f):
            continue
        p = edge_edge_at(operands.a.points_t0, operands.b.points_t0, e, f)
        q = edge_edge_at(operands.a.points_t1, operands.b.points_t1, e, f)
        if may_meet_edge_edge(p, q, operands.min_distance, contact_limit(operands)):
            if not edges_touch(operands.sharing, p, q):
                push_pair(operands.possible, key)


@wp.func
def push_impact(operands: CcdOperands, pair: wp.vec3i, time: wp.float64, converged: wp.bool):
    """Push an impact, unless an earlier one is known and only the first is wanted."""
    before = atomic_min_int64(operands.best, 0, wp.cast(time, wp.int64))
    if operands.first and wp.cast(before, wp.float64) < time:
        return
    key = pack_pair(operands.kind, pair[1], pair[2], operands.bits)
    if operands.kind == FACE_VERTEX:
        key = pack_pair(operands.kind, pair[2], pair[1], operands.bits)
    slot = atomic_add_aggregated(operands.impacts.count, 1)
    store_pair(operands.impacts, slot, key)
    if slot < wp.int64(operands.times.shape[0]):
        operands.times[wp.int32(slot)] = time
        operands.converged[wp.int32(slot)] = converged


@wp.kernel
def vertex_face_impact_kernel(
    # in
    span: wp.vec3i,
    operands: CcdOperands,
):
    """Find when the remaining vertices and faces meet."""
    for i in range(span[0] + wp.tid(), queue_stop(operands.possible, span[1]), span[2]):
        pair = unpack_pair(operands.possible.keys[i], operands.bits)
        v = pair[1]
        f = operands.b.faces[pair[2]]
        p = vertex_face_at(operands.a.points_t0, operands.b.points_t0, v, f)
        q = vertex_face_at(operands.a.points_t1, operands.b.points_t1, v, f)
        hit = ccd_vertex_face(p, q, operands.min_distance, operands.tolerance, limit_of(operands))
        if hit.time <= wp.float64(1.0):
            push_impact(operands, pair, hit.time, hit.converged)


@wp.kernel
def edge_edge_impact_kernel(
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
        hit = ccd_edge_edge(p, q, operands.min_distance, operands.tolerance, limit_of(operands))
        if hit.time <= wp.float64(1.0):
            push_impact(operands, pair, hit.time, hit.converged)
