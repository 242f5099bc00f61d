"""Impacts of many objects on their true paths, and their points on the way."""

import warp as wp

from abut.core.pair_queue import unpack_pair
from abut.geometry.poses import move_point
from abut.geometry.rigid_path import Path
from abut.narrow.impact_rigid import Turning, meet_on_paths
from abut.operands.ccd_operands import EDGE_EDGE

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 4})


@wp.kernel
def place_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    owner: wp.array[wp.int32],
    poses: wp.array[wp.mat44d],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Points of many objects, each at the pose of its owner."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        points_out[i] = move_point(poses[owner[i]], points[i])


@wp.kernel
def refine_crowd_kernel(
    # in
    span: wp.vec3i,
    turning: Turning,
    owner: wp.array[wp.int32],
    paths: wp.array[Path],
    keys: wp.array[wp.int64],
    start: wp.array[wp.float64],
    stop: wp.float64,
    # out
    time_out: wp.array[wp.float64],
    converged_out: wp.array[wp.bool],
):
    """First contact of each row on the paths of its two objects, until ``stop``."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], turning.bits)
        here = turning
        if row[0] == EDGE_EDGE:
            here.path_a = paths[owner[turning.a.edges[row[1]][0]]]
            here.path_b = paths[owner[turning.b.edges[row[2]][0]]]
        else:
            here.path_a = paths[owner[row[1]]]
            here.path_b = paths[owner[turning.b.faces[row[2]][0]]]
        hit = meet_on_paths(here, row, start[i], stop)
        time_out[i] = wp.where(hit.time > wp.float64(1.0), wp.float64(wp.inf), hit.time)
        converged_out[i] = hit.converged
