"""The face nearest to one point, with a thread for each face: two launches, no tree."""

import warp as wp

from abut.core.atomics import warp_atomic_min_int64
from abut.geometry.closest_point_tri import closest_point_tri
from abut.operands.posed_mesh import PosedMesh, load_face

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def squared_bits(p: wp.vec3d, side: PosedMesh, face: wp.int32):
    """The squared distance of a face of the first pose, as bits that are ordered alike."""
    return wp.cast(closest_point_tri(p, load_face(side, face, 0)).squared, wp.int64)


@wp.kernel
def least_distance_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    side: PosedMesh,
    # out
    least_out: wp.array[wp.int64],
):
    """Lower the first entry to the least squared distance of all faces from the first point."""
    for face in range(span[0] + wp.tid(), span[1], span[2]):
        warp_atomic_min_int64(least_out, 0, squared_bits(points[0], side, face))


@wp.kernel
def lowest_face_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    side: PosedMesh,
    least: wp.array[wp.int64],
    # out
    face_out: wp.array2d[wp.int32],
):
    """Lower the first entry to the lowest face at the least squared distance."""
    for face in range(span[0] + wp.tid(), span[1], span[2]):
        if squared_bits(points[0], side, face) == least[0]:
            wp.atomic_min(face_out, 0, 0, face)
