"""Pairs that are far apart for their size: fields of rows, and walks in float64.

Gaps of boxes in float32 are resolved to a millionth of the distance, which far away is more than
the meshes. Here nodes are compared in float64, along the line between their centres, in the world:
there poses that are rigid up to 1e-5 only do no harm. Measured in design/distance.md.
"""

from functools import cache

import warp as wp

from abut.bounds.float32 import row_xyz_float64
from abut.bounds.relative_frame import FLOAT32_RANGE, WORLD_ROUNDING, max_abs
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
from abut.core.pair_queue import MAX_COUNT, NO_KEY
from abut.geometry.poses import move_point, translation_of
from abut.operands.distance_queues import DistanceQueues, clear_along, from_bits, slack_of
from abut.operands.posed_mesh import load_face, pose_of
from abut.operands.posed_pairs import (
    MeshExtent,
    MeshPairs,
    PosedPair,
    ScenePairs,
    WorkItems,
    pair_at,
    pair_stop,
    row_and_item,
    subtree_depth,
)
from abut.traversal.distance.nearest import NearestPair, compare_faces, nearest_limit
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

# Fields of rows.
NEAR_FIELD = wp.constant(0)  # float32 resolves the gaps of boxes
FAR_FIELD = wp.constant(1)  # the nearest faces were found among the extremal ones
EXTREMAL_FIELD = wp.constant(2)  # one extremal face of each mesh is the answer
CROWDED_FIELD = wp.constant(3)  # far, with too many extremal faces: trees are walked in float64

FAR_SIZES = wp.constant(wp.float64(2.0**5))  # apart, from which float64 is faster
EXTREMAL_SIZES = wp.constant(wp.float64(2.0**26))  # apart, see extremal_faces
ROUNDED = wp.constant(wp.float64(2.0**-24))  # of coordinates, see extremal_faces
STACK = wp.constant(128)
MARGIN = wp.constant(wp.float64(1.0 + 2.0**-47))  # 64 roundings; distances and bounds take 23
FARTHEST = wp.constant(wp.float64(1e150))  # squares of lengths beyond may overflow
HALF = wp.constant(wp.float64(0.5))
APART = wp.constant(wp.float32(1.0))  # a gap of boxes: their faces cannot meet


@wp.func
def world_centre(tree: BvhView, node: Node, pose: wp.mat44d):
    """Centre of a box in the world."""
    return move_point(
        pose, (row_xyz_float64(node.low) + row_xyz_float64(node.high)) * HALF + tree.origin
    )


@wp.func
def box_reach(node: Node, pose: wp.mat44d, direction: wp.vec3d):
    """Return the extent of a box from its centre along a world direction."""
    half = (row_xyz_float64(node.high) - row_xyz_float64(node.low)) * HALF
    reach = wp.float64(0.0)
    for j in range(3):
        along = pose[0, j] * direction[0] + pose[1, j] * direction[1] + pose[2, j] * direction[2]
        reach += wp.abs(along) * half[j]
    return reach


@wp.func
def world_rounding(pair: PosedPair):
    """Bound of the roundings of moved coordinates."""
    tree_a = pair.tree_a
    tree_b = pair.tree_b
    world = max_abs(tree_a.origin) + max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
    world += max_abs(tree_b.origin) + max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b)))
    world += max_abs(translation_of(pose_of(pair.a, pair.pose)))
    world += max_abs(translation_of(pose_of(pair.b, pair.pose)))
    return WORLD_ROUNDING * world


@wp.func
def root_extent(tree: BvhView):
    """Extent of the mesh of a tree, by its root box."""
    node = load_node(tree.nodes, root_of(tree))
    low = row_xyz_float64(node.low)
    high = row_xyz_float64(node.high)
    out = MeshExtent()
    out.centre = (low + high) * HALF + tree.origin
    out.size = (high[0] - low[0]) + (high[1] - low[1]) + (high[2] - low[2])
    out.reach = max_abs(tree.origin) + max_abs_coordinate(node)
    return out


@wp.func
def extents_of(pairs: MeshPairs, pair: PosedPair):
    """Extents of both meshes of a row."""
    return pairs.extent_a, pairs.extent_b


@wp.func
def extents_of(pairs: ScenePairs, pair: PosedPair):
    """Extents of both meshes of a row."""
    return root_extent(pair.tree_a), root_extent(pair.tree_b)


@wp.func
def field_of(a: MeshExtent, pose_a: wp.mat44d, b: MeshExtent, pose_b: wp.mat44d):
    """NEAR_FIELD, FAR_FIELD or EXTREMAL_FIELD, by the distance of the centres of two meshes.

    Meshes that float32 cannot hold have boxes without bounds, and are in the near field.
    """
    size = a.size + b.size
    apart = max_abs(move_point(pose_b, b.centre) - move_point(pose_a, a.centre))
    reach = a.reach + b.reach + max_abs(translation_of(pose_a)) + max_abs(translation_of(pose_b))
    far = apart > FAR_SIZES * size and apart < wp.float64(wp.inf) and size < FLOAT32_RANGE
    extremal = apart > EXTREMAL_SIZES * size and apart > ROUNDED * reach
    return wp.where(far, wp.where(extremal, EXTREMAL_FIELD, FAR_FIELD), NEAR_FIELD)


