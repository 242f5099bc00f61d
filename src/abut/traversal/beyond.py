"""The nearest faces of two meshes so far apart that float64 cannot tell sideways from straight.

A way of length L that goes aside by s is longer by s * s / 2 L, which from 2**26 s on is less than
float64 resolves of L. So the nearest faces are those that reach farthest along the line between the
meshes, each on its side. The lowest of several counts.
"""

import warp as wp

from abut.approach import Approach, gap_of, to_bits
from abut.atomics import lower_to
from abut.bounds.relative import largest
from abut.faces import Faces, load_face, move_point, pose_of
from abut.hierarchy.tree import TreeView, face_of, is_leaf, link_of, load_node, root_of
from abut.pairs import NO_KEY, pack_pair
from abut.search import Search
from abut.traversal.remote import HALF, blur_of, centre_of, reach_along

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(64)  # a tree is at most 61 levels deep


@wp.func
def reach_of_face(side: Faces, face: wp.int32, pose: wp.int32, start: wp.vec3d, way: wp.vec3d):
    """How far a face reaches from a point along a direction."""
    p = load_face(side, face, pose)
    far = wp.max(wp.dot(p[0] - start, way), wp.dot(p[1] - start, way))
    return wp.max(far, wp.dot(p[2] - start, way))


@wp.func
def farthest_of(tree: TreeView, slot: wp.int32, motion: wp.mat44d, start: wp.vec3d, way: wp.vec3d):
    """How far a box reaches from a point along a direction; infinitely where it overflows."""
    node = load_node(tree.nodes, slot)
    far = wp.dot(centre_of(tree, node, motion) - start, way) + reach_along(node, motion, way)
    return wp.where(far < wp.float64(wp.inf), far, wp.float64(wp.inf))


@wp.func
def farthest_face(
    side: Faces,
    pose: wp.int32,
    tree: TreeView,
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
def farthest_of_all(side: Faces, pose: wp.int32, start: wp.vec3d, way: wp.vec3d):
    """The same by looking at every face."""
    best = wp.float64(-wp.inf)
    face = wp.int32(0)
    for k in range(side.faces.shape[0]):
        far = reach_of_face(side, k, pose, start, way)
        if far > best:
            best = far
            face = k
    return face


@wp.func
def way_between(from_a: wp.vec3d, to_b: wp.vec3d):
    """The direction from one point to another, whatever their distance."""
    between = to_b * HALF - from_a * HALF
    return wp.normalize(between / largest(between))


@wp.func
def take_pair(
    search: Search,
    bound: wp.array[wp.int64],
    pose: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
):
    """Lower the bound of a pose to the distance of two faces; their key where they are as near."""
    corners_a = load_face(search.a, face_a, pose)
    near = gap_of(corners_a, load_face(search.b, face_b, pose))
    bits = to_bits(near.distance)
    key = pack_pair(0, face_a, face_b, search.bits)
    return wp.where(bits <= lower_to(bound, pose, bits), key, NO_KEY)


@wp.func
def pair_beyond(
    search: Search,
    bound: wp.array[wp.int64],
    pose: wp.int32,
    tree_a: TreeView,
    tree_b: TreeView,
    from_a: wp.vec3d,
    to_b: wp.vec3d,
):
    """Key of the faces that reach farthest along a line, where they are as near as the bound."""
    way = way_between(from_a, to_b)
    blur = blur_of(tree_a, pose_of(search.a, pose), tree_b, pose_of(search.b, pose))
    face_a = farthest_face(search.a, pose, tree_a, from_a, way, blur)
    face_b = farthest_face(search.b, pose, tree_b, to_b, -way, blur)
    return take_pair(search, bound, pose, face_a, face_b)


@wp.kernel
def beyond_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    tree_a: TreeView,
    tree_b: TreeView,
    centre_a: wp.vec3d,
    centre_b: wp.vec3d,
    # out
    key_out: wp.array[wp.int64],
):
    """The faces of each pose that reach farthest along the line between the centres."""
    search = query.search
    for pose in range(span[0] + wp.tid(), span[1], span[2]):
        from_a = move_point(pose_of(search.a, pose), centre_a)
        to_b = move_point(pose_of(search.b, pose), centre_b)
        key_out[pose] = pair_beyond(search, query.bound, pose, tree_a, tree_b, from_a, to_b)


@wp.kernel
def beyond_of_all_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    centre_a: wp.vec3d,
    centre_b: wp.vec3d,
    # out
    key_out: wp.array[wp.int64],
):
    """The same by looking at every face."""
    search = query.search
    for pose in range(span[0] + wp.tid(), span[1], span[2]):
        from_a = move_point(pose_of(search.a, pose), centre_a)
        to_b = move_point(pose_of(search.b, pose), centre_b)
        way = way_between(from_a, to_b)
        face_a = farthest_of_all(search.a, pose, from_a, way)
        face_b = farthest_of_all(search.b, pose, to_b, -way)
        key_out[pose] = take_pair(search, query.bound, pose, face_a, face_b)
