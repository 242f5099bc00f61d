"""The nearest faces of two meshes far apart, found at their near ends.

However two faces lie, they are as far apart as the line between the meshes is long, less how far
each reaches along it. So the faces that reach farthest bound the distance from above, and what
reaches less by more than they are apart beyond the bound from below is out of the question: each
mesh by itself, which takes no walk of both trees. What is left is a few faces of either, unless
flat sides face each other: then pairs of nodes have to be told apart sideways (see remote).
"""

import warp as wp

from abut.bounds.relative_frame import largest
from abut.bvh.layout import BvhView, face_of, is_leaf, link_of, load_node, root_of
from abut.core.atomics import atomic_min_int64
from abut.core.pair_queue import NO_KEY
from abut.operands.contact_operands import Search
from abut.operands.distance_operands import Approach, clear_along, from_bits, gap_of
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of
from abut.traversal.nearest import Found, compare_faces
from abut.traversal.remote import APART, HALF, MARGIN, blur_of, centre_of, reach_along

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(64)  # a tree is at most 61 levels deep
MOST = wp.constant(64)  # faces at an end
CROWDED = wp.constant(wp.int64(-2))  # in place of a key: there are more


@wp.func
def reach_of_face(side: PosedMesh, face: wp.int32, pose: wp.int32, start: wp.vec3d, way: wp.vec3d):
    """How far a face reaches from a point along a direction."""
    p = load_face(side, face, pose)
    far = wp.max(wp.dot(p[0] - start, way), wp.dot(p[1] - start, way))
    return wp.max(far, wp.dot(p[2] - start, way))


@wp.func
def farthest_of(tree: BvhView, slot: wp.int32, motion: wp.mat44d, start: wp.vec3d, way: wp.vec3d):
    """How far a box reaches from a point along a direction; infinitely where it overflows."""
    node = load_node(tree.nodes, slot)
    far = wp.dot(centre_of(tree, node, motion) - start, way) + reach_along(node, motion, way)
    return wp.where(far < wp.float64(wp.inf), far, wp.float64(wp.inf))


@wp.func
def farthest_face(
    side: PosedMesh,
    pose: wp.int32,
    tree: BvhView,
    start: wp.vec3d,
    way: wp.vec3d,
    blur: wp.float64,
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
        if reaches[held] + blur < best:
            continue
        node = load_node(tree.nodes, slots[held])
        if is_leaf(node):
            far = reach_of_face(side, face_of(node), pose, start, way)
            if far > best or (far == best and face_of(node) < face):
                best = far
                face = face_of(node)
        else:
            child = 2 * link_of(node)
            left = farthest_of(tree, child, motion, start, way)
            right = farthest_of(tree, child + 1, motion, start, way)
            second = wp.int32(right > left)  # is opened first
            slots[held] = child + 1 - second
            reaches[held] = wp.min(left, right)
            slots[held + 1] = child + second
            reaches[held + 1] = wp.max(left, right)
            held += 2
    return face


@wp.func
def list_ends(
    side: PosedMesh,
    pose: wp.int32,
    tree: BvhView,
    start: wp.vec3d,
    way: wp.vec3d,
    least: wp.float64,
    blur: wp.float64,
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
            if reach_of_face(side, face_of(node), pose, start, way) >= least:
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
                far = farthest_of(tree, child + k, motion, start, way)
                held += wp.int32(not (far + blur < least))
    return count


@wp.func
def way_between(from_a: wp.vec3d, to_b: wp.vec3d):
    """The direction from one point to another, whatever their distance."""
    between = to_b * HALF - from_a * HALF
    return wp.normalize(between / largest(between))


@wp.func
def pair_of_ends(
    search: Search,
    bound: wp.array[wp.int64],
    pose: wp.int32,
    tree_a: BvhView,
    tree_b: BvhView,
    slack: wp.float64,
):
    """The nearest faces, if they are as near as the bound of a pose, lowered; or CROWDED."""
    ends_a = wp.zeros(shape=(MOST,), dtype=wp.int32)
    ends_b = wp.zeros(shape=(MOST,), dtype=wp.int32)
    pose_a = pose_of(search.a, pose)
    pose_b = pose_of(search.b, pose)
    from_a = centre_of(tree_a, load_node(tree_a.nodes, root_of(tree_a)), pose_a)
    to_b = centre_of(tree_b, load_node(tree_b.nodes, root_of(tree_b)), pose_b)
    way = way_between(from_a, to_b)
    blur = blur_of(tree_a, pose_a, tree_b, pose_b)
    face_a = farthest_face(search.a, pose, tree_a, from_a, way, blur)
    face_b = farthest_face(search.b, pose, tree_b, to_b, -way, blur)
    reach_a = reach_of_face(search.a, face_a, pose, from_a, way)
    reach_b = reach_of_face(search.b, face_b, pose, to_b, -way)
    near = gap_of(load_face(search.a, face_a, pose), load_face(search.b, face_b, pose))
    gap = wp.dot(to_b - from_a, way) - reach_a - reach_b
    depth = near.distance * MARGIN - gap + slack + wp.float64(4.0) * blur
    count_a = list_ends(search.a, pose, tree_a, from_a, way, reach_a - depth, blur, ends_a)
    count_b = list_ends(search.b, pose, tree_b, to_b, -way, reach_b - depth, blur, ends_b)
    found = Found()
    found.bits = bound[pose]
    found.key = NO_KEY
    if count_a > MOST or count_b > MOST:
        found.key = CROWDED
        return found
    for i in range(count_a):
        a = load_face(search.a, ends_a[i], pose)
        for j in range(count_b):
            b = load_face(search.b, ends_b[j], pose)
            if not clear_along(a, b, found.way, from_bits(found.bits) * MARGIN + slack):
                found = compare_faces(search, pose, ends_a[i], ends_b[j], a, b, APART, found)
    atomic_min_int64(bound, pose, found.bits)
    return found


@wp.kernel
def ends_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    tree_a: BvhView,
    tree_b: BvhView,
    # out
    crowded_out: wp.array[wp.int32],
    key_out: wp.array[wp.int64],
):
    """The nearest faces of each pose, or whether they are to be searched among too many."""
    for pose in range(span[0] + wp.tid(), span[1], span[2]):
        found = pair_of_ends(query.search, query.bound, pose, tree_a, tree_b, query.slack)
        crowded = found.key == CROWDED
        crowded_out[pose] = wp.int32(crowded)
        key_out[pose] = wp.where(crowded, NO_KEY, found.key)
