"""SpillQueue: pairs of nodes that teams leave to the next pass of a search.

A row may cost a thousand times as much as another. So a team works on an item for a limited number
of rounds and spills the pairs that it has not opened by then, in chunks of one row each. In the
next pass all teams share the chunks. The last pass has no limit.
"""

import warp as wp

from abut.core.atomics import warp_atomic_add_int32
from abut.core.lanes import lane_count, lane_index, warp_sync
from abut.core.team import load_triple, store_triple
from abut.traversal.distance.node_pool import POOL, NodePool

CHUNK_SIZE = 32
CHUNK = wp.constant(CHUNK_SIZE)  # pairs, at most
NO_LIMIT = -1  # of rounds


@wp.struct
class SpillQueue:
    """The chunks of a pass. Pairs for which there is no room stay with their team."""

    count: wp.array[wp.int32]  # one number; more than the room where that was too small
    heads: wp.array[wp.vec2i]  # row and number of pairs
    pairs: wp.array[wp.vec3i]  # entries of a pool, CHUNK for each


@wp.func
def load_chunk(triples: wp.uint64, queue: SpillQueue, index: wp.int32):
    """Return a pool with the pairs of a chunk, the nearest on top."""
    pool = NodePool()
    pool.near = queue.heads[index][1]
    for k in range(lane_index(), pool.near, lane_count()):
        store_triple(triples, pool.near - 1 - k, queue.pairs[index * CHUNK + k])
    warp_sync()
    return pool


@wp.func
def spill_pairs(triples: wp.uint64, pool: NodePool, rank: wp.int32, queue: SpillQueue):
    """Leave the pairs of a pool to the next pass; returns whether there was room.

    Pair k goes to chunk k modulo the number of chunks, so that each gets some of the nearest.
    """
    pair_count = pool.near + pool.far + pool.faces
    chunk_count = (pair_count + CHUNK - 1) / CHUNK
    first = warp_atomic_add_int32(queue.count, chunk_count)
    room = queue.heads.shape[0]
    fits = first + chunk_count <= room
    for k in range(lane_index(), wp.min(chunk_count, room - first), lane_count()):
        size = wp.where(fits, (pair_count - k + chunk_count - 1) / chunk_count, 0)
        queue.heads[first + k] = wp.vec2i(rank, size)
    if fits:
        for k in range(lane_index(), pair_count, lane_count()):
            slot = pool.near - 1 - k
            if k >= pool.near:
                slot = POOL + k - pool.near
            if k >= pool.near + pool.faces:
                slot = POOL - 1 - (k - pool.near - pool.faces)
            at = (first + k % chunk_count) * CHUNK + k / chunk_count
            queue.pairs[at] = load_triple(triples, slot)
    warp_sync()
    return fits
