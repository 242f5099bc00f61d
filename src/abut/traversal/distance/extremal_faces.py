"""The nearest faces of meshes far apart, among the faces that reach farthest towards each other.

The distance of two faces is the length of the line between the meshes, less how far each reaches
along it, but for what they are apart sideways. So the faces that reach farthest bound the distance
from above, and faces that reach less by more than these exceed the lower bound are out of the
question. Each mesh is searched by itself, without a walk of both trees. A few faces of either are
left, unless flat sides face each other: then pairs of nodes are compared (see far_field).

A segment of length L that goes sideways by s is longer by s * s / 2 L, which from 2**26 s on is
less than float64 resolves of L. There the answer is one face of each mesh: the lowest of its faces
that reach farthest along the line between the meshes.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import max_abs
from abut.bvh.layout import BvhView, face_of, is_leaf, link_of, load_node, root_of
from abut.core.atomics import atomic_min_int64
from abut.core.pair_queue import NO_KEY, pack_pair
from abut.geometry.poses import move_point
from abut.operands.distance_queues import (
    DistanceQueues,
    clear_along,
    from_bits,
    gap_of,
    slack_of,
    to_bits,
)
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of
from abut.operands.posed_pairs import PosedPair, pair_at, pair_stop
from abut.traversal.distance.far_field import (
    APART,
    CROWDED_FIELD,
    EXTREMAL_FIELD,
    FAR_FIELD,
    HALF,
    MARGIN,
    NEAR_FIELD,
    box_reach,
    extents_of,
    field_of,
    world_centre,
    world_rounding,
)
from abut.traversal.distance.nearest import NearestPair, compare_faces

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(64)  # a tree is at most 61 levels deep
MOST = wp.constant(64)  # extremal faces of a mesh
CROWDED = wp.constant(wp.int64(-2))  # in place of a key: there are more


@wp.func
def face_reach(
    side: PosedMesh, face: wp.int32, pose: wp.int32, start: wp.vec3d, direction: wp.vec3d
):
    """Return the largest extent of a face from a point along a direction."""
    p = load_face(side, face, pose)
    far = wp.max(wp.dot(p[0] - start, direction), wp.dot(p[1] - start, direction))
    return wp.max(far, wp.dot(p[2] - start, direction))


@wp.func
def slot_reach(
    tree: BvhView, slot: wp.int32, motion: wp.mat44d, start: wp.vec3d, direction: wp.vec3d
):
    """Return the largest extent of a box from a point along a direction; infinite on overflow."""
    node = load_node(tree.nodes, slot)
    far = wp.dot(world_centre(tree, node, motion) - start, direction)
    far += box_reach(node, motion, direction)
    return wp.where(far < wp.float64(wp.inf), far, wp.float64(wp.inf))


@wp.func
def extremal_face(
    side: PosedMesh,
    pose: wp.int32,
    tree: BvhView,
    start: wp.vec3d,
    direction: wp.vec3d,
    rounding: wp.float64,
):
    """The face that reaches farthest from a point along a direction, the lowest of several."""
    slots = wp.zeros(shape=(STACK,), dtype=wp.int32)
    reaches = wp.zeros(shape=(STACK,), dtype=wp.float64)
    motion = pose_of(side, pose)
    best = wp.float64(-wp.inf)
    face = wp.int32(0)
    slots[0] = root_of(tree)
    reaches[0] = wp.float64(wp.inf)
    held = wp.int32(1)
    while held > 0:
        held -= 1
        if reaches[held] + rounding < best:
            continue
        node = load_node(tree.nodes, slots[held])
        if is_leaf(node):
            far = face_reach(side, face_of(node), pose, start, direction)
            if far > best or (far == best and face_of(node) < face):
                best = far
                face = face_of(node)
        else:
            child = 2 * link_of(node)
            left = slot_reach(tree, child, motion, start, direction)
            right = slot_reach(tree, child + 1, motion, start, direction)
            second = wp.int32(right > left)  # is opened first
            slots[held] = child + 1 - second
            reaches[held] = wp.min(left, right)
            slots[held + 1] = child + second
            reaches[held + 1] = wp.max(left, right)
            held += 2
    return face


@wp.func
def extremal_face_brute(side: PosedMesh, pose: wp.int32, start: wp.vec3d, direction: wp.vec3d):
    """The face that reaches farthest from a point along a direction, by testing every face."""
    best = wp.float64(-wp.inf)
    face = wp.int32(0)
    for k in range(side.faces.shape[0]):
        far = face_reach(side, k, pose, start, direction)
        if far > best:
            best = far
            face = k
    return face


@wp.func
def list_extremal(
    side: PosedMesh,
    pose: wp.int32,
    tree: BvhView,
    start: wp.vec3d,
    direction: wp.vec3d,
    least: wp.float64,
    rounding: wp.float64,
    faces: wp.array[wp.int32],
):
    """List the faces that reach so far from a point along a direction; how many, or MOST + 1."""
    slots = wp.zeros(shape=(STACK,), dtype=wp.int32)
    motion = pose_of(side, pose)
    slots[0] = root_of(tree)
    held = wp.int32(1)
    count = wp.int32(0)
    while held > 0:
        held -= 1
        node = load_node(tree.nodes, slots[held])
        if is_leaf(node):
            if face_reach(side, face_of(node), pose, start, direction) >= least:
                if count < MOST:
                    faces[count] = face_of(node)
                    count += 1
                else:
                    count = MOST + 1
                    held = 0
        else:
            child = 2 * link_of(node)
            for k in range(2):
                slots[held] = child + k
                far = slot_reach(tree, child + k, motion, start, direction)
                held += wp.int32(not (far + rounding < least))
    return count


@wp.func
def direction_between(from_a: wp.vec3d, to_b: wp.vec3d):
    """The direction from one point to another, whatever their distance."""
    between = to_b * HALF - from_a * HALF
    return wp.normalize(between / max_abs(between))


@wp.func
def nearest_extremal(pair: PosedPair, queues: DistanceQueues, rank: wp.int32):
    """The nearest faces, if they are as near as the bound of a row, which is lowered.

    The key is CROWDED where there are too many extremal faces.
    """
    extremal_a = wp.zeros(shape=(MOST,), dtype=wp.int32)
    extremal_b = wp.zeros(shape=(MOST,), dtype=wp.int32)
    tree_a = pair.tree_a
    tree_b = pair.tree_b
    pose = pair.pose
    root_a = load_node(tree_a.nodes, root_of(tree_a))
    root_b = load_node(tree_b.nodes, root_of(tree_b))
    from_a = world_centre(tree_a, root_a, pose_of(pair.a, pose))
    to_b = world_centre(tree_b, root_b, pose_of(pair.b, pose))
    along = direction_between(from_a, to_b)
    slack = slack_of(pair)
    rounding = world_rounding(pair)
    face_a = extremal_face(pair.a, pose, tree_a, from_a, along, rounding)
    face_b = extremal_face(pair.b, pose, tree_b, to_b, -along, rounding)
    reach_a = face_reach(pair.a, face_a, pose, from_a, along)
    reach_b = face_reach(pair.b, face_b, pose, to_b, -along)
    near = gap_of(load_face(pair.a, face_a, pose), load_face(pair.b, face_b, pose))
    gap = wp.dot(to_b - from_a, along) - reach_a - reach_b
    depth = near.distance * MARGIN - gap + slack + wp.float64(4.0) * rounding
    least_a = reach_a - depth
    least_b = reach_b - depth
    count_a = list_extremal(pair.a, pose, tree_a, from_a, along, least_a, rounding, extremal_a)
    count_b = list_extremal(pair.b, pose, tree_b, to_b, -along, least_b, rounding, extremal_b)
    found = NearestPair()
    found.bits = queues.bound[rank]
    found.key = NO_KEY
    if count_a > MOST or count_b > MOST:
        found.key = CROWDED
        return found
    for i in range(count_a):
        a = load_face(pair.a, extremal_a[i], pose)
        for j in range(count_b):
            b = load_face(pair.b, extremal_b[j], pose)
            if not clear_along(a, b, found.direction, from_bits(found.bits) * MARGIN + slack):
                found = compare_faces(
                    queues.contacts, rank, extremal_a[i], extremal_b[j], a, b, APART, found
                )
    atomic_min_int64(queues.bound, rank, found.bits)
    return found


@wp.func
def take_pair(
    pair: PosedPair, queues: DistanceQueues, rank: wp.int32, face_a: wp.int32, face_b: wp.int32
):
    """Lower the bound of a row to the distance of two faces; their key where they are as near."""
    corners_a = load_face(pair.a, face_a, pair.pose)
    near = gap_of(corners_a, load_face(pair.b, face_b, pair.pose))
    bits = to_bits(near.distance)
    key = pack_pair(0, face_a, face_b, queues.contacts.bits)
    return wp.where(bits <= atomic_min_int64(queues.bound, rank, bits), key, NO_KEY)


@cache
def far_field_kernel_for(pairs_type: type, brute: bool) -> wp.Kernel:
    """The kernel that decides the field of each row and answers rows of the far field.

    Args:
        pairs_type: MeshPairs or ScenePairs.
        brute: There are no trees: faces are tested one by one, and far rows are left to be
            compared pair by pair.
    """

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def far_field_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        # out
        queues_out: DistanceQueues,
        fields_out: wp.array[wp.int32],
        key_out: wp.array[wp.int64],
    ):
        """Find the field of each row and, where it is far, its nearest faces."""
        for rank in range(span[0] + wp.tid(), pair_stop(pairs, span[1]), span[2]):
            pair = pair_at(pairs, rank)
            extent_a, extent_b = extents_of(pairs, pair)
            pose_a = pose_of(pair.a, pair.pose)
            pose_b = pose_of(pair.b, pair.pose)
            field = field_of(extent_a, pose_a, extent_b, pose_b)
            fields_out[rank] = field
            if field == EXTREMAL_FIELD:
                from_a = move_point(pose_a, extent_a.centre)
                to_b = move_point(pose_b, extent_b.centre)
                along = direction_between(from_a, to_b)
                face_a = wp.int32(0)
                face_b = wp.int32(0)
                if wp.static(brute):
                    face_a = extremal_face_brute(pair.a, pair.pose, from_a, along)
                    face_b = extremal_face_brute(pair.b, pair.pose, to_b, -along)
                else:
                    rounding = world_rounding(pair)
                    face_a = extremal_face(pair.a, pair.pose, pair.tree_a, from_a, along, rounding)
                    face_b = extremal_face(pair.b, pair.pose, pair.tree_b, to_b, -along, rounding)
                key_out[rank] = take_pair(pair, queues_out, rank, face_a, face_b)
            elif field == FAR_FIELD:
                if wp.static(brute):
                    fields_out[rank] = NEAR_FIELD
                else:
                    found = nearest_extremal(pair, queues_out, rank)
                    if found.key == CROWDED:
                        fields_out[rank] = CROWDED_FIELD
                    else:
                        key_out[rank] = found.key

    return far_field_kernel
