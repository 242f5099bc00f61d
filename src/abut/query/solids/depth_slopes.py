"""Slopes: cells without local maxima of the depth, because it grows in one direction everywhere."""

import warp as wp

from abut.bounds.probe import probe_limit
from abut.bvh.layout import BvhView, face_of, is_leaf, load_node, next_slot, root_of
from abut.bvh.wide import wide_reach
from abut.geometry.closest_point_tri import closest_point_tri
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.point.nearest_face import NO_FACE, probe_at
from abut.query.solids.depth_cells import (
    MIDDLE_OUT,
    Polytope,
    Precision,
    Scratch,
    SolidOperand,
    away_from,
    find_nearest,
)
from abut.query.solids.depth_game import list_face
from abut.query.solids.support_plane import MOST_FACES, squared_gap

CLIMBS = wp.constant(4)  # directions that are tried
STEP = wp.constant(wp.float64(2.5))  # radii and more, by which an ascent is tried
SLIVER = wp.constant(wp.float64(2.0**-20))  # twice the area over the square of the longest edge
CLEARLY = wp.constant(wp.float64(2.0**-28))  # more than the error of a normal, if not of a sliver
UNCLEAR = wp.constant(wp.float64(-2.0))
ZERO = wp.constant(wp.float64(0.0))


@wp.func(inline=False)
def ascend(
    a: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    depth: wp.float64,
    slope: wp.vec4d,
    precision: Precision,
    scratch: Scratch,
):
    """A face that allows a local maximum of the depth in the cell; NO_FACE: there is none.

    ``slope`` is a unit vector and the rate at which the distance to the nearest faces grows.
    Without a guess of a rate that is large enough, -1.
    """
    radius = cell.radius + precision.noise
    rate = depth * slope[3] - wp.float64(1.1) * radius
    if rate <= ZERO:
        return -1
    step = STEP * radius * (depth + radius) / rate
    reach = depth + wp.float64(2.0) * radius
    bound = (reach * reach + wp.float64(2.0) * step * radius + step * step) * precision.margin
    bound = wp.sqrt(bound) + precision.noise
    way = wp.vec3d(slope[0], slope[1], slope[2])
    p = cell.middle + step * way
    return find_nearest(a, pose, p, -1, bound * bound, scratch.links, scratch.gaps).face


@wp.func
def rate_along(
    a: SolidOperand,
    pose: wp.int32,
    p: wp.vec3d,
    way: wp.vec3d,
    count: wp.int32,
    scratch: Scratch,
):
    """The least rate at which the distances to the listed faces grow from p along a direction."""
    rate = wp.float64(1.0)
    for i in range(count):
        rate = wp.min(rate, wp.dot(way, away_from(a, pose, p, scratch.faces[i])))
    return wp.vec4d(way[0], way[1], way[2], rate)


@wp.func
def climb_slope(
    a: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    depth: wp.float64,
    precision: Precision,
    scratch: Scratch,
):
    """List faces that allow a local maximum of the depth in a cell; returns their number.

    The list has the face nearest to the middle, which is ``depth`` away. 0: there is no maximum.
    """
    count = wp.int32(1)
    total = away_from(a, pose, cell.middle, scratch.faces[0])
    slope = rate_along(a, pose, cell.middle, total, 0, scratch)
    for _ in range(CLIMBS):
        face = ascend(a, pose, cell, depth, slope, precision, scratch)
        if face == NO_FACE:
            return 0
        more = list_face(face, count, scratch)
        if more == count:
            break
        count = more
        total += away_from(a, pose, cell.middle, face)
        slope = rate_along(a, pose, cell.middle, wp.normalize(total), count, scratch)
    return count


@wp.func(inline=False)
def least_facing(
    side: PosedMesh,
    tree: BvhView,
    wide: wp.array[wp.vec4f],
    pose: wp.int32,
    at: wp.vec3d,
    normal: wp.vec3d,
    radius: wp.float64,
):
    """The unit normal that is least along a unit vector, of the faces that meet a ball.

    The fourth number is the product of both; UNCLEAR for slivers, or if the faces are too many.
    """
    probe = probe_at(at, side.poses, pose, tree.origin, wide_reach(wide))
    within = wp.float32(probe_limit(probe, radius * radius))
    found = wp.int32(0)
    out = wp.vec4d(ZERO, ZERO, ZERO, wp.float64(2.0))
    slot = root_of(tree)
    while slot >= 0:
        node = load_node(tree.nodes, slot)
        near = squared_gap(node, probe.lower, probe.upper) <= within
        slot = next_slot(node, near)
        if near and is_leaf(node):
            corners = load_face(side, face_of(node), pose)
            if closest_point_tri(at, corners).squared <= radius * radius:
                found += 1
                ab = corners[1] - corners[0]
                ac = corners[2] - corners[0]
                area = wp.cross(ab, ac)
                size = wp.length(area)
                if found > MOST_FACES or size <= SLIVER * wp.max(wp.dot(ab, ab), wp.dot(ac, ac)):
                    return wp.vec4d(ZERO, ZERO, ZERO, UNCLEAR)
                along = wp.dot(area, normal) / size
                if along < out[3]:
                    out = wp.vec4d(area[0] / size, area[1] / size, area[2] / size, along)
    return out


@wp.func
def has_slope(
    a: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    depth: wp.float64,
    known: wp.int32,
    precision: Precision,
    scratch: Scratch,
):
    """Whether the depth grows behind the surface near a cell, because all faces face one way.

    ``depth`` is the distance of the middle to the surface, whose nearest face is listed first.
    """
    corners = load_face(a.faces, scratch.faces[0], pose)
    total = wp.normalize(wp.cross(corners[1] - corners[0], corners[2] - corners[0]))
    radius = wp.float64(2.0) * (cell.radius + precision.noise)
    radius += wp.where((known & MIDDLE_OUT) != 0, -depth, depth)
    radius = wp.max(radius, depth) * precision.margin
    clearly = wp.max(CLEARLY, precision.margin - wp.float64(1.0))
    for _ in range(CLIMBS):
        way = wp.normalize(total)
        least = least_facing(a.faces, a.tree, a.wide, pose, cell.middle, way, radius)
        if least[3] > clearly:
            return True
        if least[3] == UNCLEAR:
            return False
        total += wp.vec3d(least[0], least[1], least[2])
    return False
