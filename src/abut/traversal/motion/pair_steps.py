"""Steps of a search for contacts of moving objects: pairs of nodes and of faces."""

import warp as wp

from abut.bvh.batched import BatchedBvh, MeshSlice, load_corners
from abut.bvh.layout import face_of, is_leaf, link_of, load_node
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.distance_tri_tri import distance_tri_tri
from abut.geometry.intersect_tri_tri import MISS, classify_tri_tri
from abut.operands.jointed_bodies import BodyStates, JointedObjects, JointMotions
from abut.traversal.motion.moving_gaps import (
    PairMotion,
    box_in_world,
    gap_moving_balls,
    gap_moving_boxes,
    gap_moving_faces,
    gap_of_faces_along,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

# A pair of nodes is certified, or its larger node is opened, or it is left to shorter intervals.
CERTIFIED = wp.constant(0)
LEFT = wp.constant(1)
OPEN_A = wp.constant(2)
OPEN_B = wp.constant(3)
OPEN_FACTOR = wp.constant(wp.float64(4.0))  # of sizes over travels; see design/robot-motions.md
CONTACT_ROUNDING = wp.constant(wp.float64(4.0))  # of roundings that stop a certificate


@wp.func
def corners_in_world(
    bvhs: BatchedBvh, piece: MeshSlice, face: wp.int32, rotation: wp.mat33d, position: wp.vec3d
):
    """Return the corners of a posed face, one a row."""
    local = load_corners(bvhs, piece, face)
    return wp.matrix_from_rows(
        rotation * local[0] + position,
        rotation * local[1] + position,
        rotation * local[2] + position,
    )


@wp.func
def rounding_of(motions: JointMotions, a: wp.vec3d, b: wp.vec3d, size: wp.float64):
    """Return a bound of roundings of gaps and travels of two sets of a size, about a and b."""
    return motions.rounding * (wp.max(wp.abs(a)) + wp.max(wp.abs(b)) + size)


@wp.func
def gap_to_keep(objects: JointedObjects, motions: JointMotions, pair: wp.vec3i):
    """Return the distance up to which two objects are in contact."""
    return wp.max(motions.min_distance, objects.pads[pair[0]] + objects.pads[pair[1]])


@wp.func
def step_of_pair(
    bvhs: BatchedBvh,
    objects: JointedObjects,
    motions: JointMotions,
    motion: PairMotion,
    entry: wp.vec3i,
    half: wp.float64,
    last: wp.bool,
):
    """Return whether a pair of nodes is CERTIFIED, to be opened at a or b, or LEFT to halves."""
    pair = objects.pairs[entry[0]]
    piece_a = bvhs.slices[objects.shapes[pair[0]]]
    piece_b = bvhs.slices[objects.shapes[pair[1]]]
    node_a = load_node(bvhs.nodes, 2 * piece_a.first_face + entry[1])
    node_b = load_node(bvhs.nodes, 2 * piece_b.first_face + entry[2])
    a = box_in_world(node_a, piece_a.origin, motion.rotation_a, motion.position_a)
    b = box_in_world(node_b, piece_b.origin, motion.rotation_b, motion.position_b)
    size_a = wp.length(a.half)
    size_b = wp.length(b.half)
    keep = gap_to_keep(objects, motions, pair)
    keep += rounding_of(motions, a.centre, b.centre, size_a + size_b)
    moving = gap_moving_balls(a, b, wp.vec2d(size_a, size_b), motion, half)
    if moving.gap - moving.travel > keep:
        return CERTIFIED
    moving = gap_moving_boxes(a, b, motion, half)
    if moving.gap - moving.travel > keep:
        return CERTIFIED
    leaf_a = is_leaf(node_a)
    leaf_b = is_leaf(node_b)
    if leaf_a and leaf_b:
        p = corners_in_world(bvhs, piece_a, face_of(node_a), motion.rotation_a, motion.position_a)
        q = corners_in_world(bvhs, piece_b, face_of(node_b), motion.rotation_b, motion.position_b)
        moving = gap_of_faces_along(p, q, moving.direction, motion, half)
        if moving.gap - moving.travel <= keep:
            moving = gap_moving_faces(p, q, motion, half)
        if moving.gap - moving.travel > keep:
            return CERTIFIED
        return LEFT
    opens_a = leaf_b or (size_a >= size_b and not leaf_a)
    size = wp.where(opens_a, size_a, size_b)
    if not last and size < OPEN_FACTOR * moving.travel:
        return LEFT
    return wp.where(opens_a, OPEN_A, OPEN_B)


@wp.func(inline=False)
def in_contact(
    bvhs: BatchedBvh,
    objects: JointedObjects,
    motions: JointMotions,
    states: BodyStates,
    first_object: wp.int32,
    entry: wp.vec3i,
):
    """Return whether two leaves are in contact where their objects are now, up to rounding."""
    pair = objects.pairs[entry[0]]
    piece_a = bvhs.slices[objects.shapes[pair[0]]]
    piece_b = bvhs.slices[objects.shapes[pair[1]]]
    node_a = load_node(bvhs.nodes, 2 * piece_a.first_face + entry[1])
    node_b = load_node(bvhs.nodes, 2 * piece_b.first_face + entry[2])
    at_a = first_object + pair[0]
    at_b = first_object + pair[1]
    p = corners_in_world(
        bvhs,
        piece_a,
        face_of(node_a),
        states.object_rotations[at_a],
        states.object_positions[at_a],
    )
    q = corners_in_world(
        bvhs,
        piece_b,
        face_of(node_b),
        states.object_rotations[at_b],
        states.object_positions[at_b],
    )
    none = wp.vec3i()
    if classify_tri_tri(p, q, SHARED_NONE, none, none) != MISS:
        return True
    size = wp.max(wp.abs(p[1] - p[0])) + wp.max(wp.abs(p[2] - p[0]))
    size += wp.max(wp.abs(q[1] - q[0])) + wp.max(wp.abs(q[2] - q[0]))
    near = gap_to_keep(objects, motions, pair)
    near += CONTACT_ROUNDING * rounding_of(motions, p[0], q[0], size)
    return distance_tri_tri(p, q).distance <= near


@wp.func
def first_contact_entry(
    bvhs: BatchedBvh,
    objects: JointedObjects,
    motions: JointMotions,
    states: BodyStates,
    first_object: wp.int32,
    entries: wp.array[wp.vec3i],
    begin: wp.int32,
    end: wp.int32,
):
    """Return the lowest of some pairs of leaves that are in contact; its pair is -1 if none are."""
    found = wp.vec3i(-1, -1, -1)
    for k in range(begin, end):
        entry = entries[k]
        lower = found[0] < 0 or entry[0] < found[0]
        if entry[0] == found[0]:
            lower = entry[1] < found[1] or (entry[1] == found[1] and entry[2] < found[2])
        if lower:
            if in_contact(bvhs, objects, motions, states, first_object, entry):
                found = entry
    return found


@wp.func
def face_in_slot(bvhs: BatchedBvh, shape: wp.int32, slot: wp.int32):
    """Return the face of the leaf in a slot; -1 for an inner node."""
    node = load_node(bvhs.nodes, 2 * bvhs.slices[shape].first_face + slot)
    return wp.where(is_leaf(node), face_of(node), -1)


@wp.func
def open_entry(
    bvhs: BatchedBvh,
    objects: JointedObjects,
    entry: wp.vec3i,
    opens_a: wp.bool,
    entries: wp.array[wp.vec3i],
    slot: wp.int32,
):
    """Write the two pairs of nodes below a pair."""
    pair = objects.pairs[entry[0]]
    if opens_a:
        first = bvhs.slices[objects.shapes[pair[0]]].first_face
        child = 2 * link_of(load_node(bvhs.nodes, 2 * first + entry[1]))
        entries[slot] = wp.vec3i(entry[0], child, entry[2])
        entries[slot + 1] = wp.vec3i(entry[0], child + 1, entry[2])
    else:
        first = bvhs.slices[objects.shapes[pair[1]]].first_face
        child = 2 * link_of(load_node(bvhs.nodes, 2 * first + entry[2]))
        entries[slot] = wp.vec3i(entry[0], entry[1], child)
        entries[slot + 1] = wp.vec3i(entry[0], entry[1], child + 1)
