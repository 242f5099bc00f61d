"""Sort candidate pairs into hits, misses and the undecided few, by the floating-point filter."""

import warp as wp

from abut.core.pair_queue import PairQueue, queue_stop, unpack_pair
from abut.operands.contact_operands import Search, first_other, test_faces

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def classify_kernel(
    # in
    span: wp.vec3i,
    search: Search,
    candidates: PairQueue,
):
    """Filter the pairs of a queue."""
    for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
        row = unpack_pair(candidates.keys[i], search.bits)
        test_faces(search, row[0], row[1], row[2])


@wp.kernel
def brute_kernel(
    # in
    span: wp.vec3i,
    search: Search,
):
    """Filter every pair, for each (pose, face of a)."""
    count_a = search.a.faces.shape[0]
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count_a
        face_a = work - pose * count_a
        for face_b in range(first_other(search, face_a), search.b.faces.shape[0]):
            test_faces(search, pose, face_a, face_b)
