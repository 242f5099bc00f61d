"""Sort candidate pairs into hits, misses and the undecided few, by the floating-point filter."""

from typing import Any

import warp as wp

from abut.faces import Faces, load_face
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.pairs import PairQueue, pack_pair, push_pair, queue_stop, unpack_pair
from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def classify_pair(
    a: Faces, b: Faces, pose: wp.int32, face_a: wp.int32, face_b: wp.int32, relation: wp.int32
):
    """MISS, HIT or UNDECIDED for a pair of faces."""
    tri_a = load_face(a, face_a, pose)
    tri_b = load_face(b, face_b, pose)
    return classify_tri_tri(tri_a, tri_b, relation, a.faces[face_a], b.faces[face_b])


@wp.kernel
def classify_kernel(
    # in
    span: wp.vec3i,
    a: Faces,
    b: Faces,
    relation: wp.int32,
    bits: wp.vec2i,
    candidates: PairQueue,
    # out
    hits_out: PairQueue,
    undecided_out: PairQueue,
):
    """Filter the pairs of a queue."""
    for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
        key = candidates.keys[i]
        row = unpack_pair(key, bits)
        verdict = classify_pair(a, b, row[0], row[1], row[2], relation)
        if verdict == HIT:
            push_pair(hits_out, key)
        elif verdict != MISS:
            push_pair(undecided_out, key)


@wp.kernel
def brute_kernel(
    # in
    span: wp.vec3i,
    a: Faces,
    b: Faces,
    relation: wp.int32,
    bits: wp.vec2i,
    # out
    hits_out: PairQueue,
    undecided_out: PairQueue,
):
    """Filter every pair, for each (pose, face of a)."""
    count_a = a.faces.shape[0]
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count_a
        face_a = work - pose * count_a
        start = wp.int32(0)
        if relation != 0:
            start = face_a + 1
        for face_b in range(start, b.faces.shape[0]):
            verdict = classify_pair(a, b, pose, face_a, face_b, relation)
            key = pack_pair(pose, face_a, face_b, bits)
            if verdict == HIT:
                push_pair(hits_out, key)
            elif verdict != MISS:
                push_pair(undecided_out, key)


def classify_queue(
    a: Faces,
    b: Faces,
    relation: int,
    bits: Any,
    candidates: Any,
    count: int,
    hits: Any,
    undecided: Any,
) -> None:
    """Move candidates, at most the first ``count``, to the hits and the undecided."""
    args = [a, b, relation, bits, candidates, hits, undecided]
    launch(classify_kernel, count, args, a.points.device)


def classify_every_pair(
    a: Faces, b: Faces, relation: int, bits: Any, pose_count: int, hits: Any, undecided: Any
) -> None:
    """Put every pair, for each pose, among the hits, the undecided, or nowhere."""
    count = pose_count * a.faces.shape[0]
    launch(brute_kernel, count, [a, b, relation, bits, hits, undecided], a.points.device, grain=1)
