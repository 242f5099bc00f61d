"""The nearest faces of two meshes so far apart that float64 cannot tell sideways from straight.

A way of length L that goes aside by s is longer by s * s / 2 L, which from 2**26 s on is less than
float64 resolves of L. So the nearest faces are those that reach farthest along the line between the
meshes, each on its side. The lowest of several counts.
"""

import warp as wp

from abut.bvh.layout import BvhView
from abut.core.atomics import atomic_min_int64
from abut.core.pair_queue import NO_KEY, pack_pair
from abut.geometry.poses import move_point
from abut.operands.contact_operands import Search
from abut.operands.distance_operands import Approach, gap_of, to_bits
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of
from abut.traversal.ends import farthest_face, reach_of_face, way_between
from abut.traversal.remote import blur_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def farthest_of_all(side: PosedMesh, pose: wp.int32, start: wp.vec3d, way: wp.vec3d):
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
    return wp.where(bits <= atomic_min_int64(bound, pose, bits), key, NO_KEY)


@wp.func
def pair_beyond(
    search: Search,
    bound: wp.array[wp.int64],
    pose: wp.int32,
    tree_a: BvhView,
    tree_b: BvhView,
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
    tree_a: BvhView,
    tree_b: BvhView,
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
