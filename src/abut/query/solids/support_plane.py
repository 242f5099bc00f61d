"""Planes behind which a solid lies locally: distances to them bound the depth from above."""

import warp as wp

from abut.bounds.probe import probe_limit
from abut.bvh.layout import BvhView, Node, face_of, is_leaf, load_node, next_slot, root_of
from abut.bvh.wide import wide_reach
from abut.geometry.closest_point_tri import closest_point_tri
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.point.nearest_face import probe_at

MOST_FACES = wp.constant(64)  # in a ball; more are not looked at
NO_PLANE = wp.constant(wp.float64(-1.0))
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))


@wp.func
def squared_gap(node: Node, lower: wp.vec4f, upper: wp.vec4f):
    """The squared distance of two boxes, in float32."""
    total = wp.float32(0.0)
    for axis in range(3):
        gap = wp.max(node.low[axis] - upper[axis], lower[axis] - node.high[axis])
        gap = wp.max(gap, wp.float32(0.0))
        total += gap * gap
    return total


@wp.func(inline=False)
def support_height(
    side: PosedMesh,
    tree: BvhView,
    wide: wp.array[wp.vec4f],
    pose: wp.int32,
    at: wp.vec3d,
    normal: wp.vec3d,
    radius: wp.float64,
    allowed: wp.float64,
):
    """The height above a plane below which a solid lies within a ball around a point of the plane.

    ``normal`` is a unit vector. NO_PLANE if the height is more than allowed, which must be less
    than half the radius.
    """
    probe = probe_at(at, side.poses, pose, tree.origin, wide_reach(wide))
    within = wp.float32(probe_limit(probe, radius * radius))
    found = wp.int32(0)
    height = wp.float64(0.0)
    slot = root_of(tree)
    while slot >= 0:
        node = load_node(tree.nodes, slot)
        near = squared_gap(node, probe.lower, probe.upper) <= within
        slot = next_slot(node, near)
        if near and is_leaf(node):
            corners = load_face(side, face_of(node), pose)
            if closest_point_tri(at, corners).squared <= radius * radius:
                for k in range(3):
                    height = wp.max(height, wp.dot(corners[k] - at, normal))
                found += 1
                if height > allowed or found > MOST_FACES:
                    height = NO_PLANE
                    slot = -1
    if height != NO_PLANE:
        if cross_ray_tree(at + HALF * radius * normal, side, pose, tree)[0] != 0:
            height = NO_PLANE
    return height
