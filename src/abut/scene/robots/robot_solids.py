"""Solids of a robot and its obstacles: one inside the other, whose surfaces do not meet."""

import warp as wp

from abut.bounds.float32 import row_xyz_float64
from abut.broad.boxes import Boxes
from abut.bvh.batched import BatchedBvh
from abut.bvh.layout import BvhView
from abut.core.pair_queue import queue_stop, unpack_pair
from abut.geometry.poses import move_point
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh
from abut.operands.posed_pairs import RobotPairs, pair_at

# Loops stay loops: this code is rarely run but always compiled.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.struct
class Solids:
    """Closed meshes among the slices of a scene, as solids."""

    closed: wp.array[wp.int32]  # of each slice: 0 open, 1 closed, 2 closed and oriented
    anchor_starts: wp.array[wp.int32]  # of each slice, one more at the end
    anchors: wp.array[wp.int32]  # a vertex of each component


@wp.func
def is_in_root_box(p: wp.vec3d, low: wp.vec4f, high: wp.vec4f):
    """Return whether a point lies in the box of a root."""
    from_low = p - row_xyz_float64(low)
    to_high = row_xyz_float64(high) - p
    return wp.min(from_low) >= wp.float64(0.0) and wp.min(to_high) >= wp.float64(0.0)


@wp.func
def may_hold(
    bvhs: BatchedBvh,
    solids: Solids,
    outer: wp.int32,
    low: wp.vec4f,
    high: wp.vec4f,
    inner: wp.int32,
    pose: wp.mat44d,
):
    """Whether a component of a posed slice may be inside another, which is in a box.

    A vertex of the component is then in the box. Neither its own box need be, which is larger than
    a rotated mesh, nor the middle of that, which may be off the mesh.
    """
    found = wp.bool(False)
    if solids.closed[outer] * solids.closed[inner] != 0:
        first = bvhs.slices[inner].first_point
        for k in range(solids.anchor_starts[inner], solids.anchor_starts[inner + 1]):
            p = move_point(pose, bvhs.points[first + solids.anchors[k]])
            found = found or is_in_root_box(p, low, high)
    return found


@wp.func
def component_inside(
    solids: Solids,
    shape: wp.int32,
    inner: PosedMesh,
    outer: PosedMesh,
    tree: BvhView,
    kind: wp.int32,
):
    """Whether a component of a mesh lies inside a closed one whose surface it does not meet."""
    found = wp.bool(False)
    for k in range(solids.anchor_starts[shape], solids.anchor_starts[shape + 1]):
        if not found:
            p = move_point(inner.poses[0], inner.points[solids.anchors[k]])
            crossed = cross_ray_tree(p, outer, 0, tree)
            found = (kind == 2 and crossed[0] != 0) or (kind == 1 and crossed[1] % 2 == 1)
    return found


@wp.kernel
def robot_solids_kernel(
    # in
    span: wp.vec3i,
    pairs: RobotPairs,
    boxes: Boxes,
    scene_boxes: Boxes,
    solids: Solids,
    # out
    flags_out: wp.array[wp.int32],
):
    """Flag configurations in which a component of a closed object lies inside another one.

    Pairs whose surfaces meet must have been flagged already.
    """
    for rank in range(span[0] + wp.tid(), queue_stop(pairs.object_pairs, span[1]), span[2]):
        row = unpack_pair(pairs.object_pairs.keys[rank], pairs.object_bits)
        shape_a = pairs.mesh[pairs.rows[row[1]]]
        shape_b = pairs.mesh[row[2]]
        if flags_out[row[0]] != 0:
            continue
        first = row[0] * pairs.rows.shape[0]
        low_a = boxes.lower[first + row[1]]
        high_a = boxes.upper[first + row[1]]
        low_b = scene_boxes.lower[row[2]]
        high_b = scene_boxes.upper[row[2]]
        pose_b = pairs.poses[row[2]]
        if pairs.own[row[2]] >= 0:
            low_b = boxes.lower[first + pairs.own[row[2]]]
            high_b = boxes.upper[first + pairs.own[row[2]]]
            pose_b = pairs.own_poses[first + pairs.own[row[2]]]
        pose_a = pairs.own_poses[first + row[1]]
        a_in_b = may_hold(pairs.bvhs, solids, shape_b, low_b, high_b, shape_a, pose_a)
        b_in_a = may_hold(pairs.bvhs, solids, shape_a, low_a, high_a, shape_b, pose_b)
        if a_in_b or b_in_a:
            pair = pair_at(pairs, rank)
            met = wp.bool(False)
            if a_in_b:
                kind = solids.closed[shape_b]
                met = component_inside(solids, shape_a, pair.a, pair.b, pair.tree_b, kind)
            if b_in_a and not met:
                kind = solids.closed[shape_a]
                met = component_inside(solids, shape_b, pair.b, pair.a, pair.tree_a, kind)
            if met:
                flags_out[row[0]] = 1
