"""Distance queues: bounds and queues of a distance query, and the tests of two faces.

A query for the nearest faces lowers the bound of each row as it finds nearer ones. A query for all
faces within a distance leaves the bounds as they are.
"""

from typing import Any

import warp as wp

from abut.bvh.layout import load_node, max_abs_coordinate, root_of
from abut.core.pair_queue import KeyLayout, PairQueue, PairQueues, pack_pair, push_pair
from abut.geometry.common_corners import SHARED_NONE, common_corners
from abut.geometry.distance_tri_tri import distance_tri_tri
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.operands.contact_queues import ContactQueues, contact_queues
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.operands.posed_pairs import PosedPair

# Distances and extents of faces hold up to this relative error; ``slack_of`` covers the roundings
# that do not shrink with the distance.
FACE_MARGIN = wp.constant(wp.float64(1.0 + 2.0**-20))
SINGLE_MARGIN = wp.constant(wp.float64(1.0 + 2.0**-20))  # of rounding to float32
LEAST_SINGLE = wp.constant(wp.float32(1.2e-38))
LEAST_DOUBLE = wp.constant(wp.float64(1e-300))
LEAST_GAP = wp.constant(wp.float64(5e-324))
ROUNDING = wp.constant(wp.float64(2.0**-43))  # of faces, relative to the reach of their meshes


@wp.struct
class DistanceQueues:
    """Bounds of all rows, and the contacts among faces whose boxes overlap."""

    contacts: ContactQueues  # hits are written by the exact stage alone
    bound: wp.array[wp.int64]  # of each row: bits of a float64 from 0 up, ordered as the numbers
    tolerance: wp.float64  # how much more than the smallest distance will do
    least: wp.array[wp.int64]  # of each environment, where only its least distance is wanted


@wp.func
def to_bits(distance: wp.float64):
    """The bits of a distance, ordered as distances are."""
    return wp.cast(distance, wp.int64)


@wp.func
def from_bits(bits: wp.int64):
    """The distance of some bits."""
    return wp.cast(bits, wp.float64)


@wp.func
def slack_of(pair: PosedPair):
    """Bound of the roundings in distances of faces of a pair, whatever the distance.

    The reach of a box is at least half its extent, so this is at least 2**-44 of both extents.
    """
    reach = max_abs_coordinate(load_node(pair.tree_a.nodes, root_of(pair.tree_a)))
    return ROUNDING * (
        reach + max_abs_coordinate(load_node(pair.tree_b.nodes, root_of(pair.tree_b)))
    )


@wp.func
def box_limit(distance: wp.float64, slack: wp.float64, stretch: wp.float32):
    """The squared gap of boxes above which no face in them comes as near as ``distance``.

    ``stretch`` is that of the frame in which the boxes are compared.
    """
    reach = distance * wp.float64(stretch) + slack
    return wp.float32(reach * reach * SINGLE_MARGIN) + LEAST_SINGLE


@wp.func
def clear_along(a: wp.mat33d, b: wp.mat33d, direction: wp.vec3d, reach: wp.float64):
    """Are two triangles more than ``reach`` apart along a direction, a towards b?

    Guarantee:
        True only when they are, for differences of coordinates that roundings do not swamp; the
        slack of a pair covers those.
    """
    start = a[0]
    first = wp.dot(b[0] - start, direction)
    first = wp.min(first, wp.min(wp.dot(b[1] - start, direction), wp.dot(b[2] - start, direction)))
    last = wp.max(
        wp.float64(0.0), wp.max(wp.dot(a[1] - start, direction), wp.dot(a[2] - start, direction))
    )
    gap = first - last
    far = reach * reach * wp.length_sq(direction) + LEAST_DOUBLE
    return gap > wp.float64(0.0) and gap * gap > far


@wp.func
def between_centres(a: wp.mat33d, b: wp.mat33d):
    """Three times the vector from the centre of one triangle to that of another."""
    return (b[0] - a[0]) + (b[1] - a[1]) + (b[2] - a[2])


@wp.func
def clear_of(a: wp.mat33d, b: wp.mat33d, direction: wp.vec3d, reach: wp.float64):
    """Are two triangles more than ``reach`` apart along a direction, or between their centres?"""
    return clear_along(a, b, between_centres(a, b), reach) or clear_along(a, b, direction, reach)


@wp.func
def gap_of(a: wp.mat33d, b: wp.mat33d):
    """Nearest points of two faces that do not meet; the distance is never 0."""
    near = distance_tri_tri(a, b)
    near.distance = wp.max(near.distance, LEAST_GAP)
    return near


@wp.func
def certainly_meet(
    queues: ContactQueues,
    rank: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    a: wp.mat33d,
    b: wp.mat33d,
):
    """Do two faces of different meshes meet for certain? Undecided pairs go to their queue."""
    verdict = classify_tri_tri(a, b, SHARED_NONE, wp.vec3i(), wp.vec3i())
    if verdict != HIT and verdict != MISS:
        push_pair(queues.undecided, pack_pair(rank, face_a, face_b, queues.bits))
    return verdict == HIT


@wp.func
def test_near(
    mesh_a: PosedMesh,
    mesh_b: PosedMesh,
    pose: wp.int32,
    sharing: wp.int32,
    limit: wp.float64,
    queues: ContactQueues,
    rank: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    near_out: PairQueue,
):
    """Push 2 key + 1 for faces that meet, 2 key for others at most ``limit`` apart.

    Neighbours in one mesh are left out unless they meet beyond what they share. Undecided pairs
    also go to their own queue; the exact stage lists those that meet among its hits.
    """
    low = wp.int32(face_a)
    high = wp.int32(face_b)
    if sharing != SHARED_NONE and low > high:  # roundings depend on which comes first
        low = face_b
        high = face_a
    a = load_face(mesh_a, low, pose)
    b = load_face(mesh_b, high, pose)
    index_a = mesh_a.faces[low]
    index_b = mesh_b.faces[high]
    key = pack_pair(rank, low, high, queues.bits)
    verdict = classify_tri_tri(a, b, sharing, index_a, index_b)
    if verdict == HIT:
        push_pair(near_out, wp.int64(2) * key + wp.int64(1))
        return
    if verdict != MISS:
        push_pair(queues.undecided, key)
    if sharing != SHARED_NONE:
        if common_corners(sharing, a, b, index_a, index_b) != 0:
            return
    near = gap_of(a, b)
    if near.distance <= limit:
        push_pair(near_out, wp.int64(2) * key)


def distance_queues(
    queues: PairQueues, layout: KeyLayout, bound: wp.array, tolerance: float = 0.0
) -> Any:
    """DistanceQueues with the queues ``hits`` and ``undecided``."""
    out = DistanceQueues()
    out.contacts, out.bound = contact_queues(queues, layout), bound
    out.tolerance = tolerance
    return out
