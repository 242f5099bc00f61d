"""Lengths that rays travel inside a closed mesh before they first leave it."""

import numpy as np
import warp as wp

from abut.bounds.relative_frame import rotated_frame
from abut.bounds.separation_boxes import overlap_boxes
from abut.bvh.layout import (
    BvhView,
    face_of,
    is_leaf,
    link_of,
    load_node,
    max_abs_coordinate,
    root_of,
)
from abut.core.launch import launch
from abut.geometry.poses import move_point
from abut.geometry.winding_tri import cross_ray_tri
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

STACK = wp.constant(64)  # a tree is at most 30 + 31 deep
GRAIN = 32


@wp.func
def ray_length(p: wp.vec3d, t: wp.mat33d):
    """Return how far along x a ray from p meets a triangle that it crosses."""
    normal = wp.cross(t[1] - t[0], t[2] - t[0])
    length = wp.dot(normal, t[0] - p) / normal[0]
    low = wp.min(wp.min(t[0][0], t[1][0]), t[2][0]) - p[0]
    high = wp.max(wp.max(t[0][0], t[1][0]), t[2][0]) - p[0]
    return wp.clamp(length, low, high)


@wp.kernel
def ray_exit_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    side: PosedMesh,
    tree: BvhView,
    # out
    length_out: wp.array[wp.float64],
):
    """Length of the ray along x from each point to its nearest crossing; -1 for points outside."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = points[i]
        motion = pose_of(side, 0)
        reach = max_abs_coordinate(load_node(tree.nodes, root_of(tree)))
        away = wp.max(wp.abs(move_point(motion, tree.origin) - p))
        stop = wp.float32(wp.float64(2.0) * (away + wp.float64(2.0) * reach))
        still = wp.identity(n=4, dtype=wp.float64)
        frame = rotated_frame(motion, still, tree.origin, p, reach, wp.float64(stop))

        crossings = wp.int32(0)
        nearest = wp.float64(wp.inf)
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        depth = wp.int32(1)
        stack[0] = root_of(tree)
        while depth > 0:
            depth -= 1
            node = load_node(tree.nodes, stack[depth])
            ray_end = wp.vec4f(stop, 0.0, 0.0, 0.0)
            if overlap_boxes(frame, node.low, node.high, wp.vec4f(0.0), ray_end):
                if is_leaf(node):
                    corners = load_face(side, face_of(node), 0)
                    if cross_ray_tri(p, corners) != 0:
                        crossings += 1
                        nearest = wp.min(nearest, ray_length(p, corners))
                else:
                    stack[depth] = 2 * link_of(node) + 1
                    stack[depth + 1] = 2 * link_of(node)
                    depth += 2
        length_out[i] = wp.where(crossings % 2 == 1, nearest, wp.float64(-1.0))


def ray_exits(points: np.ndarray, side: PosedMesh, tree: BvhView, device: wp.Device) -> np.ndarray:
    """Return how far rays along x from points stay inside a mesh, -1 for points outside.

    Args:
        points: (n, 3) starts of rays.
        side: Closed mesh in one pose.
        tree: Its hierarchy.
        device: Of the mesh.

    Guarantee:
        Points off the mesh are told apart exactly; lengths are rounded.
    """
    length = wp.empty(len(points), dtype=wp.float64, device=device)
    starts = wp.array(points, dtype=wp.vec3d, device=device)
    launch(ray_exit_kernel, len(points), [starts, side, tree, length], device, grain=GRAIN)
    return length.numpy()
