"""Are points inside a closed mesh? By exact crossings of a ray."""

import warp as wp

from abut.bounds.relative import overlap_across, turned_frame
from abut.faces import Faces, load_face, move_point, pose_of
from abut.geometry.cross_ray_tri import cross_ray_tri
from abut.hierarchy.tree import (
    TreeView,
    face_of,
    is_leaf,
    link_of,
    load_node,
    reach_of,
    root_of,
)
from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

STACK = wp.constant(64)  # a tree is at most 30 + 31 deep


@wp.kernel
def contain_kernel(
    # in
    span: wp.vec3i,
    inner: Faces,
    outer: Faces,
    tree: TreeView,
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

        # the ray as a thin box in a frame of its own, long enough to leave the outer mesh
        motion = pose_of(outer, pose)
        reach = reach_of(load_node(tree.nodes, root_of(tree)))
        away = wp.max(wp.abs(move_point(motion, tree.origin) - p))
        length = wp.float32(wp.float64(2.0) * (away + wp.float64(2.0) * reach))
        still = wp.identity(n=4, dtype=wp.float64)
        frame = turned_frame(motion, still, tree.origin, p, reach, wp.float64(length))
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
            if overlap_across(frame, node.low, node.high, start, stop):
                if is_leaf(node):
                    way = cross_ray_tri(p, load_face(outer, face_of(node), pose))
                    winding += way
                    crossings += wp.abs(way)
                else:
                    stack[depth] = 2 * link_of(node) + 1
                    stack[depth + 1] = 2 * link_of(node)
                    depth += 2
        if (oriented and winding != 0) or (not oriented and crossings % 2 == 1):
            contained_out[pose] = 1


def mark_contained(
    inner: Faces,
    outer: Faces,
    outer_tree: TreeView,
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
