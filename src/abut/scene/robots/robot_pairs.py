"""Kernels that pose a robot and list pairs of its objects with others whose boxes overlap."""

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bounds.float32 import to_vec4f
from abut.broad.boxes import Boxes, Filters, box_of_posed, passes_filters, store_empty
from abut.bvh.batched import BatchedBvh, bvh_at
from abut.core.pair_queue import pack_pair, push_pair, queue_stop, unpack_pair
from abut.geometry.joint_tree import JointTree, are_rotations, body_pose, pose_joints
from abut.operands.contact_queues import ContactQueues
from abut.operands.posed_pairs import RobotPairs
from abut.scene.robots.clearance_tables import MEETING, UNKNOWN, CellTables, pair_state
from abut.scene.robots.padded_pairs import outward, pad_of
from abut.scene.robots.robot_solids import Solids, may_hold
from abut.scene.robots.sphere_covers import SphereCovers, cores_meet, cover_is_clear

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

# Flags of configurations, beside those of a search: 0 free so far, 1 in contact.
NOT_FINITE = wp.constant(wp.int32(2))
# Verdicts of spheres.
CLEAR = wp.constant(wp.int32(0))
MET = wp.constant(wp.int32(1))
UNDECIDED = wp.constant(wp.int32(2))


@wp.kernel
def robot_boxes_kernel(
    # in
    span: wp.vec3i,
    count: wp.array[wp.int32],
    tree: JointTree,
    values: wp.array2d[wp.float64],
    pads: wp.array[wp.float64],
    # out
    pairs_out: RobotPairs,
    queues_out: ContactQueues,
    joints_out: wp.array[wp.mat44d],
    boxes_out: Boxes,
    flags_out: wp.array[wp.int32],
    counter_out: wp.array[wp.int32],
):
    """Pose the objects of the robot for each row of values, and write their padded boxes.

    Clears the queues, and flags rows whose values are not finite, or are no rotation of a ball.
    """
    bodies = pairs_out.rows.shape[0]
    for row in range(span[0] + wp.tid(), wp.min(count[0], span[1]), span[2]):
        if row == 0:
            pairs_out.object_pairs.count[0] = wp.int64(0)
            queues_out.hits.count[0] = wp.int64(0)
            queues_out.undecided.count[0] = wp.int64(0)
            counter_out[0] = 0
        flag = wp.int32(0)
        for k in range(values.shape[1]):
            value = values[row, k]
            if not (value - value == wp.float64(0.0)):
                flag = NOT_FINITE
        if not are_rotations(tree, values, row):
            flag = NOT_FINITE
        flags_out[row] = flag
        if flag == 0:
            pose_joints(tree, values, row, joints_out)
            for body in range(bodies):
                pose = body_pose(tree, joints_out, row, body)
                at = row * bodies + body
                pairs_out.own_poses[at] = pose
                shape = pairs_out.mesh[pairs_out.rows[body]]
                if pairs_out.bvhs.slices[shape].face_count == 0:
                    store_empty(boxes_out, at)
                else:
                    pad = pad_of(pads, pairs_out.rows[body])
                    lower, upper = box_of_posed(pairs_out.bvhs, shape, pose, pad)
                    boxes_out.lower[at] = to_vec4f(lower)
                    boxes_out.upper[at] = to_vec4f(upper)


@wp.func
def spheres_verdict(
    covers: SphereCovers,
    bvhs: BatchedBvh,
    shape_a: wp.int32,
    pose_a: wp.mat44d,
    shape_b: wp.int32,
    pose_b: wp.mat44d,
    nested: wp.bool,
    gap: wp.float64,
):
    """Decide two posed slices by their spheres: CLEAR, MET, or UNDECIDED.

    ``nested``: one may be inside the other. ``gap``: up to which they are in contact.
    """
    if covers.outer_starts.shape[0] == 0:
        return UNDECIDED
    if not nested:
        tree = bvh_at(bvhs, bvhs.slices[shape_b])
        if cover_is_clear(covers, shape_a, pose_a, tree, pose_b, gap):
            return CLEAR
    if cores_meet(covers, shape_a, pose_a, shape_b, pose_b):
        return MET
    return UNDECIDED


