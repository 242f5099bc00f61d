"""Impacts of turning meshes, brought from pieces that stray to the true paths."""

import warp as wp

from abut.core.pair_queue import unpack_pair
from abut.geometry.approach import mat43d
from abut.geometry.ccd_edge_edge import ccd_edge_edge
from abut.geometry.ccd_vertex_face import ccd_vertex_face
from abut.geometry.passage import Passage
from abut.geometry.rigid_path import Path, place_on
from abut.geometry.separation import NEVER
from abut.operands.ccd_operands import (
    EDGE_EDGE,
    FACE_VERTEX,
    MovingMesh,
    edge_edge_at,
    vertex_face_at,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 4})

MOST_PARTS = wp.constant(128)
EARLIER = wp.constant(wp.float64(1.0 - 2.0**-50))


@wp.struct
class Turning:
    """Meshes on their true paths. ``points_t0`` and ``_t1`` of a rigid one are in its own frame."""

    a: MovingMesh
    b: MovingMesh
    path_a: Path
    path_b: Path
    bits: wp.vec2i
    min_distance: wp.float64
    tolerance: wp.float64


@wp.func
def placed_at(turning: Turning, p: mat43d, q: mat43d, kind: wp.int32, t: wp.float64):
    """The points of a pair of features at a time."""
    one = turning.path_a
    other = turning.path_b
    if kind == FACE_VERTEX:
        one = turning.path_b
        other = turning.path_a
    second = place_on(other, p[1], q[1], t)
    if kind == EDGE_EDGE:
        second = place_on(one, p[1], q[1], t)
    return wp.matrix_from_rows(
        place_on(one, p[0], q[0], t),
        second,
        place_on(other, p[2], q[2], t),
        place_on(other, p[3], q[3], t),
    )


@wp.func
def points_of(turning: Turning, row: wp.vec3i, end: wp.bool):
    """The points of a pair of features, as they are given for the start or the end."""
    first_a = turning.a.points_t0
    first_b = turning.b.points_t0
    if end:
        first_a = turning.a.points_t1
        first_b = turning.b.points_t1
    if row[0] == EDGE_EDGE:
        return edge_edge_at(first_a, first_b, turning.a.edges[row[1]], turning.b.edges[row[2]])
    if row[0] == FACE_VERTEX:
        return vertex_face_at(first_b, first_a, row[2], turning.a.faces[row[1]])
    return vertex_face_at(first_a, first_b, row[1], turning.b.faces[row[2]])


@wp.func
def meet_on_paths(turning: Turning, row: wp.vec3i, start: wp.float64, stop: wp.float64):
    """First contact in [start, stop] on the true paths, by straight parts that grow shorter."""
    p = points_of(turning, row, False)
    q = points_of(turning, row, True)
    stray = turning.path_a.stray + turning.path_b.stray
    gap = turning.min_distance + turning.path_a.rounding + turning.path_b.rounding
    out = Passage()
    out.time = NEVER
    t = wp.float64(start)
    longest = stop - start
    part = wp.float64(longest)
    here = placed_at(turning, p, q, row[0], t)
    searching = wp.bool(True)
    count = wp.int32(0)
    while searching:
        end = wp.min(t + part, stop)
        span = end - t
        there = placed_at(turning, p, q, row[0], end)
        near = gap + stray * span * span
        hit = Passage()
        if row[0] == EDGE_EDGE:
            hit = ccd_edge_edge(here, there, near, turning.tolerance, wp.float64(1.0))
        else:
            hit = ccd_vertex_face(here, there, near, turning.tolerance, wp.float64(1.0))
        count += 1
        if hit.time > wp.float64(1.0):
            t = end
            here = there
            part = wp.min(wp.float64(2.0) * part, longest)
            searching = t < stop
        else:
            t = t + EARLIER * hit.time * span
            here = placed_at(turning, p, q, row[0], t)
            if span <= turning.tolerance or count >= MOST_PARTS:
                out.time = t
                out.converged = hit.converged and span <= turning.tolerance
                searching = False
            part = wp.float64(0.25) * span
    return out


@wp.kernel
def refine_kernel(
    # in
    span: wp.vec3i,
    turning: Turning,
    keys: wp.array[wp.int64],
    start: wp.array[wp.float64],
    stop: wp.float64,
    # out
    time_out: wp.array[wp.float64],
    converged_out: wp.array[wp.bool],
):
    """First contact of each row on its true path, until ``stop``; infinity for none."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], turning.bits)
        hit = meet_on_paths(turning, row, start[i], stop)
        time_out[i] = wp.where(hit.time > wp.float64(1.0), wp.float64(wp.inf), hit.time)
        converged_out[i] = hit.converged
