"""Impacts of candidate pairs of moving features: a cheap filter, then the search for a time."""

from functools import cache

import warp as wp

from abut.core.atomics import atomic_add_aggregated, atomic_min_int64
from abut.core.pair_queue import pack_pair, push_pair, queue_stop, store_pair, unpack_pair
from abut.geometry.approach import approach_of
from abut.geometry.ccd_cubic import first_contact_cubic
from abut.geometry.coplanarity import coplanarity_cubic
from abut.geometry.first_contact import ccd_features, may_meet
from abut.operands.ccd_operands import (
    FACE_VERTEX,
    CcdOperands,
    edge_edge_at,
    edges_ignored,
    edges_join,
    edges_touch,
    in_no_face,
    vertex_at_face,
    vertex_face_at,
    vertex_face_ignored,
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


@cache
def candidate_kernel_for(edges: bool) -> wp.Kernel:
    """The kernel that filters candidates, for pairs of edges or of a vertex and a face."""
    share_path = edges_touch if edges else vertex_at_face

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False, "max_unroll": 4},
    )
    def candidate_kernel(
        # in
        span: wp.vec3i,
        operands: CcdOperands,
    ):
        """Keep the pairs that two cheap proofs do not separate."""
        for i in range(span[0] + wp.tid(), queue_stop(operands.candidates, span[1]), span[2]):
            key = operands.candidates.keys[i]
            pair = unpack_pair(key, operands.bits)
            if wp.static(edges):
                e = operands.a.edges[pair[1]]
                f = operands.b.edges[pair[2]]
                if edges_join(operands.sharing, e, f) or edges_ignored(operands, e, f):
                    continue
                p = edge_edge_at(operands.a.points_t0, operands.b.points_t0, e, f)
                q = edge_edge_at(operands.a.points_t1, operands.b.points_t1, e, f)
            else:
                v = pair[1]
                face = operands.b.faces[pair[2]]
                if vertex_of_face(operands.sharing, v, face) or in_no_face(operands.a, v):
                    continue
                if vertex_face_ignored(operands, v, face):
                    continue
                p = vertex_face_at(operands.a.points_t0, operands.b.points_t0, v, face)
                q = vertex_face_at(operands.a.points_t1, operands.b.points_t1, v, face)
            # contacts of interest may be later than the reported times by the tolerance
            until = wp.min(limit_of(operands) + operands.tolerance, wp.float64(1.0))
            if may_meet(p, q, edges, operands.min_distance, until):
                if not share_path(operands.sharing, p, q):
                    push_pair(operands.possible, key)

    return candidate_kernel


@cache
def impact_kernel_for(edges: bool, cubic: bool) -> wp.Kernel:
    """The kernel that finds impacts, for pairs of edges or of a vertex and a face.

    Args:
        edges: Pairs of edges.
        cubic: By the zeros of the coplanarity cubic, as in gProximity: fast and Approximate.
    """

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False, "max_unroll": 4},
    )
    def impact_kernel(
        # in
        span: wp.vec3i,
        operands: CcdOperands,
    ):
        """Find when the remaining pairs meet."""
        for i in range(span[0] + wp.tid(), queue_stop(operands.possible, span[1]), span[2]):
            pair = unpack_pair(operands.possible.keys[i], operands.bits)
            if wp.static(edges):
                e = operands.a.edges[pair[1]]
                f = operands.b.edges[pair[2]]
                p = edge_edge_at(operands.a.points_t0, operands.b.points_t0, e, f)
                q = edge_edge_at(operands.a.points_t1, operands.b.points_t1, e, f)
            else:
                face = operands.b.faces[pair[2]]
                p = vertex_face_at(operands.a.points_t0, operands.b.points_t0, pair[1], face)
                q = vertex_face_at(operands.a.points_t1, operands.b.points_t1, pair[1], face)
            if wp.static(cubic):
                f3 = coplanarity_cubic(p, q, edges, wp.float64(0.0))
                time = first_contact_cubic(f3, approach_of(p, q, edges), operands.min_distance)
                if time <= wp.float64(1.0):
                    push_impact(operands, pair, time, True)
            else:
                gap = operands.min_distance
                hit = ccd_features(p, q, edges, gap, operands.tolerance, limit_of(operands))
                if hit.time <= wp.float64(1.0):
                    push_impact(operands, pair, hit.time, hit.converged)

    return impact_kernel


@wp.func
def row_of(points: wp.array[wp.vec3d], row: wp.int32):
    """The four points of a row."""
    at = 4 * row
    return wp.matrix_from_rows(points[at], points[at + 1], points[at + 2], points[at + 3])


@cache
def first_contacts_kernel_for(edges: bool) -> wp.Kernel:
    """The kernel for rows of two edges, or of a vertex and a face."""

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False, "max_unroll": 4},
    )
    def first_contacts_kernel(
        # in
        span: wp.vec3i,
        points_t0: wp.array[wp.vec3d],
        points_t1: wp.array[wp.vec3d],
        min_distance: wp.float64,
        tolerance: wp.float64,
        # out
        time_out: wp.array[wp.float64],
        converged_out: wp.array[wp.bool],
    ):
        """Write the first contact of each row; infinity for none, which is certain."""
        for i in range(span[0] + wp.tid(), span[1], span[2]):
            p = row_of(points_t0, i)
            q = row_of(points_t1, i)
            hit = ccd_features(p, q, edges, min_distance, tolerance, wp.float64(1.0))
            never = hit.time > wp.float64(1.0)
            time_out[i] = wp.where(never, wp.float64(wp.inf), hit.time)
            converged_out[i] = never or hit.converged

    return first_contacts_kernel
