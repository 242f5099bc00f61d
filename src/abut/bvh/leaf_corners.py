"""Corners of faces in leaf order, for the plane filter.

Three rows of four float32 a leaf: a corner relative to the BVH's origin, and its vertex, or the
complement of the vertex if float32 does not hold the corner exactly.
"""

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.bvh.layout import Bvh, leaf_face, vec4_with_int
from abut.core.memory_access import load_readonly_vec4f
from abut.geometry.planes_apart import planes_apart

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CORNER_ROWS = wp.constant(3)


@wp.func
def corner_row(p: wp.vec3d, vertex: wp.int32, origin: wp.vec3d):
    """Pack a corner and its vertex into a row."""
    away = p - origin
    single = to_vec3f(away)
    exact = origin == wp.vec3d() and wp.vec3d(single) == p
    return vec4_with_int(single, wp.where(exact, vertex, -1 - vertex))


@wp.kernel
def leaf_corners_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    origin: wp.vec3d,
    nodes: wp.array[wp.vec4f],
    leaf_slots: wp.array[wp.int32],
    # out
    rows_out: wp.array[wp.vec4f],
):
    """Write the corners of each leaf."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        face = faces[leaf_face(nodes, leaf_slots[k])]
        for i in range(3):
            rows_out[CORNER_ROWS * k + i] = corner_row(points[face[i]], face[i], origin)


def leaf_corner_rows(tree: Bvh) -> wp.array:
    """Return the array for the corners of a BVH's leaves."""
    if tree.leaf_corners is None:
        count = CORNER_ROWS * tree.face_count
        tree.leaf_corners = wp.empty(count, dtype=wp.vec4f, device=tree.nodes.device)
    return tree.leaf_corners


@wp.func
def leaves_apart(corners: wp.array[wp.vec4f], a: wp.int32, b: wp.int32):
    """``planes_apart`` for the faces of two leaves of one tree."""
    return planes_apart(
        True,
        load_readonly_vec4f(corners, CORNER_ROWS * a),
        load_readonly_vec4f(corners, CORNER_ROWS * a + 1),
        load_readonly_vec4f(corners, CORNER_ROWS * a + 2),
        load_readonly_vec4f(corners, CORNER_ROWS * b),
        load_readonly_vec4f(corners, CORNER_ROWS * b + 1),
        load_readonly_vec4f(corners, CORNER_ROWS * b + 2),
    )
