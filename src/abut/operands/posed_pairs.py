"""Posed pairs: the operands of every query.

A row of the list is two meshes with their hierarchies, each at a pose. Two meshes at a batch of
poses are such a list (``MeshPairs``), and so are the object pairs that the broad phase of a scene
has found (``ScenePairs``). Traversals read rows with ``pair_at`` and are one text for both: their
kernels are made for either type.
"""

from collections.abc import Sequence
from typing import Any

import warp as wp

from abut.bounds.relative_frame import rotated_frame, translated_frame
from abut.bvh.batched import BatchedBvh, MeshSlice, bvh_at, slice_of_item
from abut.bvh.layout import BvhView, load_node, max_abs_coordinate, root_of
from abut.core.pair_queue import MAX_COUNT, PairQueue, queue_stop, unpack_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.poses import is_identity
from abut.operands.posed_mesh import PosedMesh, pose_of


@wp.struct
class PosedPair:
    """One row: two posed meshes and their hierarchies."""

    a: PosedMesh
    b: PosedMesh
    tree_a: BvhView
    tree_b: BvhView
    pose: wp.int32  # row of the poses of a and b
    sharing: wp.int32  # vertices that faces of a and b may share, see common_corners
    environment: wp.int32  # copy of the scene, or row of the batch


@wp.struct
class MeshExtent:
    """Bounds of a mesh in its own frame."""

    centre: wp.vec3d
    size: wp.float64  # sum of their sides
    reach: wp.float64  # largest coordinate


@wp.struct
class MeshPairs:
    """Two meshes at ``count`` poses; a mesh against itself where ``sharing`` says so."""

    a: PosedMesh
    b: PosedMesh
    tree_a: BvhView
    tree_b: BvhView
    extent_a: MeshExtent
    extent_b: MeshExtent
    sharing: wp.int32
    count: wp.int32


@wp.struct
class ScenePairs:
    """Pairs of objects of a scene, or of each of its environments (copies of the scene).

    A row is known by its rank among the sorted keys of ``object_pairs``.
    """

    bvhs: BatchedBvh
    mesh: wp.array[wp.int32]  # slice of each object in ``bvhs``, -1 where there is no object
    poses: wp.array[wp.mat44d]  # of each object, environment after environment
    object_count: wp.int32  # of one environment
    object_pairs: PairQueue
    object_bits: wp.vec2i  # layout of their keys
    sharing: wp.int32  # of faces of one object


@wp.struct
class RobotPairs:
    """Pairs of an object of a robot and any object of its scene, for many configurations.

    Keys of ``object_pairs`` are (configuration, object of the robot, row of the scene). Obstacles
    have one pose for all configurations.
    """

    bvhs: BatchedBvh
    mesh: wp.array[wp.int32]  # slice of each object of the scene, -1 where there is none
    poses: wp.array[wp.mat44d]  # of each object of the scene
    rows: wp.array[wp.int32]  # of the objects of the robot in the scene
    own: wp.array[wp.int32]  # of each object of the scene, its number in the robot or -1
    own_poses: wp.array[wp.mat44d]  # of the objects of the robot, configuration by configuration
    object_pairs: PairQueue
    object_bits: wp.vec2i  # layout of their keys


@wp.func
def pair_stop(pairs: MeshPairs, stop: wp.int32):
    """End of the rows there are, at most ``stop``."""
    return wp.min(pairs.count, stop)


@wp.func
def pair_stop(pairs: ScenePairs, stop: wp.int32):
    """End of the rows there are, at most ``stop``."""
    return queue_stop(pairs.object_pairs, stop)


@wp.func
def pair_stop(pairs: RobotPairs, stop: wp.int32):
    """End of the rows there are, at most ``stop``."""
    return queue_stop(pairs.object_pairs, stop)


@wp.func
def row_end(stop: wp.int32, span_stop: wp.int32):
    """End of the rows to write: of all in a span, or of ``stop`` where the host knew no count."""
    return wp.where(span_stop == MAX_COUNT, stop, span_stop)


@wp.func
def pair_at(pairs: MeshPairs, rank: wp.int32):
    """Row ``rank``."""
    out = PosedPair()
    out.a = pairs.a
    out.b = pairs.b
    out.tree_a = pairs.tree_a
    out.tree_b = pairs.tree_b
    out.pose = rank
    out.sharing = pairs.sharing
    out.environment = rank
    return out


@wp.func
def object_mesh(pairs: ScenePairs, part: MeshSlice, at: wp.int32, posed: wp.bool):
    """The faces of an object, at its pose or in its own frame."""
    out = PosedMesh()
    out.points = pairs.bvhs.points[part.first_point : part.first_point + part.point_count]
    out.faces = pairs.bvhs.faces[part.first_face : part.first_face + part.face_count]
    if posed:
        out.poses = pairs.poses[at : at + 1]
        out.pose_count = 1
    return out


@wp.func
def objects_at(pairs: ScenePairs, rank: wp.int32):
    """(environment, object a, object b) of row ``rank``."""
    return unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)


@wp.func
def environment_at(pairs: MeshPairs, rank: wp.int32):
    """The environment of row ``rank``."""
    return rank


@wp.func
def environment_at(pairs: ScenePairs, rank: wp.int32):
    """The environment of row ``rank``."""
    return objects_at(pairs, rank)[0]


@wp.func
def environment_at(pairs: RobotPairs, rank: wp.int32):
    """The configuration of row ``rank``."""
    return unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)[0]


