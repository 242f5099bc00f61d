"""Distances and nearest points of given pairs of faces."""

from collections.abc import Callable
from functools import cache

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.geometry.distance_tri_tri import distance_tri_tri
from abut.narrow.segments import contact_segments
from abut.operands.distance_queues import gap_of
from abut.operands.posed_mesh import PosedMesh, load_face

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def measure_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    pairs: wp.array2d[wp.int32],
    pose: wp.array[wp.int32],
    met: wp.array[wp.bool],
    # out
    distance_out: wp.array[wp.float64],
    points_out: wp.array2d[wp.vec3d],
):
    """Distance and nearest points of each pair; 0 for a pair that meets, infinity for no pair.

    Without ``pose`` there is one, without ``met`` no pair meets.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        distance = wp.float64(wp.inf)
        p = wp.vec3d(wp.float64(wp.nan))
        q = wp.vec3d(wp.float64(wp.nan))
        at = wp.int32(0)
        if pose.shape[0] > 0:
            at = pose[i]
        meets = wp.bool(False)
        if met.shape[0] > 0:
            meets = met[i]
        if meets:
            distance = wp.float64(0.0)
        elif pairs[i, 0] >= 0:
            near = gap_of(load_face(a, pairs[i, 0], at), load_face(b, pairs[i, 1], at))
            distance = near.distance
            p = near.p
            q = near.q
        distance_out[i] = distance
        if points_out.shape[0] > 0:
            points_out[i, 0] = p
            points_out[i, 1] = q


def measured(
    a: Callable[[], PosedMesh],
    b: Callable[[], PosedMesh],
    pairs: wp.array,
    pose: wp.array | None,
    met: np.ndarray,
    *,
    points: bool,
) -> tuple[wp.array, wp.array]:
    """((n,) distances, (n, 2, 3) points or none) float64 of pairs.

    Args:
        a, b: Make the posed faces of the operands.
        pairs, pose: The pairs, and their poses where there is a batch; -1 for no pair.
        met: (n,) bool, whether a pair meets: its points are where.
        points: Whether to find the points.
    """
    device, count = pairs.device, pairs.shape[0]
    no_poses, no_flags, no_points = _nothing(device.alias)
    distance = wp.empty(count, dtype=wp.float64, device=device)
    found = wp.empty((count, 2), dtype=wp.vec3d, device=device) if points else no_points
    some = met.any()
    if count:
        flags = wp.array(met, dtype=wp.bool, device=device) if some else no_flags
        args = [a(), b(), pairs, no_poses if pose is None else pose, flags, distance, found]
        launch(measure_kernel, count, args, device, grain=256)
    if points and some:
        rows = wp.zeros(count, dtype=wp.int32, device=device) if pose is None else pose
        _add_common_points(a, b, pairs, rows, np.flatnonzero(met), found)
    return distance, found.view(wp.float64)


@cache
def _nothing(alias: str) -> tuple[wp.array, wp.array, wp.array]:
    """No poses, no flags, no points."""
    return (
        wp.empty(0, dtype=wp.int32, device=alias),
        wp.empty(0, dtype=wp.bool, device=alias),
        wp.empty((0, 2), dtype=wp.vec3d, device=alias),
    )


@wp.func
def farther(p: wp.vec3d, a: wp.mat33d, b: wp.mat33d):
    """Distance of a point from the farther of two triangles."""
    point = wp.matrix_from_rows(p, p, p)
    to_a = distance_tri_tri(point, a)
    to_b = distance_tri_tri(point, b)
    return wp.max(to_a.distance, to_b.distance)


@wp.kernel
def common_point_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    pairs: wp.array2d[wp.int32],
    pose: wp.array[wp.int32],
    segments: wp.array2d[wp.vec3d],
    rows: wp.array[wp.int32],
    # out
    points_out: wp.array2d[wp.vec3d],
):
    """Of each pair that meets the point, of three, that is least off either face.

    An end of the segment in which they meet, or a point where features touch: the former is
    rounded badly where faces lie almost in one plane, the latter does not exist where they cross.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        corners_a = load_face(a, pairs[i, 0], pose[i])
        corners_b = load_face(b, pairs[i, 1], pose[i])
        near = distance_tri_tri(corners_a, corners_b)
        best = near.p
        off = near.distance
        for end in range(2):
            p = segments[i, end]
            off_p = farther(p, corners_a, corners_b)
            if off_p < off:
                best = p
                off = off_p
        points_out[rows[i], 0] = best
        points_out[rows[i], 1] = best


def _add_common_points(
    a: Callable[[], PosedMesh],
    b: Callable[[], PosedMesh],
    pairs: wp.array,
    pose: wp.array,
    rows: np.ndarray,
    points: wp.array,
) -> None:
    """Fill these rows of ``points`` with a common point of the faces."""
    device = pairs.device
    some = wp.array(pairs.numpy()[rows], dtype=wp.int32, device=device)
    some_pose = wp.array(pose.numpy()[rows], dtype=wp.int32, device=device)
    segments, _ = contact_segments(a, b, some, some_pose)
    where = wp.array(rows.astype(np.int32), device=device)
    args = [a(), b(), some, some_pose, segments.view(wp.vec3d), where, points]
    launch(common_point_kernel, len(rows), args, device, grain=256)
