"""Pairs of nodes of two trees: overlap of their volumes, and the pairs of their children."""

import warp as wp

from abut.bounds.obb import overlap_obb, unpack_obb
from abut.bounds.relative_frame import RelativeFrame
from abut.bounds.rss import overlap_rss, unpack_rss
from abut.bounds.separation_boxes import overlap_boxes, separations_boxes
from abut.bvh.layout import (
    BvhView,
    Node,
    half_area,
    is_leaf,
    link_of,
    load_node,
    root_of,
    subtree_slot,
)
from abut.bvh.node_obbs import OBB_ROWS
from abut.core.memory_access import load_readonly_vec4f, read_ahead
from abut.traversal.overlap.kdop_frames import KdopFrames, overlap_kdops

STACK = wp.constant(192)  # a tree is at most 61 levels deep, and each leaves three pairs behind
LARGER = wp.constant(wp.float32(4.0))  # times the surface, for one node to be opened alone
APART = wp.constant(wp.float32(3.0e38))


@wp.func
def load_obb(tree: BvhView, slot: wp.int32):
    """Read an oriented box, 48 bytes."""
    return unpack_obb(
        load_readonly_vec4f(tree.obbs, OBB_ROWS * slot),
        load_readonly_vec4f(tree.obbs, OBB_ROWS * slot + 1),
        load_readonly_vec4f(tree.obbs, OBB_ROWS * slot + 2),
    )


@wp.func
def load_rss(tree: BvhView, slot: wp.int32):
    """Read a swept sphere, 48 bytes."""
    return unpack_rss(
        load_readonly_vec4f(tree.rss, OBB_ROWS * slot),
        load_readonly_vec4f(tree.rss, OBB_ROWS * slot + 1),
        load_readonly_vec4f(tree.rss, OBB_ROWS * slot + 2),
    )


@wp.func
def finer_overlap(
    frame: RelativeFrame,
    dops: KdopFrames,
    pose: wp.int32,
    tree_a: BvhView,
    i: wp.int32,
    tree_b: BvhView,
    j: wp.int32,
):
    """True when the volumes beside the boxes of two slots may overlap, or when there are none."""
    if tree_a.obbs.shape[0] > 0:
        return overlap_obb(frame, load_obb(tree_a, i), load_obb(tree_b, j))
    if tree_a.rss.shape[0] > 0:
        return overlap_rss(frame, load_rss(tree_a, i), load_rss(tree_b, j))
    return overlap_kdops(dops, pose, i, j)


@wp.func
def overlap_node_boxes(frame: RelativeFrame, a: Node, b: Node):
    """1 when the boxes of two nodes may overlap, else 0."""
    return wp.int32(overlap_boxes(frame, a.low, a.high, b.low, b.high))


@wp.func
def opens_first(a: Node, b: Node):
    """True when a is the one to open of two nodes, not both leaves: the larger inner node."""
    return is_leaf(b) or (not is_leaf(a) and half_area(a) > half_area(b))


@wp.func
def pair_below(i: wp.int32, a: Node, j: wp.int32, b: Node, side: wp.int32):
    """Slots of a pair of nodes, not both leaves, with the larger replaced by its child ``side``."""
    out = wp.vec2i(i, 2 * link_of(b) + side)
    if opens_first(a, b):
        out = wp.vec2i(2 * link_of(a) + side, j)
    return out


@wp.struct
class Opened:
    """Four pairs of slots (i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1), and their gaps."""

    i: wp.int32
    j: wp.int32
    gaps: wp.vec4f  # APART for pairs that are not there


@wp.func
def open_pair(
    frame: RelativeFrame,
    tree_a: BvhView,
    i: wp.int32,
    a: Node,
    tree_b: BvhView,
    j: wp.int32,
    b: Node,
):
    """Open the much larger of two nodes, not both leaves; else, also for NaN sizes, both."""
    size_a = half_area(a)
    size_b = half_area(b)
    open_a = wp.int32(not is_leaf(a) and (is_leaf(b) or not (LARGER * size_a < size_b)))
    open_b = wp.int32(not is_leaf(b) and (is_leaf(a) or not (LARGER * size_b < size_a)))
    out = Opened()
    out.i = wp.where(open_a == 1, 2 * link_of(a), i)
    out.j = wp.where(open_b == 1, 2 * link_of(b), j)
    a0 = load_node(tree_a.nodes, out.i)
    a1 = load_node(tree_a.nodes, out.i + open_a)
    b0 = load_node(tree_b.nodes, out.j)
    b1 = load_node(tree_b.nodes, out.j + open_b)
    read_ahead(tree_a.nodes, 4 * link_of(a0))  # their children, while their boxes are compared
    read_ahead(tree_a.nodes, 4 * link_of(a1))
    read_ahead(tree_b.nodes, 4 * link_of(b0))
    read_ahead(tree_b.nodes, 4 * link_of(b1))
    gaps = separations_boxes(
        frame, a0.low, a0.high, a1.low, a1.high, b0.low, b0.high, b1.low, b1.high
    )
    out.gaps = wp.vec4f(
        gaps[0],
        wp.where(open_b == 1, gaps[1], APART),
        wp.where(open_a == 1, gaps[2], APART),
        wp.where(open_a + open_b == 2, gaps[3], APART),
    )
    return out


@wp.func_native("""
    float key[4];
    for (int k = 0; k < 4; ++k) {
        const float gap = gaps.c[k] > -3.0e38f ? (gaps.c[k] < 3.0e38f ? gaps.c[k] : 3.0e38f)
                                               : -3.0e38f;  // also where it is not a number
        int bits;
        memcpy(&bits, &gap, 4);
        bits = (bits & ~3) | k;
        memcpy(&key[k], &bits, 4);
    }
    const int steps[5][2] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}};
    for (int k = 0; k < 5; ++k) {
        const float x = key[steps[k][0]], y = key[steps[k][1]];
        key[steps[k][0]] = x > y ? x : y;
        key[steps[k][1]] = x > y ? y : x;
    }
    return wp::vec_t<4, wp::float32>(key[0], key[1], key[2], key[3]);
""")
def farthest_first(gaps: wp.vec4f) -> wp.vec4f:
    """Gaps in descending order; the two lowest bits of each hold its index."""
    ...


@wp.func
def start_of(
    frame: RelativeFrame, tree_a: BvhView, tree_b: BvhView, item: wp.int32, depth: wp.int32
):
    """Slot of a's subtree ``item``; -1 when there is none, or when its box and b's are apart."""
    slot = subtree_slot(tree_a, item, depth)
    if slot >= 0:
        root = load_node(tree_b.nodes, root_of(tree_b))
        if overlap_node_boxes(frame, load_node(tree_a.nodes, slot), root) == 0:
            slot = -1
    return slot
