"""Filter candidate pairs of faces into those that meet, those that do not, and the undecided."""

from functools import cache

import warp as wp

from abut.core.pair_queue import PairQueue, queue_stop, unpack_pair
from abut.operands.contact_queues import ContactQueues, first_other, test_faces
from abut.operands.posed_pairs import PosedPair, WorkItems, item_stop, pair_at, row_and_item

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@cache
def filter_kernel_for(pairs_type: type, in_sequence: bool) -> wp.Kernel:
    """The kernel that filters a queue of candidates, for a type of posed pairs.

    Args:
        pairs_type: MeshPairs or ScenePairs.
        in_sequence: A thread takes candidates in sequence, as on the CPU, and reads a row once for
            all that follow each other. CUDA threads take scattered ones and keep fewer registers.
    """

    # At most 128 registers: two blocks of 256 threads at a time.
    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False},
        cuda_max_registers=128,
    )
    def filter_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        candidates: PairQueue,
        # out
        queues_out: ContactQueues,
    ):
        """Filter the pairs of a queue."""
        rank = wp.int32(-1)
        pair = PosedPair()
        for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
            key = unpack_pair(candidates.keys[i], queues_out.bits)
            if wp.static(not in_sequence):
                pair = pair_at(pairs, key[0])
            elif key[0] != rank:
                rank = key[0]
                pair = pair_at(pairs, rank)
            test_faces(pair.a, pair.b, pair.pose, pair.sharing, queues_out, key[0], key[1], key[2])

    return filter_kernel


@cache
def brute_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel that filters every pair of faces, for a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def brute_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        items: WorkItems,
        # out
        queues_out: ContactQueues,
    ):
        """Filter every pair of faces, for each (row, face of a)."""
        for work in range(span[0] + wp.tid(), item_stop(items, span[1]), span[2]):
            at = row_and_item(items, work)
            pair = pair_at(pairs, at[0])
            for face_b in range(first_other(pair, at[1]), pair.b.faces.shape[0]):
                test_faces(
                    pair.a, pair.b, pair.pose, pair.sharing, queues_out, at[0], at[1], face_b
                )

    return brute_kernel
