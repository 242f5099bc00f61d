"""How the frame of b sits in that of a, for each pose of two meshes."""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame, shifted_frame, turned_frame
from abut.bvh.layout import BvhView, load_node, max_abs_coordinate, root_of
from abut.operands.posed_mesh import PosedMesh, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def relative_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    tree_a: BvhView,
    tree_b: BvhView,
    # out
    relative_out: wp.array[RelativeFrame],
):
    """How b's frame sits in a's, for each pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        reach_a = max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
        reach_b = max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b)))
        if a.pose_count == 0 and b.pose_count == 0:
            relative_out[i] = shifted_frame(tree_a.origin, tree_b.origin, reach_b)
        else:
            relative_out[i] = turned_frame(
                pose_of(a, i), pose_of(b, i), tree_a.origin, tree_b.origin, reach_a, reach_b
            )