@wp.func
def pair_of(pairs: ScenePairs, row: wp.vec3i):
    """The pair (environment, object a, object b); an object against itself in its own frame."""
    other = row[1] != row[2]
    slice_a = pairs.bvhs.slices[pairs.mesh[row[1]]]
    slice_b = pairs.bvhs.slices[pairs.mesh[row[2]]]
    first = row[0] * pairs.object_count
    out = PosedPair()
    out.a = object_mesh(pairs, slice_a, first + row[1], other)
    out.b = object_mesh(pairs, slice_b, first + row[2], other)
    out.tree_a = bvh_at(pairs.bvhs, slice_a)
    out.tree_b = bvh_at(pairs.bvhs, slice_b)
    out.sharing = wp.where(other, SHARED_NONE, pairs.sharing)
    out.environment = row[0]
    return out


@wp.func
def pair_at(pairs: ScenePairs, rank: wp.int32):
    """Row ``rank``."""
    return pair_of(pairs, objects_at(pairs, rank))


@wp.func
def robot_mesh(pairs: RobotPairs, part: MeshSlice, configuration: wp.int32, body: wp.int32):
    """The faces of an object of the robot at its pose."""
    at = configuration * pairs.rows.shape[0] + body
    out = PosedMesh()
    out.points = pairs.bvhs.points[part.first_point : part.first_point + part.point_count]
    out.faces = pairs.bvhs.faces[part.first_face : part.first_face + part.face_count]
    out.poses = pairs.own_poses[at : at + 1]
    out.pose_count = 1
    return out


@wp.func
def pair_at(pairs: RobotPairs, rank: wp.int32):
    """Row ``rank``."""
    row = unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)
    slice_a = pairs.bvhs.slices[pairs.mesh[pairs.rows[row[1]]]]
    slice_b = pairs.bvhs.slices[pairs.mesh[row[2]]]
    out = PosedPair()
    out.a = robot_mesh(pairs, slice_a, row[0], row[1])
    if pairs.own[row[2]] >= 0:
        out.b = robot_mesh(pairs, slice_b, row[0], pairs.own[row[2]])
    else:
        out.b.points = pairs.bvhs.points[
            slice_b.first_point : slice_b.first_point + slice_b.point_count
        ]
        out.b.faces = pairs.bvhs.faces[slice_b.first_face : slice_b.first_face + slice_b.face_count]
        out.b.poses = pairs.poses[row[2] : row[2] + 1]
        out.b.pose_count = 1
    out.tree_a = bvh_at(pairs.bvhs, slice_a)
    out.tree_b = bvh_at(pairs.bvhs, slice_b)
    out.sharing = SHARED_NONE
    out.environment = row[0]
    return out


@wp.func
def frame_of(pair: PosedPair):
    """Return the relative frame of the boxes of b in that of the boxes of a."""
    reach_a = max_abs_coordinate(load_node(pair.tree_a.nodes, root_of(pair.tree_a)))
    reach_b = max_abs_coordinate(load_node(pair.tree_b.nodes, root_of(pair.tree_b)))
    pose_a = pose_of(pair.a, pair.pose)
    pose_b = pose_of(pair.b, pair.pose)
    if is_identity(pose_a) and is_identity(pose_b):
        return translated_frame(pair.tree_a.origin, pair.tree_b.origin, reach_b)
    return rotated_frame(pose_a, pose_b, pair.tree_a.origin, pair.tree_b.origin, reach_a, reach_b)


def mesh_pairs(
    a: Any,
    b: Any,
    sharing: int = SHARED_NONE,
    count: int = 1,
    trees: Sequence[Any] = (),
    extents: Sequence[Any] = (),
) -> Any:
    """MeshPairs of two posed meshes.

    Args:
        a, b: PosedMesh of each.
        sharing: Vertices that they share, see common_corners.
        count: Poses.
        trees: BvhView of each, or none.
        extents: MeshExtent of each, for the far field of distances.
    """
    out = MeshPairs()
    out.a, out.b, out.sharing, out.count = a, b, sharing, count
    if trees:
        out.tree_a, out.tree_b = trees[0], trees[-1]
    if extents:
        out.extent_a, out.extent_b = extents
    return out


@wp.struct
class WorkItems:
    """Division of rows into work items.

    ``starts`` says where the items of each row begin, and after the last where all end. Where it
    is empty, each row has ``each`` items.
    """

    starts: wp.array[wp.int32]
    each: wp.int32
    deepest: wp.int32  # levels down to the subtrees of a that are items of a descent, at most
    leaves: wp.int32  # that such a subtree has, about, at least


@wp.func
def item_stop(items: WorkItems, stop: wp.int32):
    """End of the items there are, at most ``stop``."""
    out = stop
    if items.starts.shape[0] > 0:
        out = wp.min(items.starts[items.starts.shape[0] - 1], stop)
    return out


@wp.func
def row_and_item(items: WorkItems, work: wp.int32):
    """(row, item of that row)."""
    if items.starts.shape[0] > 0:
        row = slice_of_item(items.starts, work)
        return wp.vec2i(row, work - items.starts[row])
    return wp.vec2i(work / items.each, work % items.each)


@wp.func
def subtree_depth(items: WorkItems, face_count: wp.int32):
    """Return the depth below the root of the subtrees that are work items of a descent."""
    depth = wp.int32(0)
    while depth < items.deepest and (face_count >> (depth + 1)) >= items.leaves:
        depth += 1
    return depth
