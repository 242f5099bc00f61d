"""Parcels: pairs of nodes that teams leave to the next pass of a search.

A row may cost a thousand times what another costs. So a team works on an item for some rounds only
and hands on what it has not opened by then, in parcels of a row each. All teams share the parcels
of a pass in the next one. The last pass has no limit.
"""

import warp as wp

from abut.core.lanes import lane_count, lane_index, warp_sync
from abut.core.team import load_triple, store_triple
from abut.traversal.distance.node_pool import POOL, NodePool

SIZE = 32
PARCEL = wp.constant(SIZE)  # pairs, at most
NO_LIMIT = -1  # of rounds


@wp.struct
class Parcels:
    """The parcels of a pass. Without room, all pairs stay with their teams."""

    count: wp.array[wp.int32]  # one number; more than the room where that was too small
    heads: wp.array[wp.vec2i]  # row and number of pairs
    pairs: wp.array[wp.vec3i]  # entries of a pool, PARCEL for each


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int before = 0;
    if ((threadIdx.x & 31) == 0) before = atomicAdd(count.data, amount);
    return __shfl_sync(0xffffffffu, before, 0);
#else
    return 0;
#endif
""")
def reserve(count: wp.array[wp.int32], amount: wp.int32) -> wp.int32:
    """Add to a count once per warp; all lanes get the value before. CUDA only."""
    ...


@wp.func
def load_parcel(triples: wp.uint64, parcels: Parcels, index: wp.int32):
    """Return a pool with the pairs of a parcel, the nearest on top."""
    pool = NodePool()
    pool.near = parcels.heads[index][1]
    for k in range(lane_index(), pool.near, lane_count()):
        store_triple(triples, pool.near - 1 - k, parcels.pairs[index * PARCEL + k])
    warp_sync()
    return pool


@wp.func
def hand_on(triples: wp.uint64, pool: NodePool, rank: wp.int32, parcels: Parcels):
    """Leave the pairs of a pool to the next pass; returns whether there was room.

    Pairs are dealt out like cards, so that each parcel has its share of the nearest.
    """
    pair_count = pool.near + pool.far + pool.faces
    parcel_count = (pair_count + PARCEL - 1) / PARCEL
    first = reserve(parcels.count, parcel_count)
    room = parcels.heads.shape[0]
    fits = first + parcel_count <= room
    for k in range(lane_index(), wp.min(parcel_count, room - first), lane_count()):
        size = wp.where(fits, (pair_count - k + parcel_count - 1) / parcel_count, 0)
        parcels.heads[first + k] = wp.vec2i(rank, size)
    if fits:
        for k in range(lane_index(), pair_count, lane_count()):
            slot = pool.near - 1 - k
            if k >= pool.near:
                slot = POOL + k - pool.near
            if k >= pool.near + pool.faces:
                slot = POOL - 1 - (k - pool.near - pool.faces)
            at = (first + k % parcel_count) * PARCEL + k / parcel_count
            parcels.pairs[at] = load_triple(triples, slot)
    warp_sync()
    return fits
