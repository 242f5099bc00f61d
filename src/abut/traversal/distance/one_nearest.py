"""The first and the last launch of a search for the nearest faces at one pose.

The first checks the poses and prepares the row, so that the host need not look at them. The last
picks the answer and measures its witness points.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame, max_abs
from abut.core.pair_queue import NO_KEY, PairQueue, unpack_pair
from abut.geometry.poses import is_rigid, translation_of
from abut.operands.distance_queues import DistanceQueues, from_bits, gap_of, to_bits
from abut.operands.posed_mesh import load_face, pose_of
from abut.operands.posed_pairs import MeshPairs, frame_of, pair_at
from abut.traversal.distance.far_field import CROWDED_FIELD, NEAR_FIELD, field_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LEAST_BOUND = wp.constant(wp.float64(5e-324))  # 0 is for meshes that meet
SQUARED = wp.constant(wp.float64(1e18))  # coordinates whose squares float32 can hold

# What became of a question.
ANSWERED = wp.constant(0)
FAR_APART = wp.constant(1)  # for the size of the meshes
UNUSUAL = wp.constant(2)  # a pose is not rigid or the coordinates are huge
UNDECIDED = wp.constant(3)  # pairs are left to the exact stage
CROWDED = wp.constant(4)  # there are too many faces as near as the bound


@wp.kernel
def begin_one_kernel(
    # in
    span: wp.vec3i,
    pairs: MeshPairs,
    upper_bound: wp.array[wp.float64],
    # out
    queues_out: DistanceQueues,
    candidates_out: PairQueue,
    skipped_out: PairQueue,
    frames_out: wp.array[RelativeFrame],
    fields_out: wp.array[wp.int32],
    counter_out: wp.array[wp.int32],
    key_out: wp.array[wp.int64],
):
    """Check the poses of a row and set its field, frame and bound.

    A row that is not in the near field is left out by all searches.
    """
    for rank in range(span[0] + wp.tid(), span[1], span[2]):
        pair = pair_at(pairs, rank)
        pose_a = pose_of(pair.a, rank)
        pose_b = pose_of(pair.b, rank)
        reach = pairs.extent_a.reach + pairs.extent_b.reach
        reach += max_abs(translation_of(pose_a)) + max_abs(translation_of(pose_b))
        field = field_of(pairs.extent_a, pose_a, pairs.extent_b, pose_b)
        usual = is_rigid(pose_a) and is_rigid(pose_b) and reach <= SQUARED
        fields_out[rank] = wp.where(usual, field, CROWDED_FIELD)
        frames_out[rank] = frame_of(pair)
        queues_out.bound[rank] = to_bits(wp.max(upper_bound[rank], LEAST_BOUND))
        queues_out.contacts.undecided.count[0] = wp.int64(0)
        candidates_out.count[0] = wp.int64(0)
        skipped_out.count[0] = wp.int64(0)
        for k in range(counter_out.shape[0]):
            counter_out[k] = 0
        key_out[rank] = NO_KEY


@wp.kernel
def answer_one_kernel(
    # in
    span: wp.vec3i,
    pairs: MeshPairs,
    upper_bound: wp.array[wp.float64],
    queues: DistanceQueues,
    candidates: PairQueue,
    skipped: PairQueue,
    fields: wp.array[wp.int32],
    keys: wp.array[wp.int64],
    far: wp.bool,
    # out
    faces_out: wp.array[wp.vec3i],
    numbers_out: wp.array2d[wp.float64],
):
    """Write (outcome, face of a, face of b) and (distance, nearest points) of a row.

    Rows of the far field are answered after its search alone, which ``far`` tells.
    """
    for rank in range(span[0] + wp.tid(), span[1], span[2]):
        bits = queues.bound[rank]
        key = keys[rank]
        outcome = wp.int32(ANSWERED)
        if fields[rank] == CROWDED_FIELD:
            outcome = UNUSUAL
        elif fields[rank] != NEAR_FIELD and not far:
            outcome = FAR_APART
        elif bits != wp.int64(0):
            short = candidates.count[0] > wp.int64(candidates.keys.shape[0])
            if short or skipped.count[0] > wp.int64(0):
                outcome = CROWDED
            elif queues.contacts.undecided.count[0] > wp.int64(0):
                outcome = UNDECIDED
        distance = from_bits(bits)
        p = wp.vec3d(wp.float64(wp.nan))
        q = wp.vec3d(wp.float64(wp.nan))
        faces = wp.vec3i(outcome, -1, -1)
        if bits > wp.int64(0) and (key == NO_KEY or distance > upper_bound[rank]):
            distance = wp.float64(wp.inf)
        elif bits > wp.int64(0) and outcome == ANSWERED:
            row = unpack_pair(key, queues.contacts.bits)
            faces = wp.vec3i(outcome, row[1], row[2])
            near = gap_of(load_face(pairs.a, row[1], rank), load_face(pairs.b, row[2], rank))
            p = near.p
            q = near.q
        faces_out[rank] = faces
        numbers_out[rank, 0] = distance
        for i in range(3):
            numbers_out[rank, 1 + i] = p[i]
            numbers_out[rank, 4 + i] = q[i]
