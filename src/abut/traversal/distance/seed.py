"""First bounds of the distance: faces that descents without return come to."""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Node, face_of, is_leaf, link_of, load_node, root_of
from abut.core.atomics import atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import MAX_COUNT
from abut.operands.distance_queues import (
    DistanceQueues,
    box_limit,
    from_bits,
    gap_of,
    slack_of,
    to_bits,
)
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import pair_at, pair_stop
from abut.traversal.distance.node_gaps import gap_centres, gap_nodes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


CENTRES = wp.constant(wp.float32(0.125))  # weight of the distance of centres beside that of boxes


@wp.func
def estimate_gap(frame: RelativeFrame, a: Node, b: Node):
    """Estimate of the squared distance of faces of two nodes, also where their boxes overlap."""
    return gap_nodes(frame, a, b) + CENTRES * gap_centres(frame, a, b)


@cache
def sample_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel that samples leaves of a, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def sample_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        fields: wp.array[wp.int32],
        sample_count: wp.int32,
        # out
        queues_out: DistanceQueues,
    ):
        """Bound the distance of each row by some leaves of a, which descend to a leaf of b each.

        A descent takes the nearer child and never returns.
        """
        stop = wp.min(pair_stop(pairs, MAX_COUNT / sample_count) * sample_count, span[1])
        for work in range(span[0] + wp.tid(), stop, span[2]):
            rank = work / sample_count
            if fields.shape[0] > 0:
                if fields[rank] != 0:
                    continue
            pair = pair_at(pairs, rank)
            sample = wp.int64(work - rank * sample_count)
            leaves = wp.int64(pair.tree_a.leaf_slots.shape[0])
            slot = pair.tree_a.leaf_slots[wp.int32(sample * leaves / wp.int64(sample_count))]
            leaf = load_node(pair.tree_a.nodes, slot)
            frame = frames[rank]
            node = load_node(pair.tree_b.nodes, root_of(pair.tree_b))
            while not is_leaf(node):
                left = load_node(pair.tree_b.nodes, 2 * link_of(node))
                right = load_node(pair.tree_b.nodes, 2 * link_of(node) + 1)
                gap_left = gap_nodes(frame, leaf, left)
                gap_right = gap_nodes(frame, leaf, right)
                if gap_left == gap_right:  # most often 0: the leaf is inside both
                    gap_left = gap_centres(frame, leaf, left)
                    gap_right = gap_centres(frame, leaf, right)
                node = right
                if gap_left <= gap_right:
                    node = left
            gap = gap_nodes(frame, leaf, node)
            known = from_bits(load_relaxed_int64(queues_out.bound, rank))
            if not (gap > box_limit(known, slack_of(pair), frame.stretch)):
                corners_a = load_face(pair.a, face_of(leaf), pair.pose)
                near = gap_of(corners_a, load_face(pair.b, face_of(node), pair.pose))
                atomic_min_int64(queues_out.bound, rank, to_bits(near.distance))

    return sample_kernel
