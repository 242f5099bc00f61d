"""Crowd: objects of a forest at their poses, and the pairs of them that may meet.

A meeting is a pair of objects of one copy of the scene, known by its rank among the sorted keys of
``meetings``. Within a meeting all is as between two meshes: its rank stands where a query of two
meshes has the number of the pose.
"""

import warp as wp

from abut.bounds.relative_frame import shifted_frame, turned_frame
from abut.bvh.batched import BatchedBvh, MeshSlice, bvh_at
from abut.bvh.layout import load_node, max_abs_coordinate, root_of
from abut.core.pair_queue import PairQueue, unpack_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.poses import is_identity
from abut.operands.contact_operands import Search
from abut.operands.posed_mesh import PosedMesh


@wp.struct
class Crowd:
    """Objects, their meetings, and the queues of a search among their faces."""

    forest: BatchedBvh
    body: wp.array[wp.int32]  # of each object, -1 where there is none
    poses: wp.array[wp.mat44d]  # of each object, copy after copy of the scene
    object_count: wp.int32  # of one copy
    meetings: PairQueue
    object_bits: wp.vec2i  # layout of keys of meetings
    sharing: wp.int32  # of faces of one object, see common_corners
    bits: wp.vec2i  # layout of keys of faces
    hits: PairQueue
    undecided: PairQueue
    best: wp.array[wp.int64]  # the pair found per meeting; empty: every pair is wanted


@wp.struct
class Meeting:
    """Two bodies and where their poses are."""

    copy: wp.int32
    own: wp.bool  # an object and itself, in its own frame
    body_a: MeshSlice
    body_b: MeshSlice
    at_a: wp.int32
    at_b: wp.int32


@wp.func
def meeting_at(crowd: Crowd, rank: wp.int32):
    """A meeting."""
    row = unpack_pair(crowd.meetings.keys[rank], crowd.object_bits)
    out = Meeting()
    out.copy = row[0]
    out.own = row[1] == row[2]
    out.body_a = crowd.forest.slices[crowd.body[row[1]]]
    out.body_b = crowd.forest.slices[crowd.body[row[2]]]
    out.at_a = row[0] * crowd.object_count + row[1]
    out.at_b = row[0] * crowd.object_count + row[2]
    return out


@wp.func
def faces_of(forest: BatchedBvh, body: MeshSlice):
    """The faces of a body, not moved."""
    out = PosedMesh()
    out.points = forest.points[body.first_point : body.first_point + body.point_count]
    out.faces = forest.faces[body.first_face : body.first_face + body.face_count]
    return out


@wp.func
def side_of(crowd: Crowd, body: MeshSlice, at: wp.int32, own: wp.bool):
    """The faces of one side of a meeting, at their pose."""
    out = faces_of(crowd.forest, body)
    if not own:
        out.poses = crowd.poses[at : at + 1]
        out.pose_count = 1
    return out


@wp.func
def search_of(crowd: Crowd, meeting: Meeting):
    """The search of a meeting, as of two meshes."""
    out = Search()
    out.a = side_of(crowd, meeting.body_a, meeting.at_a, meeting.own)
    out.b = side_of(crowd, meeting.body_b, meeting.at_b, meeting.own)
    out.sharing = wp.where(meeting.own, crowd.sharing, SHARED_NONE)
    out.bits = crowd.bits
    out.hits = crowd.hits
    out.undecided = crowd.undecided
    out.best = crowd.best
    return out


@wp.func
def frame_of(crowd: Crowd, meeting: Meeting):
    """How b's frame sits in a's."""
    body_a = meeting.body_a
    body_b = meeting.body_b
    tree_a = bvh_at(crowd.forest, body_a)
    tree_b = bvh_at(crowd.forest, body_b)
    reach_a = max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
    reach_b = max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b)))
    pose_a = crowd.poses[meeting.at_a]
    pose_b = crowd.poses[meeting.at_b]
    if meeting.own or (is_identity(pose_a) and is_identity(pose_b)):
        return shifted_frame(body_a.origin, body_b.origin, reach_b)
    return turned_frame(
        pose_a,
        pose_b,
        body_a.origin,
        body_b.origin,
        reach_a,
        reach_b,
    )
