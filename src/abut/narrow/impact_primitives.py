"""First contacts of rows of four moving points each, for abut.primitives."""

import warp as wp

from abut.geometry.ccd_edge_edge import ccd_edge_edge
from abut.geometry.ccd_vertex_face import ccd_vertex_face
from abut.geometry.passage import Passage

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 4})


@wp.func
def row_of(points: wp.array[wp.vec3d], row: wp.int32):
    """The four points of a row."""
    at = 4 * row
    return wp.matrix_from_rows(points[at], points[at + 1], points[at + 2], points[at + 3])


@wp.func
def write_hit(
    hit: Passage, row: wp.int32, time: wp.array[wp.float64], converged: wp.array[wp.bool]
):
    """Write the time of a row, infinity for none, which is certain."""
    never = hit.time > wp.float64(1.0)
    time[row] = wp.where(never, wp.float64(wp.inf), hit.time)
    converged[row] = never or hit.converged


@wp.kernel
def vertex_face_rows_kernel(
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
    """Write the first contact of each vertex and face; infinity for none."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = row_of(points_t0, i)
        q = row_of(points_t1, i)
        hit = ccd_vertex_face(p, q, min_distance, tolerance, wp.float64(1.0))
        write_hit(hit, i, time_out, converged_out)


@wp.kernel
def edge_edge_rows_kernel(
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
    """Write the first contact of each two edges; infinity for none."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = row_of(points_t0, i)
        q = row_of(points_t1, i)
        hit = ccd_edge_edge(p, q, min_distance, tolerance, wp.float64(1.0))
        write_hit(hit, i, time_out, converged_out)
