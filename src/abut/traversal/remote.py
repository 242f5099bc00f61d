"""The nearest faces of two meshes that are far apart for their size.

Boxes compared in float32 are told apart to a millionth of the distance, which far away is more than
the meshes. Here nodes are compared in float64, along the line between their centres, in the world:
poses that are rigid up to 1e-5 only would show otherwise. Measured in design/distance.md.
"""

import warp as wp

from abut.bounds.relative_frame import WORLD_ROUNDING, largest, shift_of
from abut.bounds.rows import double_of
from abut.bvh.layout import (
    BvhView,
    Node,
    face_of,
    is_leaf,
    load_node,
    max_abs_coordinate,
    root_of,
    subtree_slot,
)
from abut.core.atomics import atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import NO_KEY
from abut.geometry.poses import move_point
from abut.operands.contact_operands import Search
from abut.operands.distance_operands import Approach, clear_along, from_bits
from abut.operands.posed_mesh import load_face, pose_of
from abut.traversal.nearest import Found, compare_faces
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

REMOTE_SIZES = wp.constant(wp.float64(2.0**5))  # from here on float32 tells less apart
BEYOND_SIZES = wp.constant(wp.float64(2.0**26))  # from here on see beyond
ROUNDED = wp.constant(wp.float64(2.0**-24))  # of coordinates: see beyond
STACK = wp.constant(128)
MARGIN = wp.constant(wp.float64(1.0 + 2.0**-47))  # 64 roundings; distances and bounds take 23
FARTHEST = wp.constant(wp.float64(1e150))  # squares of lengths beyond may overflow
HALF = wp.constant(wp.float64(0.5))
APART = wp.constant(wp.float32(1.0))  # boxes that are: no faces need be asked whether they meet


@wp.func
def centre_of(tree: BvhView, node: Node, pose: wp.mat44d):
    """Centre of a box in the world."""
    return move_point(pose, (double_of(node.low) + double_of(node.high)) * HALF + tree.origin)


@wp.func
def reach_along(node: Node, pose: wp.mat44d, way: wp.vec3d):
    """How far a box reaches from its centre along a direction of the world."""
    half = (double_of(node.high) - double_of(node.low)) * HALF
    reach = wp.float64(0.0)
    for j in range(3):
        along = pose[0, j] * way[0] + pose[1, j] * way[1] + pose[2, j] * way[2]
        reach += wp.abs(along) * half[j]
    return reach


@wp.func
def blur_of(tree_a: BvhView, pose_a: wp.mat44d, tree_b: BvhView, pose_b: wp.mat44d):
    """What roundings of moved coordinates can amount to."""
    world = largest(tree_a.origin) + max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
    world += largest(tree_b.origin) + max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b)))
    world += largest(shift_of(pose_a))
    world += largest(shift_of(pose_b))
    return WORLD_ROUNDING * world


@wp.func
def apart_remote(
    tree_a: BvhView,
    i: wp.int32,
    pose_a: wp.mat44d,
    tree_b: BvhView,
    j: wp.int32,
    pose_b: wp.mat44d,
):
    """How far apart two slots are along the line between their centres; 0 where it overflows."""
    a = load_node(tree_a.nodes, i)
    b = load_node(tree_b.nodes, j)
    between = centre_of(tree_b, b, pose_b) - centre_of(tree_a, a, pose_a)
    length = wp.length(between)
    way = between / length  # NaN where they are one: culls nothing
    gap = length - reach_along(a, pose_a, way) - reach_along(b, pose_b, way)
    return wp.where(length < FARTHEST, gap, wp.float64(0.0))


@wp.func
def push_remote(
    pairs: wp.array[wp.vec2i],
    gaps: wp.array[wp.float64],
    held: wp.int32,
    limit: wp.float64,
    tree_a: BvhView,
    i: wp.int32,
    a: Node,
    pose_a: wp.mat44d,
    tree_b: BvhView,
    j: wp.int32,
    b: Node,
    pose_b: wp.mat44d,
):
    """Open the larger of two nodes; what is within a limit goes on the stack, the nearest on top.

    Returns how many the stack holds then.
    """
    one = pair_below(i, a, j, b, 0)
    two = pair_below(i, a, j, b, 1)
    gap_one = apart_remote(tree_a, one[0], pose_a, tree_b, one[1], pose_b)
    gap_two = apart_remote(tree_a, two[0], pose_a, tree_b, two[1], pose_b)
    first = gap_one <= gap_two
    pairs[held] = wp.where(first, two, one)
    gaps[held] = wp.where(first, gap_two, gap_one)
    top = held + wp.int32(not (gaps[held] > limit))
    pairs[top] = wp.where(first, one, two)
    gaps[top] = wp.where(first, gap_one, gap_two)
    return top + wp.int32(not (gaps[top] > limit))


@wp.func
def walk_remote(
    search: Search,
    bound: wp.array[wp.int64],
    pose: wp.int32,
    tree_a: BvhView,
    start: wp.int32,
    tree_b: BvhView,
    slack: wp.float64,
    tolerance: wp.float64,
):
    """The nearest faces below a slot of a, if they are as near as the bound of a pose, lowered."""
    pairs = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float64)
    pose_a = pose_of(search.a, pose)
    pose_b = pose_of(search.b, pose)
    blur = slack + blur_of(tree_a, pose_a, tree_b, pose_b)
    found = Found()
    found.bits = load_relaxed_int64(bound, pose)
    found.key = NO_KEY
    pairs[0] = wp.vec2i(start, root_of(tree_b))
    gaps[0] = wp.float64(0.0)
    held = wp.int32(start >= 0)
    while held > 0:
        held -= 1
        i = pairs[held][0]
        j = pairs[held][1]
        known = load_relaxed_int64(bound, pose)
        if known < found.bits:  # another thread has found nearer faces
            found.bits = known
            found.key = NO_KEY
        limit = wp.max(from_bits(found.bits) - tolerance, wp.float64(0.0)) * MARGIN + blur
        if gaps[held] > limit:
            continue
        a = load_node(tree_a.nodes, i)
        b = load_node(tree_b.nodes, j)
        if is_leaf(a) and is_leaf(b):
            p = load_face(search.a, face_of(a), pose)
            q = load_face(search.b, face_of(b), pose)
            if not clear_along(p, q, found.way, from_bits(found.bits) * MARGIN + slack):
                found = compare_faces(search, pose, face_of(a), face_of(b), p, q, APART, found)
                if found.bits < known:
                    atomic_min_int64(bound, pose, found.bits)
        else:
            held = push_remote(pairs, gaps, held, limit, tree_a, i, a, pose_a, tree_b, j, b, pose_b)
    return found


@wp.kernel
def remote_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    tree_a: BvhView,
    tree_b: BvhView,
    depth: wp.int32,
    crowded: wp.array[wp.int32],
    # out
    distance_out: wp.array[wp.int64],
    key_out: wp.array[wp.int64],
):
    """``nearest_kernel`` for meshes far apart: the nearest faces of each (pose, subtree of a).

    Poses that are not ``crowded`` have their answer already (see ends).
    """
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        key_out[work] = NO_KEY
        if crowded[work >> depth] == 0:
            continue
        start = subtree_slot(tree_a, work & ((1 << depth) - 1), depth)
        found = walk_remote(
            query.search,
            query.bound,
            work >> depth,
            tree_a,
            start,
            tree_b,
            query.slack,
            query.tolerance,
        )
        distance_out[work] = found.bits
        key_out[work] = found.key
