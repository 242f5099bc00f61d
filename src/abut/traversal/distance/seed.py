"""First bounds of the distance: faces of some promising pairs of nodes, from the roots down."""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Node, face_of, is_leaf, link_of, load_node, root_of
from abut.core.atomics import atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import MAX_COUNT, NO_KEY, pack_pair
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
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


LEAST_FACES = wp.constant(1 << 12)  # of both meshes; smaller ones are faster without a seed
BEAM = wp.constant(8)  # pairs kept a level; design/distance.md
CENTRES = wp.constant(wp.float32(0.125))  # weight of the distance of centres beside that of boxes


@wp.func
def estimate_gap(frame: RelativeFrame, a: Node, b: Node):
    """Estimate of the squared distance of faces of two nodes, also where their boxes overlap."""
    return gap_nodes(frame, a, b) + CENTRES * gap_centres(frame, a, b)


@wp.func
def keep_best(beam: wp.array[wp.vec3i], held: wp.int32, pair: wp.vec3i):
    """Insert a pair into a sorted beam, dropping the last when full; returns the number held."""
    guess = wp.cast(pair[2], wp.float32)
    at = wp.int32(held)
    while at > 0 and wp.cast(beam[wp.max(at, 1) - 1][2], wp.float32) > guess:
        if at < BEAM:
            beam[at] = beam[at - 1]
        at -= 1
    if at < BEAM:
        beam[at] = pair
    return wp.min(held + 1, BEAM)


@cache
def beam_kernel_for(pairs_type: type) -> wp.Kernel:
    """The beam search of a type of posed pairs: one thread a row."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def beam_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        fields: wp.array[wp.int32],
        # out
        queues_out: DistanceQueues,
        directions_out: wp.array[wp.vec3d],
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Bound the distance of each row by that of two faces near each other.

        They are part of the answer where a tolerance keeps the walk from visiting them. Rows of
        the far field are left out, and small meshes, which are faster without.
        """
        beam = wp.zeros(shape=(BEAM,), dtype=wp.vec3i)
        below = wp.zeros(shape=(BEAM,), dtype=wp.vec3i)
        for rank in range(span[0] + wp.tid(), pair_stop(pairs, span[1]), span[2]):
            key_out[rank] = NO_KEY
            directions_out[rank] = wp.vec3d()
            if fields.shape[0] > 0:
                if fields[rank] != 0:
                    continue
            pair = pair_at(pairs, rank)
            small = pair.a.faces.shape[0] + pair.b.faces.shape[0] < LEAST_FACES
            if small and queues_out.tolerance == wp.float64(0.0):
                continue
            frame = frames[rank]
            best = wp.float64(wp.inf)
            beam[0] = wp.vec3i(root_of(pair.tree_a), root_of(pair.tree_b), 0)
            held = wp.int32(1)
            while held > 0:
                opened = wp.int32(0)
                for k in range(held):
                    i = beam[k][0]
                    j = beam[k][1]
                    a = load_node(pair.tree_a.nodes, i)
                    b = load_node(pair.tree_b.nodes, j)
                    if is_leaf(a) and is_leaf(b):
                        corners_a = load_face(pair.a, face_of(a), pair.pose)
                        near = gap_of(corners_a, load_face(pair.b, face_of(b), pair.pose))
                        if near.distance < best:
                            best = near.distance
                            directions_out[rank] = near.q - near.p
                            key_out[rank] = pack_pair(
                                0, face_of(a), face_of(b), queues_out.contacts.bits
                            )
                    else:
                        for side in range(2):
                            at = pair_below(i, a, j, b, side)
                            lower_a = load_node(pair.tree_a.nodes, at[0])
                            lower_b = load_node(pair.tree_b.nodes, at[1])
                            guess = wp.cast(estimate_gap(frame, lower_a, lower_b), wp.int32)
                            opened = keep_best(below, opened, wp.vec3i(at[0], at[1], guess))
                held = opened
                for k in range(held):
                    beam[k] = below[k]
            bits = to_bits(best)
            distance_out[rank] = bits
            if bits > atomic_min_int64(queues_out.bound, rank, bits):
                key_out[rank] = NO_KEY

    return beam_kernel


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
