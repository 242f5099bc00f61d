"""Impacts on the true paths of rotating meshes, refined from those on straight pieces."""

import warp as wp

from abut.core.pair_queue import unpack_pair
from abut.geometry.approach import mat43d
from abut.geometry.first_contact import ccd_features
from abut.geometry.passage import Passage
from abut.geometry.rigid_path import MotionPath, position_on
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
class TruePaths:
    """Two moving meshes and their paths; the points of a rigid one are in its own frame.

    Each may be joined of the meshes of several objects, whose paths are taken then.
    """

    a: MovingMesh
    b: MovingMesh
    path_a: MotionPath
    path_b: MotionPath
    object_paths: wp.array[MotionPath]  # of each object, where there are several
    owner: wp.array[wp.int32]  # object of each vertex
    bits: wp.vec2i
    min_distance: wp.float64
    tolerance: wp.float64


@wp.func
def placed_at(paths: TruePaths, p: mat43d, q: mat43d, kind: wp.int32, t: wp.float64):
    """Points of a pair of features at a time."""
    one = paths.path_a
    other = paths.path_b
    if kind == FACE_VERTEX:
        one = paths.path_b
        other = paths.path_a
    second = position_on(other, p[1], q[1], t)
    if kind == EDGE_EDGE:
        second = position_on(one, p[1], q[1], t)
    return wp.matrix_from_rows(
        position_on(one, p[0], q[0], t),
        second,
        position_on(other, p[2], q[2], t),
        position_on(other, p[3], q[3], t),
    )


@wp.func
def points_of(paths: TruePaths, row: wp.vec3i, end: wp.bool):
    """Points of a pair of features as given for the start or the end of the step."""
    points_a = paths.a.points_t0
    points_b = paths.b.points_t0
    if end:
        points_a = paths.a.points_t1
        points_b = paths.b.points_t1
    if row[0] == EDGE_EDGE:
        return edge_edge_at(points_a, points_b, paths.a.edges[row[1]], paths.b.edges[row[2]])
    if row[0] == FACE_VERTEX:
        return vertex_face_at(points_b, points_a, row[2], paths.a.faces[row[1]])
    return vertex_face_at(points_a, points_b, row[1], paths.b.faces[row[2]])


@wp.func
def meet_on_paths(paths: TruePaths, row: wp.vec3i, start: wp.float64, stop: wp.float64):
    """First contact in [start, stop] on the true paths, by ever shorter straight parts."""
    p = points_of(paths, row, False)
    q = points_of(paths, row, True)
    deviation = paths.path_a.deviation + paths.path_b.deviation
    gap = paths.min_distance + paths.path_a.rounding + paths.path_b.rounding
    out = Passage()
    out.time = NEVER
    t = wp.float64(start)
    longest = stop - start
    part = wp.float64(longest)
    here = placed_at(paths, p, q, row[0], t)
    searching = wp.bool(True)
    count = wp.int32(0)
    while searching:
        end = wp.min(t + part, stop)
        span = end - t
        there = placed_at(paths, p, q, row[0], end)
        near = gap + deviation * span * span
        edges = row[0] == EDGE_EDGE
        hit = ccd_features(here, there, edges, near, paths.tolerance, wp.float64(1.0))
        count += 1
        if hit.time > wp.float64(1.0):
            t = end
            here = there
            part = wp.min(wp.float64(2.0) * part, longest)
            searching = t < stop
        else:
            t = t + EARLIER * hit.time * span
            here = placed_at(paths, p, q, row[0], t)
            if span <= paths.tolerance or count >= MOST_PARTS:
                out.time = t
                out.converged = hit.converged and span <= paths.tolerance
                searching = False
            part = wp.float64(0.25) * span
    return out


@wp.kernel
def refine_kernel(
    # in
    span: wp.vec3i,
    paths: TruePaths,
    keys: wp.array[wp.int64],
    start: wp.array[wp.float64],
    stop: wp.float64,
    # out
    time_out: wp.array[wp.float64],
    converged_out: wp.array[wp.bool],
):
    """Write the first contact of each row on its true path, until ``stop``; infinity for none."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], paths.bits)
        here = paths
        if paths.owner.shape[0] > 0:
            if row[0] == EDGE_EDGE:
                here.path_a = paths.object_paths[paths.owner[paths.a.edges[row[1]][0]]]
                here.path_b = paths.object_paths[paths.owner[paths.b.edges[row[2]][0]]]
            else:
                here.path_a = paths.object_paths[paths.owner[row[1]]]
                here.path_b = paths.object_paths[paths.owner[paths.b.faces[row[2]][0]]]
        hit = meet_on_paths(here, row, start[i], stop)
        time_out[i] = wp.where(hit.time > wp.float64(1.0), wp.float64(wp.inf), hit.time)
        converged_out[i] = hit.converged
