"""Points inside a closed mesh, by exact crossings of a ray."""

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
from abut.core.launch import launch
from abut.geometry.poses import move_point
from abut.geometry.shifted_signs import cross_ray_tri_shifted
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

STACK = wp.constant(64)  # a tree is at most 30 + 31 deep


@wp.func
def cross_ray_tree(
    p: wp.vec3d, side: PosedMesh, pose: wp.int32, tree: BvhView, shift: wp.int32 = 1
):
    """Crossings of the ray from p along x with a posed mesh: (by direction, all of them).

    For a closed mesh the first is its winding number around p, if it is oriented; the second is
    odd inside.

    Guarantee:
        Exact. A point on the mesh is shifted off it, by 1 or -1 times the infinitesimal shift of
        ``shifted_signs``.
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
                way = cross_ray_tri_shifted(p, load_face(side, face_of(node), pose), shift)
                winding += way
                crossings += wp.abs(way)
            else:
                stack[depth] = 2 * link_of(node) + 1
                stack[depth + 1] = 2 * link_of(node)
                depth += 2
    return wp.vec2i(winding, crossings)


@wp.kernel
def contain_kernel(
    # in
    span: wp.vec3i,
    inner: PosedMesh,
    outer: PosedMesh,
    tree: BvhView,
    anchors: wp.array[wp.int32],
    wanted: wp.array[wp.int32],
    oriented: wp.bool,
    # out
    contained_out: wp.array[wp.int32],
):
    """Shoot a ray from each (wanted pose, anchor vertex of the inner mesh)."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = wanted[work / anchors.shape[0]]
        p = inner.points[anchors[work % anchors.shape[0]]]
        if inner.pose_count > 0:
            p = move_point(pose_of(inner, pose), p)
        crossed = cross_ray_tree(p, outer, pose, tree)
        if (oriented and crossed[0] != 0) or (not oriented and crossed[1] % 2 == 1):
            contained_out[pose] = 1


def mark_contained(
    inner: PosedMesh,
    outer: PosedMesh,
    outer_tree: BvhView,
    anchors: wp.array,
    wanted: wp.array,
    oriented: bool,
    contained: wp.array,
) -> None:
    """Set ``contained[pose]`` where a component of ``inner`` lies inside ``outer``.

    Args:
        inner, outer: Posed meshes whose faces do not meet in the wanted poses.
        outer_tree: Hierarchy of ``outer``, which must be closed.
        anchors: A vertex of every component of ``inner``.
        wanted: Poses to look at.
        oriented: Count crossings by direction; otherwise by parity.
        contained: (B,) int32, updated.

    Guarantee:
        Exact.
    """
    count = anchors.shape[0] * wanted.shape[0]
    args = [inner, outer, outer_tree, anchors, wanted, oriented, contained]
    launch(contain_kernel, count, args, contained.device, grain=64)
