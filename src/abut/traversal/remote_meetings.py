"""The nearest faces of two objects far apart for their size, for many pairs in one launch."""

import warp as wp

from abut.bounds.relative_frame import largest
from abut.bounds.rows import double_of
from abut.bvh.batched import bvh_at
from abut.bvh.layout import Node, load_node, root_of
from abut.core.pair_queue import queue_stop
from abut.operands.contact_operands import Search
from abut.operands.posed_mesh import pose_of
from abut.operands.scene_pairs import Crowd, Meeting, meeting_at, search_of
from abut.traversal.beyond import pair_beyond
from abut.traversal.ends import CROWDED, pair_of_ends
from abut.traversal.near_meetings import slack_of
from abut.traversal.remote import (
    BEYOND_SIZES,
    REMOTE_SIZES,
    ROUNDED,
    WORLD_ROUNDING,
    blur_of,
    centre_of,
    walk_remote,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def sides_of(node: Node):
    """Sum of the sides of a box."""
    side = double_of(node.high) - double_of(node.low)
    return side[0] + side[1] + side[2]


@wp.struct
class Parting:
    """How far apart two objects are, their centres, and how they are to be searched."""

    from_a: wp.vec3d
    to_b: wp.vec3d
    remote: wp.bool
    beyond: wp.bool


@wp.func
def parting_of(crowd: Crowd, meeting: Meeting, search: Search):
    """Whether two objects are far apart for their size, as ``query.remoteness`` says of meshes."""
    tree_a = bvh_at(crowd.forest, meeting.body_a)
    tree_b = bvh_at(crowd.forest, meeting.body_b)
    root_a = load_node(tree_a.nodes, root_of(tree_a))
    root_b = load_node(tree_b.nodes, root_of(tree_b))
    pose_a = pose_of(search.a, 0)
    pose_b = pose_of(search.b, 0)
    out = Parting()
    out.from_a = centre_of(tree_a, root_a, pose_a)
    out.to_b = centre_of(tree_b, root_b, pose_b)
    size = sides_of(root_a) + sides_of(root_b)
    apart = largest(out.to_b - out.from_a)
    reach = blur_of(tree_a, pose_a, tree_b, pose_b) / WORLD_ROUNDING
    out.remote = apart > REMOTE_SIZES * size and apart < wp.float64(wp.inf)
    out.beyond = out.remote and apart > BEYOND_SIZES * size and apart > ROUNDED * reach
    return out


@wp.kernel
def remote_meet_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    # out
    bound_out: wp.array[wp.int64],
    key_out: wp.array[wp.int64],
):
    """``nearest_meet_kernel`` for the meetings of objects far apart."""
    for rank in range(span[0] + wp.tid(), queue_stop(crowd.meetings, span[1]), span[2]):
        meeting = meeting_at(crowd, rank)
        search = search_of(crowd, meeting)
        tree_a = bvh_at(crowd.forest, meeting.body_a)
        tree_b = bvh_at(crowd.forest, meeting.body_b)
        parting = parting_of(crowd, meeting, search)
        if parting.beyond:
            key_out[rank] = pair_beyond(
                search, bound_out, rank, tree_a, tree_b, parting.from_a, parting.to_b
            )
        elif parting.remote:
            slack = slack_of(crowd, meeting)
            found = pair_of_ends(search, bound_out, rank, tree_a, tree_b, slack)
            if found.key == CROWDED:
                start = root_of(tree_a)
                found = walk_remote(
                    search, bound_out, rank, tree_a, start, tree_b, slack, wp.float64(0.0)
                )
            key_out[rank] = found.key
