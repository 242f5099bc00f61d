"""Are points inside a closed mesh? By exact crossings of a ray."""

import warp as wp

from abut.bvh.layout import BvhView
from abut.core.launch import launch
from abut.geometry.poses import move_point
from abut.narrow.crossings import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


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
