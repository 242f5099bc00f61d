"""A first bound of the distance: the few most promising pairs of nodes, from the roots to faces."""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import BvhView, Node, face_of, is_leaf, load_node, root_of
from abut.core.atomics import atomic_min_int64
from abut.core.pair_queue import NO_KEY, pack_pair
from abut.operands.distance_operands import Approach, gap_of, to_bits
from abut.operands.posed_mesh import load_face
from abut.traversal.node_gaps import apart, centre_of
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

BEAM = wp.constant(8)  # pairs kept a level; design/distance.md
CENTRES = wp.constant(wp.float32(0.125))  # weight of the distance of centres beside that of boxes


@wp.func
def promise(frame: RelativeFrame, a: Node, b: Node):
    """How far apart faces of two nodes may be, squared; a guess. Boxes that overlap tell little."""
    between = frame.rows * centre_of(b) + frame.shift - centre_of(a)
    return apart(frame, a, b) + CENTRES * wp.dot(between, between)


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


@wp.kernel
def seed_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    tree_a: BvhView,
    tree_b: BvhView,
    frames: wp.array[RelativeFrame],
    # out
    ways_out: wp.array[wp.vec3d],
    distance_out: wp.array[wp.int64],
    key_out: wp.array[wp.int64],
):
    """Bound the distance of each pose by that of two faces near each other.

    They are part of the answer where a tolerance keeps the walk from coming by.
    """
    beam = wp.zeros(shape=(BEAM,), dtype=wp.vec3i)
    below = wp.zeros(shape=(BEAM,), dtype=wp.vec3i)
    for pose in range(span[0] + wp.tid(), span[1], span[2]):
        frame = frames[pose]
        key_out[pose] = NO_KEY
        ways_out[pose] = wp.vec3d()
        best = wp.float64(wp.inf)
        beam[0] = wp.vec3i(root_of(tree_a), root_of(tree_b), 0)
        held = wp.int32(1)
        while held > 0:
            opened = wp.int32(0)
            for k in range(held):
                i = beam[k][0]
                j = beam[k][1]
                a = load_node(tree_a.nodes, i)
                b = load_node(tree_b.nodes, j)
                if is_leaf(a) and is_leaf(b):
                    corners_a = load_face(query.search.a, face_of(a), pose)
                    near = gap_of(corners_a, load_face(query.search.b, face_of(b), pose))
                    if near.distance < best:
                        best = near.distance
                        ways_out[pose] = near.q - near.p
                        key_out[pose] = pack_pair(0, face_of(a), face_of(b), query.search.bits)
                else:
                    for side in range(2):
                        at = pair_below(i, a, j, b, side)
                        lower_a = load_node(tree_a.nodes, at[0])
                        lower_b = load_node(tree_b.nodes, at[1])
                        guess = wp.cast(promise(frame, lower_a, lower_b), wp.int32)
                        opened = keep_best(below, opened, wp.vec3i(at[0], at[1], guess))
            held = opened
            for k in range(held):
                beam[k] = below[k]
        bits = to_bits(best)
        distance_out[pose] = bits
        if bits > atomic_min_int64(query.bound, pose, bits):
            key_out[pose] = NO_KEY
