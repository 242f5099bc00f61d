"""NodePool: the pairs of nodes that a team has yet to open, nearest ones first.

An entry is a pair of ends (see gaps_boxes) and the square of a lower bound of their distance.
Pairs within ``reach`` lie on a stack, the next one on top; farther ones wait in a list. When the
stack is empty, the reach grows by a share of what separates the nearest waiting pair from the
limit. So pairs are opened almost in the order of their bounds, without a priority queue. Both parts
share the entries of the team: the stack grows upwards, the list downwards. Pairs of faces wait in a
queue of their own, until there is one for many lanes.
"""

import warp as wp

from abut.bounds.gaps_boxes import OpenedPairs
from abut.core.lanes import (
    WARP_SIZE,
    lane_count,
    lane_index,
    warp_count,
    warp_min_float32,
    warp_rank,
    warp_scan,
    warp_sync,
)
from abut.core.team import TRIPLES, load_triple, store_triple
from abut.traversal.overlap.node_pairs import STACK, farthest_first

FACE_PAIRS = 16  # that lanes compare together, at least
MOST_CANDIDATES = wp.constant(64)  # pairs of faces that may be the answer, in the last entries
FIRST_CANDIDATE = wp.constant(int(TRIPLES) - int(MOST_CANDIDATES))
POOL = wp.constant(int(FIRST_CANDIDATE) - FACE_PAIRS - WARP_SIZE)  # node pairs; faces follow
# While fewer than STACK entries are free, one lane alone opens pairs, depth first.
POOL_ROOM = wp.constant(int(POOL) - int(STACK))
SHARE = wp.constant(wp.float32(0.125))
HIGHEST = wp.constant(wp.float32(3.0e38))
NO_PAIR = wp.constant(-1082130432)  # bits of a gap of -1
INDEX_BITS = wp.constant(3)  # of a gap that ``farthest_first`` has sorted


@wp.struct
class NodePool:
    """Counts of a team's pairs; the entries are in the memory of the team."""

    near: wp.int32  # on the stack
    far: wp.int32  # in the list
    faces: wp.int32  # pairs of faces
    reach: wp.float32  # squared gap up to which pairs go on the stack


@wp.func
def start_pool(triples: wp.uint64, first: wp.vec3i):
    """Return a pool that holds one pair, or none where its gap is not 0."""
    pool = NodePool()
    pool.near = wp.int32(first[2] == 0)
    if lane_index() == 0:
        store_triple(triples, 0, first)
    warp_sync()
    return pool


@wp.func
def no_pairs():
    """Return what opens to no pairs at all."""
    out = OpenedPairs()
    for k in range(8, 12):
        out[k] = NO_PAIR
    return out


@wp.func
def opening_lanes(pool: NodePool):
    """Return how many lanes may take a pair: each may leave three more behind."""
    room = POOL_ROOM - pool.near - pool.far
    return wp.min(wp.min(pool.near, lane_count()), wp.max(1, room / 3))


@wp.func_native("""
    const int step = (place & 3), a = step & 2 ? (step & 1 ? opened.c[3] : opened.c[2])
                                               : (step & 1 ? opened.c[1] : opened.c[0]);
    const int b = step & 2 ? (step & 1 ? opened.c[7] : opened.c[6])
                           : (step & 1 ? opened.c[5] : opened.c[4]);
    return wp::vec_t<3, wp::int32>(a, b, place & ~3);
""")
def opened_entry(opened: OpenedPairs, place: wp.int32) -> wp.vec3i:
    """Return the entry of a gap whose two lowest bits hold the index of its pair."""
    ...


@wp.func
def push_opened(
    triples: wp.uint64, pool: NodePool, taken: wp.int32, opened: OpenedPairs, limit: wp.float32
):
    """Add the pairs of ``taken`` lanes that are within a limit.

    On the stack the pairs of the first lane come to lie on top, and of each lane the nearest.
    """
    out = pool
    crowded = pool.near + pool.far + 4 * taken > POOL_ROOM
    gaps = farthest_first(
        wp.vec4f(
            wp.cast(opened[8], wp.float32),
            wp.cast(opened[9], wp.float32),
            wp.cast(opened[10], wp.float32),
            wp.cast(opened[11], wp.float32),
        )
    )
    counts = wp.int32(0)  # of far pairs in the high half
    for k in range(4):
        gap = wp.cast(wp.cast(gaps[k], wp.int32) & ~INDEX_BITS, wp.float32)
        if gap >= wp.float32(0.0) and not (gap > limit):
            counts += wp.where(crowded or not (gap > pool.reach), 1, 1 << 16)
    sums = warp_scan(counts)
    near = pool.near + (sums[1] & 0xFFFF) - (sums[0] & 0xFFFF) - (counts & 0xFFFF)
    far = POOL - 1 - pool.far - (sums[0] >> 16)
    for k in range(4):
        entry = opened_entry(opened, wp.cast(gaps[k], wp.int32))
        gap = wp.cast(entry[2], wp.float32)
        if gap >= wp.float32(0.0) and not (gap > limit):
            if crowded or not (gap > pool.reach):
                store_triple(triples, near, entry)
                near += 1
            else:
                store_triple(triples, far, entry)
                far -= 1
    warp_sync()
    out.near += sums[1] & 0xFFFF
    out.far += sums[1] >> 16
    return out


@wp.func
def push_faces(triples: wp.uint64, pool: NodePool, wanted: wp.bool, entry: wp.vec3i):
    """Add the pairs of faces of all lanes with ``wanted``."""
    out = pool
    place = POOL + pool.faces + warp_rank(wanted)
    if wanted:
        store_triple(triples, place, entry)
    out.faces += warp_count(wanted)
    warp_sync()
    return out


@wp.func
def extend_reach(triples: wp.uint64, pool: NodePool, limit: wp.float32):
    """Let the reach of a pool with an empty stack grow; pairs beyond the limit are dropped."""
    out = pool
    lane = lane_index()
    low = wp.float32(HIGHEST)
    for k in range(lane, pool.far, lane_count()):
        low = wp.min(low, wp.cast(load_triple(triples, POOL - 1 - k)[2], wp.float32))
    low = warp_min_float32(low)
    out.reach = low + (limit - low) * SHARE
    out.far = 0
    first = wp.int32(0)
    while first < pool.far:
        entry = wp.vec3i()
        gap = wp.float32(wp.inf)
        if first + lane < pool.far:
            entry = load_triple(triples, POOL - 1 - first - lane)
            gap = wp.cast(entry[2], wp.float32)
        within = first + lane < pool.far and not (gap > limit)
        # the stack must not grow over entries that are still to be read
        near = within and not (gap > out.reach) and out.near + lane_count() <= POOL - pool.far
        far = within and not near
        place = wp.where(near, out.near + warp_rank(near), POOL - 1 - out.far - warp_rank(far))
        warp_sync()
        if within:
            store_triple(triples, place, entry)
        out.near += warp_count(near)
        out.far += warp_count(far)
        warp_sync()
        first += lane_count()
    return out
