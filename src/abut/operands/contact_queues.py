"""Contact queues: the queues of a contact query, and the filter that fills them."""

from typing import Any

import warp as wp

from abut.core.pair_queue import KeyLayout, PairQueue, PairQueues, pack_pair, push_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.operands.posed_pairs import PosedPair


@wp.struct
class ContactQueues:
    """Keys (row, face of a, face of b) of pairs that meet, and of pairs for the exact stage."""

    bits: wp.vec2i  # layout of keys
    hits: PairQueue
    undecided: PairQueue
    best: wp.array[wp.int64]  # the one pair found for each row; empty: every pair is wanted


@wp.func
def first_other(pair: PosedPair, face_a: wp.int32):
    """The first face of b to test against a face of a; of one mesh, the one after it."""
    return wp.where(pair.sharing == SHARED_NONE, 0, face_a + 1)


@wp.func
def note_verdict(queues: ContactQueues, rank: wp.int32, verdict: wp.int32, key: wp.int64):
    """Put a pair where its verdict says. True when one pair was wanted and this is it."""
    if verdict == MISS:
        return False
    if verdict != HIT:
        push_pair(queues.undecided, key)
        return False
    if queues.best.shape[0] == 0:
        push_pair(queues.hits, key)
        return False
    queues.best[rank] = key
    return True


# Warp passes structs by value, and a PosedPair is a kilobyte: the tests, which run for every pair
# of leaves, take the two meshes instead.


@wp.func
def test_faces(
    a: PosedMesh,
    b: PosedMesh,
    pose: wp.int32,
    sharing: wp.int32,
    queues: ContactQueues,
    rank: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
):
    """Filter two faces into the queues. True when one pair was wanted and this is it."""
    corners_a = load_face(a, face_a, pose)
    corners_b = load_face(b, face_b, pose)
    verdict = classify_tri_tri(corners_a, corners_b, sharing, a.faces[face_a], b.faces[face_b])
    low = wp.int32(face_a)
    high = wp.int32(face_b)
    if sharing != SHARED_NONE:
        low = wp.min(face_a, face_b)
        high = wp.max(face_a, face_b)
    return note_verdict(queues, rank, verdict, pack_pair(rank, low, high, queues.bits))


@wp.func
def test_own(
    mesh: PosedMesh,
    sharing: wp.int32,
    queues: ContactQueues,
    rank: wp.int32,
    face_a: wp.int32,
    corners_a: wp.mat33d,
    face_b: wp.int32,
):
    """``test_faces`` for one mesh in its own frame, and a face whose corners are loaded."""
    corners_b = load_face(mesh, face_b, 0)
    index_a = mesh.faces[face_a]
    verdict = classify_tri_tri(corners_a, corners_b, sharing, index_a, mesh.faces[face_b])
    low = wp.min(face_a, face_b)
    key = pack_pair(rank, low, wp.max(face_a, face_b), queues.bits)
    return note_verdict(queues, rank, verdict, key)


def contact_queues(queues: PairQueues, layout: KeyLayout, hits: str = "hits") -> Any:
    """ContactQueues of the queues ``hits`` and ``undecided``."""
    out = ContactQueues()
    out.bits, out.hits, out.undecided = layout.bits, queues[hits], queues["undecided"]
    return out
