"""Candidate pairs of moving features to impacts: a cheap proof of no contact, then the search."""

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
    edges_touch_ends,
    in_no_face,
    vertex_at_face,
    vertex_face_at,
    vertex_of_face,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 4})


@wp.func
def limit_of(sweep: CcdOperands):
    """The time beyond which impacts are of no interest."""
    limit = wp.float64(1.0)
    if sweep.first:
        limit = wp.min(limit, wp.cast(sweep.best[0], wp.float64))
    return limit


@wp.func
def contact_limit(sweep: CcdOperands):
    """The time beyond which contacts are of no interest: they may be reported a little earlier."""
    return wp.min(limit_of(sweep) + sweep.tolerance, wp.float64(1.0))


@wp.kernel
def vertex_face_filter_kernel(
    # in
    span: wp.vec3i,
    sweep: CcdOperands,
):
    """Keep the pairs of a vertex and a face that two cheap proofs leave open."""
    for i in range(span[0] + wp.tid(), queue_stop(sweep.candidates, span[1]), span[2]):
        pair = unpack_pair(sweep.candidates.keys[i], sweep.bits)
        v = pair[1]
        face = pair[2]
        f = sweep.b.faces[face]
        if vertex_of_face(sweep.sharing, v, f) or in_no_face(sweep.a, v):
            continue
        p = vertex_face_at(sweep.a.points_t0, sweep.b.points_t0, v, f)
        q = vertex_face_at(sweep.a.points_t1, sweep.b.points_t1, v, f)
        if may_meet_vertex_face(p, q, sweep.min_distance, contact_limit(sweep)):
            if not vertex_at_face(sweep.sharing, p, q):
                push_pair(sweep.possible, pack_pair(0, v, face, sweep.bits))


@wp.kernel
def edge_edge_filter_kernel(
    # in
    span: wp.vec3i,
    sweep: CcdOperands,
):
    """Keep the pairs of edges that two cheap proofs leave open."""
    for i in range(span[0] + wp.tid(), queue_stop(sweep.candidates, span[1]), span[2]):
        key = sweep.candidates.keys[i]
        pair = unpack_pair(key, sweep.bits)
        e = sweep.a.edges[pair[1]]
        f = sweep.b.edges[pair[2]]
        if edges_join(sweep.sharing, e, f):
            continue
        p = edge_edge_at(sweep.a.points_t0, sweep.b.points_t0, e, f)
        q = edge_edge_at(sweep.a.points_t1, sweep.b.points_t1, e, f)
        if may_meet_edge_edge(p, q, sweep.min_distance, contact_limit(sweep)):
            if not edges_touch_ends(sweep.sharing, p, q):
                push_pair(sweep.possible, key)


@wp.func
def report(sweep: CcdOperands, pair: wp.vec3i, time: wp.float64, converged: wp.bool):
    """Append an impact, unless an earlier one is known and only the first is wanted."""
    before = atomic_min_int64(sweep.best, 0, wp.cast(time, wp.int64))
    if sweep.first and wp.cast(before, wp.float64) < time:
        return
    key = pack_pair(sweep.kind, pair[1], pair[2], sweep.bits)
    if sweep.kind == FACE_VERTEX:
        key = pack_pair(sweep.kind, pair[2], pair[1], sweep.bits)
    slot = atomic_add_aggregated(sweep.impacts.count, 1)
    store_pair(sweep.impacts, slot, key)
    if slot < wp.int64(sweep.times.shape[0]):
        sweep.times[wp.int32(slot)] = time
        sweep.converged[wp.int32(slot)] = converged


@wp.kernel
def vertex_face_impact_kernel(
    # in
    span: wp.vec3i,
    sweep: CcdOperands,
):
    """Find when the remaining vertices and faces meet."""
    for i in range(span[0] + wp.tid(), queue_stop(sweep.possible, span[1]), span[2]):
        pair = unpack_pair(sweep.possible.keys[i], sweep.bits)
        v = pair[1]
        f = sweep.b.faces[pair[2]]
        p = vertex_face_at(sweep.a.points_t0, sweep.b.points_t0, v, f)
        q = vertex_face_at(sweep.a.points_t1, sweep.b.points_t1, v, f)
        hit = ccd_vertex_face(p, q, sweep.min_distance, sweep.tolerance, limit_of(sweep))
        if hit.time <= wp.float64(1.0):
            report(sweep, pair, hit.time, hit.converged)


@wp.kernel
def edge_edge_impact_kernel(
    # in
    span: wp.vec3i,
    sweep: CcdOperands,
):
    """Find when the remaining edges meet."""
    for i in range(span[0] + wp.tid(), queue_stop(sweep.possible, span[1]), span[2]):
        pair = unpack_pair(sweep.possible.keys[i], sweep.bits)
        e = sweep.a.edges[pair[1]]
        f = sweep.b.edges[pair[2]]
        p = edge_edge_at(sweep.a.points_t0, sweep.b.points_t0, e, f)
        q = edge_edge_at(sweep.a.points_t1, sweep.b.points_t1, e, f)
        hit = ccd_edge_edge(p, q, sweep.min_distance, sweep.tolerance, limit_of(sweep))
        if hit.time <= wp.float64(1.0):
            report(sweep, pair, hit.time, hit.converged)
