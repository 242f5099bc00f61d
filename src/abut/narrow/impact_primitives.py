"""First contacts of rows of four moving points each, for abut.primitives."""

from functools import cache

import warp as wp

from abut.geometry.ccd_edge_edge import ccd_edge_edge
from abut.geometry.ccd_vertex_face import ccd_vertex_face

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 4})


@wp.func
def row_of(points: wp.array[wp.vec3d], row: wp.int32):
    """The four points of a row."""
    at = 4 * row
    return wp.matrix_from_rows(points[at], points[at + 1], points[at + 2], points[at + 3])


@cache
def first_contacts_kernel_for(edges: bool) -> wp.Kernel:
    """The kernel for rows of two edges, or of a vertex and a face."""
    solve = ccd_edge_edge if edges else ccd_vertex_face

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
            hit = solve(p, q, min_distance, tolerance, wp.float64(1.0))
            never = hit.time > wp.float64(1.0)
            time_out[i] = wp.where(never, wp.float64(wp.inf), hit.time)
            converged_out[i] = never or hit.converged

    return first_contacts_kernel
