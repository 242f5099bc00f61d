"""The front of a traversal of two trees, or of one against itself: where the last one stopped.

The pairs of nodes that a traversal may visit form a tree themselves, the bounding volume traversal
tree (gProximity §4.1.2). It is fixed by the topology: of two nodes the one with more leaves below
is opened, the first of equal ones. A front is a cut through it; it holds the pairs that did not
overlap and the pairs of leaves that did. When boxes have moved a little, a walk that starts at the
front has little to do: pairs that overlap now are opened, pairs that are apart and whose parents
are apart too give way to their parents.

No pair occurs twice, and none is lost. All pairs below one that is apart are apart (boxes are
nested), so each of them climbs to the same ancestor; the one that is the first child all the way up
stands for it. Between frames turned against each other rounding might tell parent and child apart
from one another: there a pair gives way only to an ancestor that is apart by more than rounding can
amount to, and looks for it beyond those that are apart by less.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bounds.separation_boxes import overlap_boxes, separation_boxes
from abut.bvh.layout import face_of, link_of, load_node
from abut.core.pair_queue import PairQueue, pack_pair, push_all_pairs, queue_stop, unpack_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(128)
HELD = wp.constant(32)  # pairs kept at hand before room is asked for
FULL = wp.constant(29)  # an opened pair leaves three at most
WIDE = wp.constant(40)  # pairs that may be opened breadth first, on the stack
APART = wp.constant(wp.float32(3.0e38))
OVERLAPPING = wp.constant(wp.float32(-1.0))


@wp.struct
class Front:
    """Two trees (or twice the same) with the leaves below their slots; as little as may be of them.

    A kernel on the CPU copies it more often than one would think.
    """

    nodes_a: wp.array[wp.vec4f]
    nodes_b: wp.array[wp.vec4f]
    splits_a: wp.array[wp.int32]
    splits_b: wp.array[wp.int32]
    ranges_a: wp.array[wp.vec2i]
    ranges_b: wp.array[wp.vec2i]
    frames: wp.array[RelativeFrame]
    within: wp.bool  # one tree against itself: the first node lies left of the second
    number: wp.int32  # of the front among others, the first part of keys
    slot_bits: wp.vec2i  # layout of keys of nodes
    bits: wp.vec2i  # layout of keys of faces


@wp.struct
class Moved:
    """Where a front goes: pairs that are done with, those yet to be opened, faces to be tested."""

    kept: PairQueue
    left: PairQueue
    found: PairQueue


@wp.func
def node_key(front: Front, x: wp.int32, y: wp.int32):
    """The key of a pair of slots."""
    return pack_pair(front.number, x, y, front.slot_bits)


@wp.func
def root_slot(nodes: wp.array[wp.vec4f]):
    """Slot of the root of a tree."""
    return nodes.shape[0] / 2 - 1


@wp.func
def size_of(ranges: wp.array[wp.vec2i], slot: wp.int32):
    """Leaves below a slot, less one."""
    return ranges[slot][1] - ranges[slot][0]


@wp.func
def holds(outer: wp.vec2i, inner: wp.vec2i):
    """Whether all leaves of one range are in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


@wp.func
def gap_between(front: Front, x: wp.int32, y: wp.int32):
    """How far apart the boxes of two slots are; not above 0 where they may overlap.

    Where frames are not turned it only says which: there nested boxes never contradict each other.
    """
    if front.within and x == y:
        return OVERLAPPING
    a = load_node(front.nodes_a, x)
    b = load_node(front.nodes_b, y)
    frame = front.frames[0]
    if frame.rotated == 0:
        hit = overlap_boxes(frame, a.low, a.high, b.low, b.high)
        return wp.where(hit, OVERLAPPING, APART)
    return separation_boxes(frame, a.low, a.high, b.low, b.high)


@wp.func
def parent_of(front: Front, x: wp.int32, y: wp.int32):
    """The pair that was opened to give (x, y); (-1, -1) for one that always overlaps, or none."""
    above_x = wp.int32(-1)
    above_y = wp.int32(-1)
    if x != root_slot(front.nodes_a):
        above_x = front.splits_a[x >> 1]
    if y != root_slot(front.nodes_b):
        above_y = front.splits_b[y >> 1]
    if front.within:
        if above_x >= 0 and holds(front.ranges_a[above_x], front.ranges_a[y]):
            above_x = wp.int32(-1)
        if above_y >= 0 and holds(front.ranges_a[above_y], front.ranges_a[x]):
            above_y = wp.int32(-1)
    if above_x >= 0 and above_y >= 0:  # the one with fewer leaves was opened last
        if size_of(front.ranges_a, above_x) < size_of(front.ranges_b, above_y):
            above_y = wp.int32(-1)
        else:
            above_x = wp.int32(-1)
    if above_x >= 0:
        return wp.vec2i(above_x, y)
    if above_y >= 0:
        return wp.vec2i(x, above_y)
    return wp.vec2i(-1, -1)


@wp.func
def highest_apart(front: Front, x: wp.int32, y: wp.int32):
    """The highest pair above one, or itself, to be kept for it; (-1, -1) if another stands for it.

    That is the highest ancestor that is apart by twice what rounding is bounded by. All below it
    find it: below, no pair overlaps; above one that overlaps, none is apart by so much.
    """
    sure = wp.float32(2.0) * front.frames[0].widen[0]
    out = wp.vec2i(x, y)
    at = wp.vec2i(x, y)
    leads = wp.bool(True)  # is the first child all the way up
    climbing = wp.bool(True)
    while climbing:
        above = parent_of(front, at[0], at[1])
        climbing = above[0] >= 0
        if climbing:
            leads = leads and (wp.where(above[0] != at[0], at[0], at[1]) & 1) == 0
            at = above
            gap = gap_between(front, at[0], at[1])
            climbing = gap > wp.float32(0.0)
            if climbing and gap > sure:
                out = wp.where(leads, at, wp.vec2i(-1, -1))
                climbing = leads
    return out


