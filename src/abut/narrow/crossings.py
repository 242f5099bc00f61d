"""How often a surface winds around a point, by exact crossings of a ray."""

import warp as wp

from abut.bounds.relative_frame import rotated_frame, translated_frame
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
from abut.geometry.poses import move_point
from abut.geometry.winding_tri import cross_ray_tri
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of

STACK = wp.constant(64)  # a tree is at most 30 + 31 deep


@wp.func
def cross_ray_tree(p: wp.vec3d, side: PosedMesh, pose: wp.int32, tree: BvhView):
    """Crossings of the ray from p along x with a posed mesh: (by direction, all of them).

    For a closed mesh the first is its winding number around p, if it is oriented; the second is
    odd inside.

    Guarantee:
        Exact for p not on the mesh.
    """
    # the ray as a thin box in a frame of its own, long enough to leave the mesh
    motion = pose_of(side, pose)
    reach = max_abs_coordinate(load_node(tree.nodes, root_of(tree)))
    away = wp.max(wp.abs(move_point(motion, tree.origin) - p))
    length = wp.float32(wp.float64(2.0) * (away + wp.float64(2.0) * reach))
    frame = translated_frame(tree.origin, p, wp.float64(length))
    if side.pose_count > 0:
        still = wp.identity(n=4, dtype=wp.float64)
        frame = rotated_frame(motion, still, tree.origin, p, reach, wp.float64(length))
    start = wp.vec4f(0.0)
    stop = wp.vec4f(length, 0.0, 0.0, 0.0)

    winding = wp.int32(0)
    crossings = wp.int32(0)
    stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
    depth = wp.int32(1)
    stack[0] = root_of(tree)
    while depth > 0:
        depth -= 1
        node = load_node(tree.nodes, stack[depth])
        if overlap_boxes(frame, node.low, node.high, start, stop):
            if is_leaf(node):
                way = cross_ray_tri(p, load_face(side, face_of(node), pose))
                winding += way
                crossings += wp.abs(way)
            else:
                stack[depth] = 2 * link_of(node) + 1
                stack[depth + 1] = 2 * link_of(node)
                depth += 2
    return wp.vec2i(winding, crossings)
