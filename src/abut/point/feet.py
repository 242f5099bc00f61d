"""Closest points on faces that are known to be nearest."""

import warp as wp

from abut.geometry.closest_point_tri import closest_point_tri, is_on_tri, point_at
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.point.nearest_face import NO_FACE

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.kernel
def feet_kernel(
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
    """Distance, point and weights on each point's face; inf, NaN and -1 beyond the bound."""
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