@wp.func
def far_gap(
    tree_a: BvhView, pose_a: wp.mat44d, tree_b: BvhView, pose_b: wp.mat44d, slots: wp.vec2i
):
    """The gap of two slots along the line between their centres; 0 where it overflows."""
    a = load_node(tree_a.nodes, slots[0])
    b = load_node(tree_b.nodes, slots[1])
    between = world_centre(tree_b, b, pose_b) - world_centre(tree_a, a, pose_a)
    length = wp.length(between)
    direction = between / length  # NaN where centres coincide: culls nothing
    gap = length - box_reach(a, pose_a, direction) - box_reach(b, pose_b, direction)
    return wp.where(length < FARTHEST, gap, wp.float64(0.0))


@wp.func
def push_far(
    stack: wp.array[wp.vec2i],
    gaps: wp.array[wp.float64],
    held: wp.int32,
    limit: wp.float64,
    tree_a: BvhView,
    pose_a: wp.mat44d,
    tree_b: BvhView,
    pose_b: wp.mat44d,
    one: wp.vec2i,
    two: wp.vec2i,
):
    """Put pairs of slots within a limit on the stack, the nearer on top; returns its size."""
    gap_one = far_gap(tree_a, pose_a, tree_b, pose_b, one)
    gap_two = far_gap(tree_a, pose_a, tree_b, pose_b, two)
    first = gap_one <= gap_two
    stack[held] = wp.where(first, two, one)
    gaps[held] = wp.where(first, gap_two, gap_one)
    top = held + wp.int32(not (gaps[held] > limit))
    stack[top] = wp.where(first, one, two)
    gaps[top] = wp.where(first, gap_one, gap_two)
    return top + wp.int32(not (gaps[top] > limit))


@wp.func
def walk_far(pair: PosedPair, queues: DistanceQueues, rank: wp.int32, start: wp.int32):
    """The nearest faces below a slot of a, if they are as near as the bound, which is lowered."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float64)
    pose_a = pose_of(pair.a, pair.pose)
    pose_b = pose_of(pair.b, pair.pose)
    slack = slack_of(pair)
    rounding = slack + world_rounding(pair)
    found = NearestPair()
    found.bits = load_relaxed_int64(queues.bound, rank)
    found.key = NO_KEY
    stack[0] = wp.vec2i(start, root_of(pair.tree_b))
    gaps[0] = wp.float64(0.0)
    held = wp.int32(start >= 0)
    while held > 0:
        held -= 1
        i = stack[held][0]
        j = stack[held][1]
        known = load_relaxed_int64(queues.bound, rank)
        if known < found.bits:  # another thread has found nearer faces
            found.bits = known
            found.key = NO_KEY
        limit = nearest_limit(from_bits(found.bits), queues.tolerance) * MARGIN + rounding
        if gaps[held] > limit:
            continue
        a = load_node(pair.tree_a.nodes, i)
        b = load_node(pair.tree_b.nodes, j)
        if is_leaf(a) and is_leaf(b):
            p = load_face(pair.a, face_of(a), pair.pose)
            q = load_face(pair.b, face_of(b), pair.pose)
            if not clear_along(p, q, found.direction, from_bits(found.bits) * MARGIN + slack):
                found = compare_faces(
                    queues.contacts, rank, face_of(a), face_of(b), p, q, APART, found
                )
                if found.bits < known:
                    atomic_min_int64(queues.bound, rank, found.bits)
        else:
            one = pair_below(i, a, j, b, 0)
            two = pair_below(i, a, j, b, 1)
            held = push_far(
                stack, gaps, held, limit, pair.tree_a, pose_a, pair.tree_b, pose_b, one, two
            )
    return found


@cache
def far_walk_kernel_for(pairs_type: type) -> wp.Kernel:
    """The walk of rows in CROWDED_FIELD, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def far_walk_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        items: WorkItems,
        fields: wp.array[wp.int32],
        # out
        queues_out: DistanceQueues,
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Find the nearest faces of each (row, subtree of a), as ``nearest_kernel`` does."""
        stop = wp.min(pair_stop(pairs, MAX_COUNT / items.each) * items.each, span[1])
        for work in range(span[0] + wp.tid(), stop, span[2]):
            at = row_and_item(items, work)
            rank = at[0]
            if fields[rank] != CROWDED_FIELD:
                if items.each > 1:
                    key_out[work] = NO_KEY
                continue
            pair = pair_at(pairs, rank)
            depth = subtree_depth(items, pair.a.faces.shape[0])
            start = wp.int32(-1)
            if at[1] < 1 << depth:
                start = subtree_slot(pair.tree_a, at[1], depth)
            found = walk_far(pair, queues_out, rank, start)
            distance_out[work] = found.bits
            key_out[work] = found.key

    return far_walk_kernel
