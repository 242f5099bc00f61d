"""The bounding volume traversal tree (BVTT) of a posed pair (gProximity §4.1.2).

Its nodes are the pairs of nodes that a traversal of two hierarchies may visit, or of one against
itself. The topology of the hierarchies fixes it: of two nodes the one with more leaves below is
opened, the first of equal ones. A front is a cut through it, which holds the pairs that are apart
and the pairs of leaves that overlap.

When boxes have moved a little, a traversal that starts at the front has little to do: pairs that
overlap are opened, and pairs that are apart and whose parents are apart too give way to their
parents. No pair occurs twice, and none is lost. All pairs below one that is apart are apart, since
boxes are nested, so each of them climbs to the same ancestor; the one that is the first child all
the way up stands for it. Between rotated frames rounding may contradict the nesting. There a pair
gives way only to an ancestor that is apart by more than the rounding bound, and looks for it beyond
the ancestors that are apart by less.

Oriented boxes and swept spheres are fitted to the corners below them and are not nested: two nodes
may overlap below two that are apart. So a pair gives way to the highest ancestor that is apart,
whether the pair and those between overlap or not; the pairs below an ancestor share its ancestors,
and so agree. Ancestors are looked for up to MOST_LEAVES, as every pair has to test all of them.
"""

from typing import Any

import warp as wp

from abut.bounds.obb import overlap_obb, unpack_obb
from abut.bounds.relative_frame import RelativeFrame
from abut.bounds.rss import overlap_rss, unpack_rss
from abut.bounds.separation_boxes import overlap_boxes, separation_boxes
from abut.bvh.layout import load_node
from abut.bvh.node_obbs import OBB_ROWS
from abut.core.pair_queue import pack_pair, unpack_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.posed_pairs import MeshPairs, ScenePairs

APART = wp.constant(wp.float32(3.0e38))
OVERLAPPING = wp.constant(wp.float32(-1.0))
MOST_LEAVES = wp.constant(64)  # below a pair of nodes that others give way to, without nested boxes


@wp.struct
class FrontRows:
    """Rows of posed pairs as fronts see them.

    A row keeps its front while its two hierarchies keep their topology, though its rank may change.
    A row is at rest when neither its boxes nor its poses have changed.
    """

    frames: wp.array[RelativeFrame]  # of each row
    leaf_ranges: wp.array[wp.vec2i]  # first and last leaf below each slot of all hierarchies
    ranks: wp.array[wp.int32]  # rank of each row of the last query in this one, -1: gone
    resting: wp.array[wp.int32]  # 1 for a row at rest
    slot_bits: wp.vec2i  # layout of keys of node pairs (rank, slot of a, slot of b)
    bits: wp.vec2i  # layout of keys of faces (rank, face of a, face of b)


@wp.struct
class TraversalTree:
    """The BVTT of one row. It is small, since CPU kernels copy structs often."""

    nodes_a: wp.array[wp.vec4f]
    nodes_b: wp.array[wp.vec4f]
    splits_a: wp.array[wp.int32]
    splits_b: wp.array[wp.int32]
    ranges_a: wp.array[wp.vec2i]
    ranges_b: wp.array[wp.vec2i]
    frames: wp.array[RelativeFrame]  # of this row alone
    within: wp.bool  # one hierarchy against itself: the first node lies left of the second
    rank: wp.int32
    slot_bits: wp.vec2i
    bits: wp.vec2i


@wp.struct
class VolumeTree:
    """The BVTT of one row whose nodes are oriented boxes or swept spheres (see node_obbs)."""

    nodes_a: wp.array[wp.vec4f]
    nodes_b: wp.array[wp.vec4f]
    splits_a: wp.array[wp.int32]
    splits_b: wp.array[wp.int32]
    ranges_a: wp.array[wp.vec2i]
    ranges_b: wp.array[wp.vec2i]
    frames: wp.array[RelativeFrame]
    within: wp.bool
    rank: wp.int32
    slot_bits: wp.vec2i
    bits: wp.vec2i
    swept: wp.bool  # swept spheres


