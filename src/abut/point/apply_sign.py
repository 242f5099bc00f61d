"""Turn distances negative inside a mesh.

A posed mesh is asked about the point as its own frame sees it.
"""

import warp as wp

from abut.core.pair_queue import PairQueue, push_pair, queue_stop
from abut.geometry.poses import rotation_of, translation_of
from abut.operands.posed_mesh import PosedMesh, pose_of
from abut.point.pseudonormals import Pseudonormals, side_seen_from
from abut.point.surface import Surface, is_inside

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.func
def seen_from_mesh(p: wp.vec3d, side: PosedMesh, pose: wp.int32):
    """A point in the frame of an operand."""
    out = p
    if side.pose_count > 0:
        motion = pose_of(side, pose)
        shift = translation_of(motion)
        out = wp.inverse(rotation_of(motion)) * (p - shift)
    return out


@wp.kernel
def normals_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    side: PosedMesh,
    still: PosedMesh,
    normals: Pseudonormals,
    face: wp.array2d[wp.int32],
    weights: wp.array2d[wp.vec3d],
    # out
    distance_out: wp.array2d[wp.float64],
    undecided_out: PairQueue,
):
    """Negative behind the surface as pseudonormals tell; what they cannot tell goes to a queue."""
    count = points.shape[0]
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count
        i = work - pose * count
        distance = distance_out[pose, i]
        if distance > wp.float64(0.0) and face[pose, i] >= 0:
            p = seen_from_mesh(points[i], side, pose)
            seen = side_seen_from(normals, still, face[pose, i], p, weights[pose, i])
            if seen < 0:
                distance_out[pose, i] = -distance
            elif seen == 0:
                push_pair(undecided_out, wp.int64(work))


@wp.kernel
def winding_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    side: PosedMesh,
    mesh: Surface,
    closure: Surface,
    flipped: wp.bool,
    only: PairQueue,
    # out
    distance_out: wp.array2d[wp.float64],
):
    """Negative inside (``flipped``: outside) as winding numbers tell; for all, or those in a queue.

    All are taken in ``order``, if there is one.
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
        if distance > wp.float64(0.0) and distance < wp.float64(wp.inf):
            if is_inside(seen_from_mesh(points[i], side, pose), mesh, closure) != flipped:
                distance_out[pose, i] = -distance
