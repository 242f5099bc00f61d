"""Pairs of faces that a team compares: in float32 all lanes together, the few left in float64.

Near points of two faces bound their distance from above, and the gap along the line between these
points from below. Pairs that may be the nearest are candidates, kept in the memory of the team.
"""

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f, to_vec4f
from abut.bounds.relative_frame import RelativeFrame
from abut.core.lanes import (
    lane_count,
    lane_index,
    warp_broadcast_vec3f,
    warp_count,
    warp_first,
    warp_min,
    warp_rank,
    warp_sync,
)
from abut.core.pair_queue import PairQueue, pack_pair, push_pair
from abut.core.team import load_triple, store_triple
from abut.geometry.near_tri_tri import between_corners, gap_along, near_tri_tri, surely_cross
from abut.operands.distance_queues import DistanceQueues
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.operands.posed_pairs import PosedPair
from abut.traversal.distance.nearest import NearestPair, compare_faces
from abut.traversal.distance.node_pool import FIRST_CANDIDATE, POOL


@wp.func
def single_corners(mesh: PosedMesh, face: wp.int32, origin: wp.vec3d):
    """Corners of a face of a mesh without its pose, relative to an origin, in float32."""
    corners = mesh.faces[face]
    return wp.matrix_from_rows(
        to_vec3f(mesh.points[corners[0]] - origin),
        to_vec3f(mesh.points[corners[1]] - origin),
        to_vec3f(mesh.points[corners[2]] - origin),
    )


@wp.func
def corners_in_frame(frame: RelativeFrame, corners: wp.mat33f):
    """Corners of a face of b in the frame of a."""
    return wp.matrix_from_rows(
        row_xyz(frame.rows * to_vec4f(corners[0]) + frame.shift),
        row_xyz(frame.rows * to_vec4f(corners[1]) + frame.shift),
        row_xyz(frame.rows * to_vec4f(corners[2]) + frame.shift),
    )


@wp.func
def clear_of_faces(
    a: wp.mat33f, b: wp.mat33f, direction: wp.vec3f, padding: wp.float32, limit: wp.float32
):
    """Whether two faces are farther apart along a direction than a squared limit."""
    gap = gap_along(a, b, wp.normalize(direction)) - padding
    return gap > wp.float32(0.0) and gap * gap > limit


@wp.struct
class NearestBounds:
    """Bounds of the distance of a row, as its team knows them."""

    upper: wp.float64  # of the distance
    limit: wp.float32  # squared gap above which no faces are nearer than that by the tolerance
    keep: wp.float32  # squared gap above which no faces are as near as that
    direction: wp.vec3f  # from a to b, of the pair that gave the bound
    met: wp.bool  # faces cross
    candidates: wp.int32  # pairs of faces that may be the nearest, in the memory of the team


@wp.func
def compare_lanes(
    triples: wp.uint64,
    faces: wp.int32,
    pair: PosedPair,
    frame: RelativeFrame,
    padding: wp.float32,
    known: NearestBounds,
):
    """Compare the last pairs of faces, one for each lane; all that may be nearest are kept.

    The limits do not follow the upper bound.
    """
    out = known
    lane = lane_index()
    entry = wp.vec3i()
    upper = wp.float64(wp.inf)
    direction = wp.vec3f()
    kept = wp.bool(False)
    crossed = wp.bool(False)
    if lane < faces:
        entry = load_triple(triples, POOL + faces - 1 - lane)
        gap = wp.cast(entry[2], wp.float32)
        if not (gap > known.limit):
            entry = wp.vec3i(-1 - entry[0], -1 - entry[1], 0)  # faces
            p = single_corners(pair.a, entry[0], pair.tree_a.origin)
            q = corners_in_frame(frame, single_corners(pair.b, entry[1], pair.tree_b.origin))
            if not clear_of_faces(p, q, between_corners(p, q), padding, known.limit):
                direction = near_tri_tri(p, q)
                length = wp.length(wp.vec3d(direction))
                if length >= wp.float64(0.0):  # a number
                    upper = length * wp.float64(frame.stretch) + wp.float64(padding)
                low = wp.max(gap_along(p, q, wp.normalize(direction)) - padding, wp.float32(0.0))
                kept = not (low * low > known.keep)
                entry[2] = wp.cast(low * low, wp.int32)
                if not (gap > wp.float32(0.0)) and not (low > wp.float32(0.0)):
                    crossed = surely_cross(
                        load_face(pair.a, entry[0], pair.pose),
                        load_face(pair.b, entry[1], pair.pose),
                    )
    out.met = warp_first(crossed) < lane_count()
    place = FIRST_CANDIDATE + known.candidates + warp_rank(kept)
    if kept:
        store_triple(triples, place, entry)
    out.candidates += warp_count(kept)
    least = warp_min(upper)
    if least < known.upper:
        out.upper = least
        out.direction = warp_broadcast_vec3f(direction, warp_first(upper == least))
    warp_sync()
    return out


@wp.func
def drop_candidates(triples: wp.uint64, known: NearestBounds):
    """Return the number of candidates that may still be the nearest; they come first."""
    lane = lane_index()
    count = wp.int32(0)
    first = wp.int32(0)
    while first < known.candidates:
        entry = load_triple(triples, FIRST_CANDIDATE + wp.min(first + lane, known.candidates - 1))
        kept = not (wp.cast(entry[2], wp.float32) > known.keep)
        kept = kept and first + lane < known.candidates
        place = FIRST_CANDIDATE + count + warp_rank(kept)
        warp_sync()
        if kept:
            store_triple(triples, place, entry)
        count += warp_count(kept)
        warp_sync()
        first += lane_count()
    return count


@wp.func
def push_candidates(
    triples: wp.uint64, count: wp.int32, rank: wp.int32, bits: wp.vec2i, candidates: PairQueue
):
    """List so many candidates of a row."""
    for k in range(lane_index(), count, lane_count()):
        entry = load_triple(triples, FIRST_CANDIDATE + k)
        push_pair(candidates, pack_pair(rank, entry[0], entry[1], bits))
    warp_sync()


@wp.func
def measure_candidates(
    triples: wp.uint64,
    count: wp.int32,
    rank: wp.int32,
    pair: PosedPair,
    queues: DistanceQueues,
    before: NearestPair,
):
    """The nearest of the pair found before and so many candidates of a row, in float64."""
    found = NearestPair()
    found.bits = before.bits
    found.key = before.key
    for k in range(count):
        entry = load_triple(triples, FIRST_CANDIDATE + k)
        p = load_face(pair.a, entry[0], pair.pose)
        q = load_face(pair.b, entry[1], pair.pose)
        gap = wp.cast(entry[2], wp.float32)
        if found.bits > wp.int64(0):
            found = compare_faces(queues.contacts, rank, entry[0], entry[1], p, q, gap, found)
    return found