@wp.func
def first_slots(pairs: MeshPairs, rank: wp.int32):
    """First slots of a and b in ``FrontRows.leaf_ranges``, which holds a and then b."""
    start_b = wp.where(pairs.sharing == SHARED_NONE, 2 * pairs.tree_a.leaf_slots.shape[0], 0)
    return wp.vec2i(0, start_b)


@wp.func
def first_slots(pairs: ScenePairs, rank: wp.int32):
    """First slots of a and b in ``FrontRows.leaf_ranges``: twice their first faces."""
    row = unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)
    face_a = pairs.bvhs.slices[pairs.mesh[row[1]]].first_face
    face_b = pairs.bvhs.slices[pairs.mesh[row[2]]].first_face
    return wp.vec2i(2 * face_a, 2 * face_b)


@wp.func
def node_key(tree: Any, x: wp.int32, y: wp.int32):
    """Key of a pair of slots."""
    return pack_pair(tree.rank, x, y, tree.slot_bits)


@wp.func
def faces_key(tree: Any, a: wp.int32, b: wp.int32):
    """Key of two faces; faces of one mesh in ascending order."""
    if tree.within:
        return pack_pair(tree.rank, wp.min(a, b), wp.max(a, b), tree.bits)
    return pack_pair(tree.rank, a, b, tree.bits)


@wp.func
def rows_of_slot(tree: TraversalTree):
    """Rows of a slot."""
    return 2


@wp.func
def rows_of_slot(tree: VolumeTree):
    """Rows of a slot."""
    return OBB_ROWS


@wp.func
def links_of_pair(tree: TraversalTree, x: wp.int32, y: wp.int32):
    """Links of two slots."""
    return wp.vec2i(
        wp.cast(tree.nodes_a[2 * x][3], wp.int32), wp.cast(tree.nodes_b[2 * y][3], wp.int32)
    )


@wp.func
def links_of_pair(tree: VolumeTree, x: wp.int32, y: wp.int32):
    """Links of two slots, which lie in their last rows."""
    last = OBB_ROWS - 1
    return wp.vec2i(
        wp.cast(tree.nodes_a[OBB_ROWS * x + last][3], wp.int32),
        wp.cast(tree.nodes_b[OBB_ROWS * y + last][3], wp.int32),
    )


@wp.func
def leaf_count_of(ranges: wp.array[wp.vec2i], slot: wp.int32):
    """Leaves below a slot, less one."""
    return ranges[slot][1] - ranges[slot][0]


