"""Padded objects of a robot and its obstacles: whether two are as near as both paddings."""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import BvhView, Node, face_of, half_area, is_leaf, link_of, load_node, root_of
from abut.core.pair_queue import queue_stop, unpack_pair
from abut.geometry.distance_tri_tri import distance_tri_tri, max_abs_component
from abut.operands.distance_queues import box_limit, slack_of
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import PosedPair, RobotPairs, frame_of, pair_at
from abut.traversal.distance.node_gaps import gap_nodes

# Loops stay loops: unrolled, the distance of two faces takes long to compile.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

NEAR_STACK = 128  # a tree is at most 61 levels deep, and each leaves one pair of nodes behind
ROUNDING = wp.constant(wp.float64(2.0**-49))  # of coordinates, in distances of faces
BOX_ROUNDING = wp.constant(wp.float32(2.0**-22))


@wp.func
def pad_of(pads: wp.array[wp.float64], row: wp.int32):
    """Return the padding of an object of the scene; ``pads`` is empty where there is none."""
    if pads.shape[0] == 0:
        return wp.float64(0.0)
    return pads[row]


@wp.func
def outward(low: wp.vec4f, high: wp.vec4f, pad: wp.float64):
    """Return how far the sides of a box move out for a padding, rounded up."""
    far = wp.max(wp.abs(low), wp.abs(high))
    size = wp.max(far[0], wp.max(far[1], far[2])) + wp.float32(pad)
    out = wp.float32(pad) + wp.float32(2.0) * BOX_ROUNDING * size
    return wp.vec4f(out, out, out, wp.float32(0.0))


@wp.func
def are_faces_near(pair: PosedPair, face_a: wp.int32, face_b: wp.int32, reach: wp.float64):
    """Whether two faces are at most ``reach`` apart, or no farther than rounding beyond it."""
    p = load_face(pair.a, face_a, pair.pose)
    q = load_face(pair.b, face_b, pair.pose)
    slack = ROUNDING * (max_abs_component(p) + max_abs_component(q))
    return distance_tri_tri(p, q).distance <= reach + slack


@wp.func
def opens_larger_a(a: Node, b: Node):
    """Whether the first of two nodes is opened: the larger one that is no leaf."""
    return is_leaf(b) or (not is_leaf(a) and half_area(a) >= half_area(b))


@wp.func
def are_surfaces_near(pair: PosedPair, reach: wp.float64):
    """Whether two faces of a pair that do not cross are at most ``reach`` apart."""
    stack = wp.zeros(shape=(NEAR_STACK,), dtype=wp.vec2i)
    frame = frame_of(pair)
    limit = box_limit(reach, slack_of(pair), frame.stretch)
    i = root_of(pair.tree_a)
    j = root_of(pair.tree_b)
    held = wp.int32(0)
    found = wp.bool(False)
    searching = wp.bool(True)
    while searching:
        a = load_node(pair.tree_a.nodes, i)
        b = load_node(pair.tree_b.nodes, j)
        near = not (gap_nodes(frame, a, b) > limit)
        if near and is_leaf(a) and is_leaf(b):
            found = are_faces_near(pair, face_of(a), face_of(b), reach)
            near = wp.bool(False)
        if near:
            if opens_larger_a(a, b):
                i = nearer_child(frame, pair.tree_a, link_of(a), b, wp.bool(False))
                stack[held] = wp.vec2i(i ^ 1, j)
            else:
                j = nearer_child(frame, pair.tree_b, link_of(b), a, wp.bool(True))
                stack[held] = wp.vec2i(i, j ^ 1)
            held += 1
        elif found or held == 0:
            searching = wp.bool(False)
        else:
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
    return found


@wp.func
def nearer_child(frame: RelativeFrame, tree: BvhView, split: wp.int32, other: Node, of_b: wp.bool):
    """Return the slot of the child whose box is nearer to another node."""
    first = load_node(tree.nodes, 2 * split)
    second = load_node(tree.nodes, 2 * split + 1)
    if of_b:
        later = gap_nodes(frame, other, second) < gap_nodes(frame, other, first)
    else:
        later = gap_nodes(frame, second, other) < gap_nodes(frame, first, other)
    return 2 * split + wp.int32(later)


@wp.kernel
def padded_pairs_kernel(
    # in
    span: wp.vec3i,
    pairs: RobotPairs,
    pads: wp.array[wp.float64],
    # out
    flags_out: wp.array[wp.int32],
):
    """Flag configurations in which two objects are no farther apart than both paddings."""
    for rank in range(span[0] + wp.tid(), queue_stop(pairs.object_pairs, span[1]), span[2]):
        row = unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)
        reach = pads[pairs.rows[row[1]]] + pads[row[2]]
        if flags_out[row[0]] == 0 and reach > wp.float64(0.0):
            if are_surfaces_near(pair_at(pairs, rank), reach):
                flags_out[row[0]] = 1
