"""The front of a traversal of two trees, or of one against itself: where the last one stopped.

The pairs of nodes that a traversal may visit form a tree themselves, the bounding volume traversal
tree (gProximity §4.1.2). It is fixed by the topology: of two nodes the one with more leaves below
is opened, the first of equal ones. A front is a cut through it; it holds the pairs that did not
overlap and the pairs of leaves that did. When boxes have moved a little, a walk that starts at the
front has little to do: pairs that overlap now are opened, pairs that are apart and whose parents
are apart too give way to their parents.

No pair occurs twice. All pairs below one that is apart are apart (boxes are nested), so each of
them climbs to the same ancestor; the one that is the first child all the way up stands for it.
"""

import warp as wp

from abut.atomics import reserve
from abut.bounds.relative import Relative
from abut.bounds.separation_across import overlap_across
from abut.hierarchy.tree import TreeView, face_of, link_of, load_node, root_of
from abut.pairs import PairQueue, pack_pair, queue_stop, store_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(128)
HELD = wp.constant(32)  # pairs kept at hand before room is asked for
FULL = wp.constant(29)  # an opened pair leaves three at most


@wp.struct
class Front:
    """Two trees (or twice the same) with the leaves below their slots."""

    tree_a: TreeView
    tree_b: TreeView
    ranges_a: wp.array[wp.vec2i]
    ranges_b: wp.array[wp.vec2i]
    frames: wp.array[Relative]
    within: wp.bool  # one tree against itself: the first node lies left of the second


@wp.func
def pair_of(x: wp.int32, y: wp.int32):
    """A pair of slots as one word."""
    return (wp.int64(x) << wp.int64(32)) | wp.int64(y)


@wp.func
def slots_of(pair: wp.int64):
    """The slots of a pair."""
    return wp.vec2i(wp.int32(pair >> wp.int64(32)), wp.int32(pair & wp.int64(0x7FFFFFFF)))


@wp.func
def size_of(ranges: wp.array[wp.vec2i], slot: wp.int32):
    """Leaves below a slot, less one."""
    return ranges[slot][1] - ranges[slot][0]


@wp.func
def holds(outer: wp.vec2i, inner: wp.vec2i):
    """Whether all leaves of one range are in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


@wp.func
def overlapping(front: Front, x: wp.int32, y: wp.int32):
    """May the boxes of two slots overlap? A node and itself do."""
    if front.within and x == y:
        return True
    a = load_node(front.tree_a.nodes, x)
    b = load_node(front.tree_b.nodes, y)
    return overlap_across(front.frames[0], a.low, a.high, b.low, b.high)


@wp.func
def parent_of(front: Front, x: wp.int32, y: wp.int32):
    """The pair that was opened to give (x, y); (-1, -1) for one that always overlaps, or none."""
    above_x = wp.int32(-1)
    above_y = wp.int32(-1)
    if x != root_of(front.tree_a):
        above_x = front.tree_a.split_slots[x >> 1]
    if y != root_of(front.tree_b):
        above_y = front.tree_b.split_slots[y >> 1]
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
    """The highest ancestor of a pair that is apart; (-1, -1) if another stands for it."""
    out = wp.vec2i(x, y)
    climbing = wp.bool(True)
    while climbing:
        above = parent_of(front, out[0], out[1])
        climbing = False
        if above[0] >= 0:
            if not overlapping(front, above[0], above[1]):
                opened = wp.where(above[0] != out[0], out[0], out[1])
                climbing = (opened & 1) == 0
                out = wp.where(climbing, above, wp.vec2i(-1, -1))
    return out


@wp.func
def flush(pairs: wp.array[wp.int64], count: wp.int32, queue: PairQueue):
    """Append pairs that were held back."""
    place = reserve(queue.count, count)
    for i in range(count):
        store_pair(queue, place + wp.int64(i), pairs[i])


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
    hit = wp.int32(overlapping(front, x, y))
    stack[at[0]] = pair_of(x, y)
    kept[at[1]] = pair_of(x, y)
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
def faces_key(front: Front, a: wp.int32, b: wp.int32, bits: wp.vec2i):
    """The key of two faces; of one tree in ascending order."""
    key = pack_pair(0, a, b, bits)
    if front.within:
        key = pack_pair(0, wp.min(a, b), wp.max(a, b), bits)
    return key


@wp.func
def flush_full(
    at: wp.vec3i,
    kept: wp.array[wp.int64],
    found: wp.array[wp.int64],
    kept_queue: PairQueue,
    found_queue: PairQueue,
):
    """Append what was held back once it fills its room."""
    out = at
    if at[1] >= FULL:
        flush(kept, at[1], kept_queue)
        out[1] = 0
    if at[2] >= FULL:
        flush(found, at[2], found_queue)
        out[2] = 0
    return out


@wp.kernel
def advance_kernel(
    # in
    span: wp.vec3i,
    front: Front,
    last: PairQueue,
    most: wp.int32,
    climb: wp.bool,
    bits: wp.vec2i,
    # out
    next_out: PairQueue,
    candidates_out: PairQueue,
):
    """Move each pair of a front up or down, opening at most ``most`` pairs for each.

    Pairs of leaves that overlap are candidates. Pairs move up only with ``climb``. What is not
    yet opened stays for another round, which the host asks for while ``most`` is small.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.int64)
    kept = wp.zeros(shape=(HELD,), dtype=wp.int64)
    found = wp.zeros(shape=(HELD,), dtype=wp.int64)
    at = wp.vec3i(0, 0, 0)  # pairs on the stack, kept, found
    for i in range(span[0] + wp.tid(), queue_stop(last, span[1]), span[2]):
        start = slots_of(last.keys[i])
        at = put_pair(front, start[0], start[1], at, stack, kept)
        if at[0] == 0 and climb:
            high = highest_apart(front, start[0], start[1])
            kept[at[1] - 1] = pair_of(high[0], high[1])
            at[1] = at[1] - wp.int32(high[0] < 0)
        opened = wp.int32(0)
        while at[0] > 0:
            at[0] = at[0] - 1
            pair = stack[at[0]]
            slots = slots_of(pair)
            a = load_node(front.tree_a.nodes, slots[0])
            b = load_node(front.tree_b.nodes, slots[1])
            links = wp.vec2i(link_of(a), link_of(b))
            leaves = wp.max(links) < 0
            if leaves or opened >= most:
                if not (leaves and front.within and slots[0] == slots[1]):
                    kept[at[1]] = pair
                    found[at[2]] = faces_key(front, face_of(a), face_of(b), bits)
                    at = wp.vec3i(at[0], at[1] + 1, at[2] + wp.int32(leaves))
            else:
                opened += 1
                at = open_pair(front, slots[0], slots[1], links, at, stack, kept)
            at = flush_full(at, kept, found, next_out, candidates_out)
        at = flush_full(at, kept, found, next_out, candidates_out)
    flush(kept, at[1], next_out)
    flush(found, at[2], candidates_out)
