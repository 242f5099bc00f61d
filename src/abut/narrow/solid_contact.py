"""Contacts of two solids: crossing and coplanar faces, and components inside the other solid."""

import numpy as np
import warp as wp

from abut.bvh.layout import BvhView
from abut.core.launch import launch
from abut.geometry.planar_overlap import (
    corner_sides,
    cross_properly,
    open_tris_overlap,
    seen_along,
)
from abut.geometry.poses import move_point
from abut.geometry.predicates import orient2d
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

# parts of the surface of a inside and outside b, and of b; coplanar faces with normals alike, or
# opposite
A_INSIDE, A_OUTSIDE, B_INSIDE, B_OUTSIDE, ALIKE, OPPOSITE = (1 << k for k in range(6))
CROSSING = A_INSIDE | A_OUTSIDE | B_INSIDE | B_OUTSIDE

_CROSSING = wp.constant(CROSSING)
_ALIKE = wp.constant(ALIKE)
_OPPOSITE = wp.constant(OPPOSITE)


@wp.kernel
def face_contact_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    pairs: wp.array2d[wp.int32],
    pose: wp.array[wp.int32],
    # out
    parts_out: wp.array[wp.int32],
):
    """Parts that the interiors of two faces tell: those of a crossing, or of a common area."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        face_a = load_face(a, pairs[i, 0], pose[i])
        face_b = load_face(b, pairs[i, 1], pose[i])
        sides_a = corner_sides(face_b, face_a)
        sides_b = corner_sides(face_a, face_b)
        parts = wp.int32(0)
        if wp.min(sides_b) == 0 and wp.max(sides_b) == 0:
            axis = seen_along(face_a)
            if open_tris_overlap(face_a, face_b, axis):
                way_a = orient2d(face_a[0], face_a[1], face_a[2], axis)
                way_b = orient2d(face_b[0], face_b[1], face_b[2], axis)
                parts = wp.where(way_a == way_b, _ALIKE, _OPPOSITE)
        elif cross_properly(face_a, face_b, sides_a, sides_b):
            parts = _CROSSING
        parts_out[i] = parts


@wp.kernel
def anchor_side_kernel(
    # in
    span: wp.vec3i,
    inner: PosedMesh,
    outer: PosedMesh,
    tree: BvhView,
    anchors: wp.array[wp.int32],
    pose: wp.array[wp.int32],
    # out
    inside_out: wp.array[wp.bool],
):
    """Whether each vertex of the inner mesh, at a pose, lies inside the outer mesh."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = inner.points[anchors[i]]
        if inner.pose_count > 0:
            p = move_point(pose_of(inner, pose[i]), p)
        inside_out[i] = cross_ray_tree(p, outer, pose[i], tree)[0] != 0


def face_contacts(a: PosedMesh, b: PosedMesh, pairs: wp.array, pose: wp.array) -> np.ndarray:
    """Return the parts that interiors of faces tell, for each pair of faces that meet."""
    parts = wp.empty(pairs.shape[0], dtype=wp.int32, device=pairs.device)
    launch(face_contact_kernel, parts.shape[0], [a, b, pairs, pose, parts], pairs.device, grain=64)
    return parts.numpy()


def anchors_inside(
    inner: PosedMesh, outer: PosedMesh, tree: BvhView, anchors: np.ndarray, pose: np.ndarray
) -> np.ndarray:
    """Return which vertices of ``inner``, each at a pose, lie inside ``outer``."""
    device = inner.points.device
    inside = wp.empty(len(anchors), dtype=wp.bool, device=device)
    arrays = (wp.array(rows, dtype=wp.int32, device=device) for rows in (anchors, pose))
    args = [inner, outer, tree, *arrays, inside]
    launch(anchor_side_kernel, len(anchors), args, device, grain=64)
    return inside.numpy()