@wp.func
def list_pair(
    pairs: RobotPairs,
    boxes: Boxes,
    covers: SphereCovers,
    solids: Solids,
    row: wp.int32,
    body: wp.int32,
    other: wp.int32,
    pose: wp.mat44d,
    low: wp.vec4f,
    high: wp.vec4f,
    gap: wp.float64,
):
    """Append a pair unless spheres decide it; returns whether they prove that it meets."""
    at = row * pairs.rows.shape[0] + body
    shape_a = pairs.mesh[pairs.rows[body]]
    shape_b = pairs.mesh[other]
    bvhs = pairs.bvhs
    own = pairs.own_poses[at]
    a_in_b = may_hold(bvhs, solids, shape_b, low, high, shape_a, own)
    b_in_a = may_hold(bvhs, solids, shape_a, boxes.lower[at], boxes.upper[at], shape_b, pose)
    nested = a_in_b or b_in_a
    verdict = spheres_verdict(covers, bvhs, shape_a, own, shape_b, pose, nested, gap)
    if verdict == UNDECIDED:
        push_pair(pairs.object_pairs, pack_pair(row, body, other, pairs.object_bits))
    return verdict == MET


@wp.kernel
def robot_pairs_kernel(
    # in
    span: wp.vec3i,
    count: wp.array[wp.int32],
    boxes: Boxes,
    scene_boxes: Boxes,
    filters: Filters,
    own_pairs: wp.array[wp.vec2i],
    tables: CellTables,
    values: wp.array2d[wp.float64],
    covers: SphereCovers,
    solids: Solids,
    skipped: wp.array[wp.int32],
    pads: wp.array[wp.float64],
    # out
    flags_out: wp.array[wp.int32],
    pairs_out: RobotPairs,
):
    """List pairs of an object of the robot and an obstacle, or another of its own.

    Their boxes overlap, and the filters leave them. ``own_pairs`` are those the filters leave of
    the robot: numbers of its objects. Pairs that ``tables`` or spheres decide are left out, and
    those of obstacles with ``skipped`` objects. Two objects may be as near as both ``pads``.
    """
    bodies = pairs_out.rows.shape[0]
    for row in range(span[0] + wp.tid(), wp.min(count[0], span[1]), span[2]):
        if flags_out[row] != 0:
            continue
        first = row * bodies
        lower = boxes.lower[first]
        upper = boxes.upper[first]
        for body in range(1, bodies):
            lower = wp.min(lower, boxes.lower[first + body])
            upper = wp.max(upper, boxes.upper[first + body])
        met = wp.bool(False)
        k = wp.int32(0)
        while k < own_pairs.shape[0] and not met:
            i = own_pairs[k][0]
            j = own_pairs[k][1]
            low = boxes.lower[first + j]
            high = boxes.upper[first + j]
            if overlap_aabb(boxes.lower[first + i], boxes.upper[first + i], low, high):
                gap = pad_of(pads, pairs_out.rows[i]) + pad_of(pads, pairs_out.rows[j])
                state = pair_state(tables, k, values, row, gap)
                met = state == MEETING
                if state == UNKNOWN:
                    pose = pairs_out.own_poses[first + j]
                    other = pairs_out.rows[j]
                    met = list_pair(
                        pairs_out, boxes, covers, solids, row, i, other, pose, low, high, gap
                    )
            k += 1
        other = wp.int32(0)
        while other < pairs_out.mesh.shape[0] and not met:
            low = scene_boxes.lower[other]
            high = scene_boxes.upper[other]
            pad = pad_of(pads, other)
            if pad > wp.float64(0.0):
                more = outward(low, high, pad)
                low -= more
                high += more
            if pairs_out.own[other] < 0 and overlap_aabb(low, high, lower, upper):
                for body in range(bodies):
                    at = first + body
                    if skipped[body] != 0:
                        continue
                    if not met and overlap_aabb(low, high, boxes.lower[at], boxes.upper[at]):
                        if passes_filters(filters, pairs_out.rows[body], other):
                            pose = pairs_out.poses[other]
                            gap = pad + pad_of(pads, pairs_out.rows[body])
                            met = list_pair(
                                pairs_out,
                                boxes,
                                covers,
                                solids,
                                row,
                                body,
                                other,
                                pose,
                                low,
                                high,
                                gap,
                            )
            other += 1
        if met:
            flags_out[row] = 1


@wp.kernel
def flag_hits_kernel(
    # in
    span: wp.vec3i,
    pairs: RobotPairs,
    queues: ContactQueues,
    # out
    flags_out: wp.array[wp.int32],
):
    """Flag the configurations of pairs of faces that the exact stage found to meet."""
    for i in range(span[0] + wp.tid(), queue_stop(queues.hits, span[1]), span[2]):
        rank = unpack_pair(queues.hits.keys[i], queues.bits)[0]
        flags_out[unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)[0]] = 1
