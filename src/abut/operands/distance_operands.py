"""Approach: what every stage of a distance query knows, and how near two faces come."""

import warp as wp

from abut.core.pair_queue import PairQueue, push_pair
from abut.geometry.common_corners import SHARED_NONE, common_corners
from abut.geometry.distance_tri_tri import distance_tri_tri
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.operands.contact_operands import Search, pair_key
from abut.operands.posed_mesh import load_face

# What is computed about faces holds up to this relative error; the slack of a query covers what
# roundings do not shrink with the distance.
FACE_MARGIN = wp.constant(wp.float64(1.0 + 2.0**-20))
SINGLE_MARGIN = wp.constant(wp.float64(1.0 + 2.0**-20))  # of rounding to float32
LEAST_SINGLE = wp.constant(wp.float32(1.2e-38))
LEAST_DOUBLE = wp.constant(wp.float64(1e-300))
LEAST_GAP = wp.constant(wp.float64(5e-324))


@wp.struct
class Approach:
    """Operands of a distance query and the smallest distance known for each pose."""

    search: Search
    bound: wp.array[wp.int64]  # bits of a float64, which order as the numbers do; from 0 up
    slack: wp.float64
    tolerance: wp.float64


@wp.func
def to_bits(distance: wp.float64):
    """The bits of a distance, ordered as distances are."""
    return wp.cast(distance, wp.int64)


@wp.func
def from_bits(bits: wp.int64):
    """The distance of some bits."""
    return wp.cast(bits, wp.float64)


@wp.func
def box_limit(distance: wp.float64, slack: wp.float64, stretch: wp.float32):
    """A squared bound of boxes above this means: no face in them comes as near as ``distance``.

    ``stretch`` is that of the frame in which the boxes are compared.
    """
    reach = distance * wp.float64(stretch) + slack
    return wp.float32(reach * reach * SINGLE_MARGIN) + LEAST_SINGLE


@wp.func
def clear_along(a: wp.mat33d, b: wp.mat33d, way: wp.vec3d, reach: wp.float64):
    """Are two triangles more than ``reach`` apart along a direction, a towards b?

    Guarantee:
        True only when they are, for differences of coordinates that roundings do not swamp; the
        slack of a query covers those.
    """
    start = a[0]
    first = wp.dot(b[0] - start, way)
    first = wp.min(first, wp.min(wp.dot(b[1] - start, way), wp.dot(b[2] - start, way)))
    last = wp.max(wp.float64(0.0), wp.max(wp.dot(a[1] - start, way), wp.dot(a[2] - start, way)))
    gap = first - last
    far = reach * reach * wp.length_sq(way) + LEAST_DOUBLE
    return gap > wp.float64(0.0) and gap * gap > far


@wp.func
def between_centres(a: wp.mat33d, b: wp.mat33d):
    """Three times the way from the centre of one triangle to that of another."""
    return (b[0] - a[0]) + (b[1] - a[1]) + (b[2] - a[2])


@wp.func
def gap_of(a: wp.mat33d, b: wp.mat33d):
    """Nearest points of two faces that do not meet; the distance is never 0."""
    near = distance_tri_tri(a, b)
    near.distance = wp.max(near.distance, LEAST_GAP)
    return near


@wp.func
def test_near(
    search: Search,
    pose: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    limit: wp.float64,
    near_out: PairQueue,
):
    """Push 2 key + 1 for faces that meet, 2 key for others at most ``limit`` apart.

    Neighbours are left out unless they meet beyond what they share. Undecided pairs go to their
    own queue too: who meets among them is pushed once more, later.
    """
    low = wp.int32(face_a)
    high = wp.int32(face_b)
    if search.sharing != SHARED_NONE and low > high:  # roundings depend on which comes first
        low = face_b
        high = face_a
    a = load_face(search.a, low, pose)
    b = load_face(search.b, high, pose)
    index_a = search.a.faces[low]
    index_b = search.b.faces[high]
    key = pair_key(search, pose, low, high)
    verdict = classify_tri_tri(a, b, search.sharing, index_a, index_b)
    if verdict == HIT:
        push_pair(near_out, wp.int64(2) * key + wp.int64(1))
        return
    if verdict != MISS:
        push_pair(search.undecided, key)
    if search.sharing != SHARED_NONE:
        if common_corners(search.sharing, a, b, index_a, index_b) != 0:
            return
    near = gap_of(a, b)
    if near.distance <= limit:
        push_pair(near_out, wp.int64(2) * key)
