"""Search: what every stage of a contact query knows, and the test of two faces by the filter."""

from typing import Any

import warp as wp

from abut.core.pair_queue import KeyLayout, PairQueue, PairQueues, pack_pair, push_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.operands.posed_mesh import PosedMesh, load_face


@wp.struct
class Search:
    """Operands and queues of a contact query."""

    a: PosedMesh
    b: PosedMesh
    sharing: wp.int32  # what the operands share, see common_corners
    bits: wp.vec2i  # layout of keys
    hits: PairQueue
    undecided: PairQueue
    best: wp.array[wp.int64]  # the pair found per pose; empty: every pair is wanted


@wp.func
def pair_key(search: Search, pose: wp.int32, face_a: wp.int32, face_b: wp.int32):
    """Key of a pair; faces of one mesh in ascending order."""
    if search.sharing == SHARED_NONE:
        return pack_pair(pose, face_a, face_b, search.bits)
    return pack_pair(pose, wp.min(face_a, face_b), wp.max(face_a, face_b), search.bits)


@wp.func
def first_other(search: Search, face_a: wp.int32):
    """Of all faces of b, the first that a face of a is tested against; of one mesh a later one."""
    return wp.where(search.sharing == SHARED_NONE, 0, face_a + 1)


@wp.func
def test_faces(search: Search, pose: wp.int32, face_a: wp.int32, face_b: wp.int32):
    """Filter a pair into the hits or the undecided. True when one pair was wanted and is found."""
    corners_a = load_face(search.a, face_a, pose)
    return test_corners(search, pose, face_a, corners_a, face_b)


@wp.func
def test_corners(
    search: Search,
    pose: wp.int32,
    face_a: wp.int32,
    corners_a: wp.mat33d,
    face_b: wp.int32,
):
    """``test_faces`` for a face of a whose corners are at hand."""
    verdict = classify_tri_tri(
        corners_a,
        load_face(search.b, face_b, pose),
        search.sharing,
        search.a.faces[face_a],
        search.b.faces[face_b],
    )
    if verdict == MISS:
        return False
    if verdict != HIT:
        push_pair(search.undecided, pair_key(search, pose, face_a, face_b))
        return False
    key = pair_key(search, pose, face_a, face_b)
    if search.best.shape[0] == 0:
        push_pair(search.hits, key)
        return False
    search.best[pose] = key
    return True


def search_in(queues: PairQueues, a: Any, b: Any, sharing: int, layout: KeyLayout) -> Any:
    """The struct to pass to kernels; what they find goes into ``hits`` and ``undecided``."""
    search = Search()
    search.a, search.b, search.sharing, search.bits = a, b, sharing, layout.bits
    search.hits, search.undecided = queues["hits"], queues["undecided"]
    return search