@wp.func
def holds(outer: wp.vec2i, inner: wp.vec2i):
    """True when all leaves of one range are in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


@wp.func
def gap_between(tree: TraversalTree, x: wp.int32, y: wp.int32):
    """Gap between the boxes of two slots; not above 0 where they may overlap.

    Between frames that are not rotated it is APART or OVERLAPPING: nested boxes never contradict
    each other there.
    """
    if tree.within and x == y:
        return OVERLAPPING
    a = load_node(tree.nodes_a, x)
    b = load_node(tree.nodes_b, y)
    frame = tree.frames[0]
    if frame.rotated == 0:
        hit = overlap_boxes(frame, a.low, a.high, b.low, b.high)
        return wp.where(hit, OVERLAPPING, APART)
    return separation_boxes(frame, a.low, a.high, b.low, b.high)


@wp.func
def load_rows(rows: wp.array[wp.vec4f], slot: wp.int32):
    """The three rows of a volume."""
    at = OBB_ROWS * slot
    return wp.matrix_from_rows(rows[at], rows[at + 1], rows[at + 2])


@wp.func
def gap_between(tree: VolumeTree, x: wp.int32, y: wp.int32):
    """APART or OVERLAPPING, for the volumes of two slots."""
    if tree.within and x == y:
        return OVERLAPPING
    a = load_rows(tree.nodes_a, x)
    b = load_rows(tree.nodes_b, y)
    frame = tree.frames[0]
    if tree.swept:
        hit = overlap_rss(frame, unpack_rss(a[0], a[1], a[2]), unpack_rss(b[0], b[1], b[2]))
        return wp.where(hit, OVERLAPPING, APART)
    hit = overlap_obb(frame, unpack_obb(a[0], a[1], a[2]), unpack_obb(b[0], b[1], b[2]))
    return wp.where(hit, OVERLAPPING, APART)


@wp.func
def parent_of(tree: Any, x: wp.int32, y: wp.int32):
    """The pair that was opened to give (x, y); (-1, -1) for one that always overlaps, or none."""
    above_x = wp.int32(-1)
    above_y = wp.int32(-1)
    if x != tree.nodes_a.shape[0] / rows_of_slot(tree) - 1:
        above_x = tree.splits_a[x >> 1]
    if y != tree.nodes_b.shape[0] / rows_of_slot(tree) - 1:
        above_y = tree.splits_b[y >> 1]
    if tree.within:
        if above_x >= 0 and holds(tree.ranges_a[above_x], tree.ranges_a[y]):
            above_x = wp.int32(-1)
        if above_y >= 0 and holds(tree.ranges_a[above_y], tree.ranges_a[x]):
            above_y = wp.int32(-1)
    if above_x >= 0 and above_y >= 0:  # the one with fewer leaves was opened last
        if leaf_count_of(tree.ranges_a, above_x) < leaf_count_of(tree.ranges_b, above_y):
            above_y = wp.int32(-1)
        else:
            above_x = wp.int32(-1)
    if above_x >= 0:
        return wp.vec2i(above_x, y)
    if above_y >= 0:
        return wp.vec2i(x, above_y)
    return wp.vec2i(-1, -1)


@wp.func
def gives_way(tree: TraversalTree, overlaps: wp.bool):
    """Whether a pair looks for an ancestor that is apart."""
    return not overlaps


@wp.func
def gives_way(tree: VolumeTree, overlaps: wp.bool):
    """Whether a pair looks for an ancestor that is apart."""
    return True


@wp.func
def leads_below(above: wp.vec2i, at: wp.vec2i):
    """Whether a pair is the first below its parent."""
    return (wp.where(above[0] != at[0], at[0], at[1]) & 1) == 0


@wp.func
def highest_apart(tree: TraversalTree, x: wp.int32, y: wp.int32):
    """The pair to keep for a pair that is apart; (-1, -1) if another pair stands for it.

    It is the highest ancestor that is apart by twice the rounding bound, or the pair itself. All
    pairs below that ancestor find it: none of them overlaps, and no ancestor of an overlapping pair
    is apart by so much.
    """
    sure = wp.float32(2.0) * tree.frames[0].widen[0]
    out = wp.vec2i(x, y)
    at = wp.vec2i(x, y)
    leads = wp.bool(True)  # is the first child all the way up
    climbing = wp.bool(True)
    while climbing:
        above = parent_of(tree, at[0], at[1])
        climbing = above[0] >= 0
        if climbing:
            leads = leads and leads_below(above, at)
            at = above
            gap = gap_between(tree, at[0], at[1])
            climbing = gap > wp.float32(0.0)
            if climbing and gap > sure:
                out = wp.where(leads, at, wp.vec2i(-1, -1))
                climbing = leads
    return out


@wp.func
def highest_apart(tree: VolumeTree, x: wp.int32, y: wp.int32):
    """The highest ancestor that is apart, else the pair; (-1, -1) if another pair stands for it."""
    out = wp.vec2i(x, y)
    at = wp.vec2i(x, y)
    leads = wp.bool(True)
    climbing = wp.bool(True)
    while climbing:
        above = parent_of(tree, at[0], at[1])
        climbing = above[0] >= 0
        if climbing:
            leads = leads and leads_below(above, at)
            at = above
            leaves = leaf_count_of(tree.ranges_a, at[0]) + leaf_count_of(tree.ranges_b, at[1])
            climbing = leaves <= MOST_LEAVES
            if climbing and gap_between(tree, at[0], at[1]) > wp.float32(0.0):
                out = wp.where(leads, at, wp.vec2i(-1, -1))
    return out