@wp.func
def put_pair(
    front: Front,
    x: wp.int32,
    y: wp.int32,
    at: wp.vec3i,
    stack: wp.array[wp.int64],
    kept: wp.array[wp.int64],
):
    """Put a pair on the stack if its boxes overlap, else among those kept; ``at`` counts both."""
    hit = wp.int32(not (gap_between(front, x, y) > wp.float32(0.0)))
    stack[at[0]] = node_key(front, x, y)
    kept[at[1]] = node_key(front, x, y)
    return wp.vec3i(at[0] + hit, at[1] + 1 - hit, at[2])


@wp.func
def open_pair(
    front: Front,
    x: wp.int32,
    y: wp.int32,
    links: wp.vec2i,
    at: wp.vec3i,
    stack: wp.array[wp.int64],
    kept: wp.array[wp.int64],
):
    """Put the pairs below one on the stack or among those kept: two, or three of a node and itself.

    ``links`` are those of x and y.
    """
    same = front.within and x == y
    opens_x = size_of(front.ranges_a, x) >= size_of(front.ranges_b, y)
    k = wp.where(same, 0, 1)
    while k < 3:  # not unrolled: a test across frames is long
        child = wp.vec2i(x, 2 * links[1] + k - 1)
        if same:  # left and right, left and left, right and right
            left = 2 * links[0]
            child = wp.where(k == 0, wp.vec2i(left, left + 1), wp.vec2i(left + k - 1))
        elif opens_x:
            child = wp.vec2i(2 * links[0] + k - 1, y)
        at = put_pair(front, child[0], child[1], at, stack, kept)
        k += 1
    return at


@wp.func
def faces_key(front: Front, a: wp.int32, b: wp.int32):
    """The key of two faces; of one tree in ascending order."""
    if front.within:
        return pack_pair(front.number, wp.min(a, b), wp.max(a, b), front.bits)
    return pack_pair(front.number, a, b, front.bits)


@wp.func
def flush_full(
    at: wp.vec3i, kept: wp.array[wp.int64], found: wp.array[wp.int64], least: wp.int32, moved: Moved
):
    """Append what was held back once it is at least so much."""
    out = at
    if at[1] >= least:
        push_all_pairs(moved.kept, kept, 0, at[1])
        out[1] = 0
    if at[2] >= least:
        push_all_pairs(moved.found, found, 0, at[2])
        out[2] = 0
    return out


@wp.func
def advance_pair(
    front: Front,
    start: wp.vec2i,
    most: wp.int32,
    climb: wp.bool,
    at: wp.vec3i,
    stack: wp.array[wp.int64],
    kept: wp.array[wp.int64],
    found: wp.array[wp.int64],
    moved: Moved,
):
    """Move a pair of a front up or down, opening at most ``most`` pairs.

    Pairs of leaves that overlap are to be tested. Pairs move up only with ``climb``. ``at`` counts
    the pairs on the stack, which begins and ends empty, and those held back. Up to WIDE pairs are
    opened breadth first: what is left are many of one size, a share for everybody.
    """
    at = put_pair(front, start[0], start[1], at, stack, kept)
    if at[0] == 0 and climb:
        high = highest_apart(front, start[0], start[1])
        kept[at[1] - 1] = node_key(front, high[0], high[1])
        at[1] = at[1] - wp.int32(high[0] < 0)
    opened = wp.int32(0)
    head = wp.int32(0)
    while at[0] > head:
        if opened == most:
            push_all_pairs(moved.left, stack, head, at[0])
            at[0] = head
            continue
        if most > WIDE:
            at[0] = at[0] - 1
            key = stack[at[0]]
        else:
            key = stack[head]
            head += 1
        row = unpack_pair(key, front.slot_bits)
        a = load_node(front.nodes_a, row[1])
        b = load_node(front.nodes_b, row[2])
        links = wp.vec2i(link_of(a), link_of(b))
        if wp.max(links) >= 0:
            opened += 1
            at = open_pair(front, row[1], row[2], links, at, stack, kept)
        elif not (front.within and row[1] == row[2]):
            kept[at[1]] = node_key(front, row[1], row[2])
            found[at[2]] = faces_key(front, face_of(a), face_of(b))
            at = wp.vec3i(at[0], at[1] + 1, at[2] + 1)
        at = flush_full(at, kept, found, FULL, moved)
    at[0] = 0
    return flush_full(at, kept, found, FULL, moved)


@wp.kernel
def advance_kernel(
    # in
    span: wp.vec3i,
    front: Front,
    last: PairQueue,
    most: wp.int32,
    climb: wp.bool,
    # out
    moved_out: Moved,
):
    """Move each pair of a front; what is not yet opened stays for another round."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.int64)
    kept = wp.zeros(shape=(HELD,), dtype=wp.int64)
    found = wp.zeros(shape=(HELD,), dtype=wp.int64)
    at = wp.vec3i(0, 0, 0)
    for i in range(span[0] + wp.tid(), queue_stop(last, span[1]), span[2]):
        row = unpack_pair(last.keys[i], front.slot_bits)
        start = wp.vec2i(row[1], row[2])
        at = advance_pair(front, start, most, climb, at, stack, kept, found, moved_out)
    flush_full(at, kept, found, 1, moved_out)
