"""Solids of a robot and its obstacles: one inside the other, whose surfaces do not meet."""

import warp as wp

from abut.broad.boxes import Boxes
from abut.bvh.layout import BvhView
from abut.core.pair_queue import queue_stop, unpack_pair
from abut.geometry.poses import move_point
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh
from abut.operands.posed_pairs import RobotPairs, pair_at

# Loops stay loops: this code is rarely run but always compiled.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

NESTING_PAD = wp.constant(wp.float32(2.0**-18))  # of the largest coordinate, for rounded boxes


@wp.struct
class Solids:
    """Closed meshes among the slices of a scene, as solids."""

    closed: wp.array[wp.int32]  # of each slice: 0 open, 1 closed, 2 closed and oriented
    anchor_starts: wp.array[wp.int32]  # of each slice, one more at the end
    anchors: wp.array[wp.int32]  # a vertex of each component


@wp.func
def is_nested(low_a: wp.vec4f, high_a: wp.vec4f, low_b: wp.vec4f, high_b: wp.vec4f):
    """Whether what is in box a may be inside what is in box b.

    Boxes are those around the rotated boxes of meshes, so that the box of a mesh inside another may
    reach out of the box of that. Its middle cannot: it is the middle of the mesh's own box, which
    is in every convex set that contains the mesh.
    """
    size = wp.float32(0.0)
    for i in range(3):
        size = wp.max(size, wp.max(wp.abs(low_b[i]), wp.abs(high_b[i])))
    pad = NESTING_PAD * size
    inside = wp.bool(True)
    for i in range(3):
        middle = wp.float32(0.5) * (low_a[i] + high_a[i])
        if middle < low_b[i] - pad or middle > high_b[i] + pad:
            inside = False
    return inside


@wp.func
def may_hold(solids: Solids, outer: wp.int32, inner: wp.int32, nested: wp.bool):
    """Whether a component of a slice may be inside another slice, where boxes are so nested."""
    if solids.closed[outer] * solids.closed[inner] == 0:
        return False
    return nested or solids.anchor_starts[inner + 1] - solids.anchor_starts[inner] > 1


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
        if pairs.own[row[2]] >= 0:
            low_b = boxes.lower[first + pairs.own[row[2]]]
            high_b = boxes.upper[first + pairs.own[row[2]]]
        a_in_b = may_hold(solids, shape_b, shape_a, is_nested(low_a, high_a, low_b, high_b))
        b_in_a = may_hold(solids, shape_a, shape_b, is_nested(low_b, high_b, low_a, high_a))
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
