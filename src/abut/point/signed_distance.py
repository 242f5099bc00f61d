"""Closest points on the nearest faces, and their distances with the sign of the side."""

import warp as wp

from abut.core.pair_queue import PairQueue, push_pair, queue_stop
from abut.geometry.closest_point_tri import closest_point_tri, is_on_tri, point_at
from abut.geometry.poses import rotation_of, translation_of
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of
from abut.point.enclosure import Enclosure, estimate_enclosed, is_enclosed
from abut.point.nearest_face import NO_FACE
from abut.point.pseudonormals import Pseudonormals, pseudonormal_side

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.kernel
def closest_points_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    side: PosedMesh,
    upper_bound: wp.float64,
    # out
    face_out: wp.array2d[wp.int32],
    distance_out: wp.array2d[wp.float64],
    point_out: wp.array2d[wp.vec3d],
    weights_out: wp.array2d[wp.vec3d],
):
    """Distance, closest point and weights on the face of each point.

    Beyond the bound the distance is infinite, the face -1 and the rest NaN.
    """
    count = points.shape[0]
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count
        i = work - pose * count
        face = face_out[pose, i]
        nothing = wp.float64(wp.nan)
        distance = wp.float64(wp.inf)
        point = wp.vec3d(nothing, nothing, nothing)
        weights = point
        if face != NO_FACE:
            corners = load_face(side, face, pose)
            foot = closest_point_tri(points[i], corners)
            away = wp.sqrt(foot.squared)
            on = is_on_tri(points[i], corners, foot)
            if on or away <= upper_bound:
                distance = wp.where(on, wp.float64(0.0), away)
                weights = foot.weights
                point = wp.where(on, points[i], point_at(corners, weights))
            else:
                face = NO_FACE
        if face == NO_FACE:
            face_out[pose, i] = -1
        distance_out[pose, i] = distance
        point_out[pose, i] = point
        weights_out[pose, i] = weights


@wp.func
def to_mesh_frame(p: wp.vec3d, side: PosedMesh, pose: wp.int32):
    """A point in the frame of a mesh at a pose."""
    out = p
    if side.pose_count > 0:
        motion = pose_of(side, pose)
        shift = translation_of(motion)
        out = wp.inverse(rotation_of(motion)) * (p - shift)
    return out


@wp.kernel
def pseudonormal_sign_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    side: PosedMesh,
    unmoved: PosedMesh,
    normals: Pseudonormals,
    face: wp.array2d[wp.int32],
    weights: wp.array2d[wp.vec3d],
    # out
    distance_out: wp.array2d[wp.float64],
    undecided_out: PairQueue,
):
    """Negate distances behind the surface, by pseudonormals; push undecided points to a queue."""
    count = points.shape[0]
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count
        i = work - pose * count
        distance = distance_out[pose, i]
        if distance > wp.float64(0.0) and face[pose, i] >= 0:
            p = to_mesh_frame(points[i], side, pose)
            side_of_point = pseudonormal_side(normals, unmoved, face[pose, i], p, weights[pose, i])
            if side_of_point < 0:
                distance_out[pose, i] = -distance
            elif side_of_point == 0:
                push_pair(undecided_out, wp.int64(work))


@wp.func
def takes_sign(distance: wp.float64):
    """Whether a distance is neither zero nor infinite."""
    return distance > wp.float64(0.0) and distance < wp.float64(wp.inf)


@wp.kernel
def boundary_sign_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    side: PosedMesh,
    enclosure: Enclosure,
    # out
    distance_out: wp.array2d[wp.float64],
    undecided_out: PairQueue,
):
    """Negate distances inside an open mesh where float32 tells; push other points to a queue.

    Points are taken in ``order`` if there is one.
    """
    count = points.shape[0]
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count
        i = work - pose * count
        if order.shape[0] > 0:
            i = order[i]
        distance = distance_out[pose, i]
        if takes_sign(distance):
            found = estimate_enclosed(to_mesh_frame(points[i], side, pose), enclosure)
            if found < 0:
                push_pair(undecided_out, wp.int64(pose * count + i))
            elif found > 0:
                distance_out[pose, i] = -distance


@wp.kernel
def winding_sign_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    side: PosedMesh,
    enclosure: Enclosure,
    flipped: wp.bool,
    only: PairQueue,
    # out
    distance_out: wp.array2d[wp.float64],
):
    """Negate distances inside (``flipped``: outside), by winding numbers.

    Points are those of the queue ``only``, or all, in ``order`` if there is one.
    """
    count = points.shape[0]
    queued = only.keys.shape[0] > 0
    stop = span[1]
    if queued:
        stop = queue_stop(only, span[1])
    for k in range(span[0] + wp.tid(), stop, span[2]):
        work = wp.int32(k)
        if queued:
            work = wp.int32(only.keys[k])
        pose = work / count
        i = work - pose * count
        if not queued and order.shape[0] > 0:
            i = order[i]
        distance = distance_out[pose, i]
        if takes_sign(distance):
            if is_enclosed(to_mesh_frame(points[i], side, pose), enclosure) != flipped:
                distance_out[pose, i] = -distance
