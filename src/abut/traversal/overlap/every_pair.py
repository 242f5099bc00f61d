"""Every pair there is: the candidates of brute force."""

import warp as wp

from abut.core.atomics import atomic_add_aggregated
from abut.core.pair_queue import PairQueue, pack_pair, store_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def every_pair_kernel(
    # in
    span: wp.vec3i,
    count_b: wp.int32,
    half: wp.bool,
    bits: wp.vec2i,
    # out
    candidates_out: PairQueue,
):
    """List all pairs of each item of a; with ``half``, with the later ones alone."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        start = wp.where(half, i + 1, 0)
        place = atomic_add_aggregated(candidates_out.count, wp.max(count_b - start, 0))
        for j in range(start, count_b):
            store_pair(candidates_out, place + wp.int64(j - start), pack_pair(0, i, j, bits))
