"""Lower bounds of the gap of two moving boxes or faces over an interval of time.

A direction separates two convex sets in the middle of the interval by a gap. Points of either set
then move along the direction by their velocities, which are linear in position, and by at most
half the bound of accelerations times the square of time. See design/robot-motions.md.
"""

import warp as wp

from abut.bvh.layout import Node
from abut.geometry.distance_tri_tri import closest_pair, max_abs_component, relative_to
from abut.operands.jointed_bodies import (
    WORLD,
    BodyStates,
    JointedBodies,
    JointedObjects,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NONE = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
ILL_CONDITIONED = wp.constant(wp.float64(2.0**-12))  # distance of faces, over their size


@wp.struct
class PairMotion:
    """Poses of two objects, and velocities of their points in the frame of their common body."""

    rotation_a: wp.mat33d
    position_a: wp.vec3d
    spin_a: wp.vec3d
    drift_a: wp.vec3d
    rotation_b: wp.mat33d
    position_b: wp.vec3d
    spin_b: wp.vec3d
    drift_b: wp.vec3d
    bend: wp.float64  # bound of both accelerations together


@wp.struct
class MovingGap:
    """A gap in the middle of an interval, and a bound of how much smaller it is at other times."""

    gap: wp.float64
    travel: wp.float64
    direction: wp.vec3d  # that the gap is measured along, from b to a; 0 where boxes overlap


@wp.struct
class WorldBox:
    """A box at a pose."""

    centre: wp.vec3d
    half: wp.vec3d
    rotation: wp.mat33d


@wp.func
def motion_of_pair(
    bodies: JointedBodies,
    objects: JointedObjects,
    states: BodyStates,
    first_body: wp.int32,
    first_object: wp.int32,
    pair: wp.vec3i,
):
    """Return how two objects are and move."""
    out = PairMotion()
    out.rotation_a = states.object_rotations[first_object + pair[0]]
    out.position_a = states.object_positions[first_object + pair[0]]
    out.rotation_b = states.object_rotations[first_object + pair[1]]
    out.position_b = states.object_positions[first_object + pair[1]]
    common = pair[2]
    spin = wp.vec3d()
    drift = wp.vec3d()
    if common != WORLD:
        spin = states.spins[first_body + common]
        drift = states.drifts[first_body + common]
    width = bodies.parents.shape[0] + 1
    bend = wp.float64(0.0)
    body_a = objects.bodies[pair[0]]
    if body_a != common:
        out.spin_a = states.spins[first_body + body_a] - spin
        out.drift_a = states.drifts[first_body + body_a] - drift
        bend += states.bends[(first_body + body_a) * width + common + 1]
    body_b = objects.bodies[pair[1]]
    if body_b != common:
        out.spin_b = states.spins[first_body + body_b] - spin
        out.drift_b = states.drifts[first_body + body_b] - drift
        bend += states.bends[(first_body + body_b) * width + common + 1]
    out.bend = bend
    return out


@wp.func
def box_in_world(node: Node, origin: wp.vec3d, rotation: wp.mat33d, position: wp.vec3d):
    """Return the box of a node of a posed tree."""
    out = WorldBox()
    low = wp.vec3d(wp.float64(node.low[0]), wp.float64(node.low[1]), wp.float64(node.low[2]))
    high = wp.vec3d(wp.float64(node.high[0]), wp.float64(node.high[1]), wp.float64(node.high[2]))
    out.half = HALF * (high - low)
    out.centre = rotation * (HALF * (high + low) + origin) + position
    out.rotation = rotation
    return out


@wp.func
def box_extent_along(box: WorldBox, direction: wp.vec3d):
    """Return how far a box reaches from its centre along a direction, times its length."""
    local = direction * box.rotation
    return (
        box.half[0] * wp.abs(local[0])
        + box.half[1] * wp.abs(local[1])
        + box.half[2] * wp.abs(local[2])
    )


@wp.func
def nearest_in_box(box: WorldBox, p: wp.vec3d):
    """Return about the point of a box that is nearest to p."""
    local = (p - box.centre) * box.rotation
    local = wp.vec3d(
        wp.clamp(local[0], -box.half[0], box.half[0]),
        wp.clamp(local[1], -box.half[1], box.half[1]),
        wp.clamp(local[2], -box.half[2], box.half[2]),
    )
    return box.centre + box.rotation * local


@wp.func
def direction_of_boxes(a: WorldBox, b: WorldBox):
    """Return a unit vector from b to a between points that are near; 0 where they overlap."""
    on_a = nearest_in_box(a, nearest_in_box(b, a.centre))
    return wp.normalize(on_a - nearest_in_box(b, on_a))


@wp.func
def gap_of_boxes(a: WorldBox, b: WorldBox, direction: wp.vec3d):
    """Return the gap of two boxes along a unit vector, from b to a; a lower bound of distances."""
    between = wp.dot(direction, a.centre - b.centre)
    return between - box_extent_along(a, direction) - box_extent_along(b, direction)


@wp.func
def velocity_of_centres(a: WorldBox, b: WorldBox, motion: PairMotion):
    """Return the velocity of the centre of a relative to that of b."""
    velocity = motion.drift_a - motion.drift_b
    return velocity + wp.cross(motion.spin_a, a.centre) - wp.cross(motion.spin_b, b.centre)


@wp.func
def gap_moving_balls(
    a: WorldBox, b: WorldBox, sizes: wp.vec2d, motion: PairMotion, half: wp.float64
):
    """Return the gap of balls of these radii around two boxes, as ``gap_moving_boxes``."""
    out = MovingGap()
    between = a.centre - b.centre
    distance = wp.length(between)
    out.gap = distance - sizes[0] - sizes[1]
    if out.gap > NONE:
        along = wp.abs(wp.dot(between, velocity_of_centres(a, b, motion))) / distance
        turn = wp.length(motion.spin_a) * sizes[0] + wp.length(motion.spin_b) * sizes[1]
        out.travel = half * (along + turn + HALF * half * motion.bend)
    return out


@wp.func
def gap_moving_boxes(a: WorldBox, b: WorldBox, motion: PairMotion, half: wp.float64):
    """Return the gap of two boxes for ``half`` before and after a time.

    The gap is 0 where the boxes overlap, and the travel is that of all their points then.

    Guarantee:
        Conservative, up to rounding: no points of the boxes are nearer to each other than the gap
        less the travel.
    """
    out = MovingGap()
    direction = direction_of_boxes(a, b)
    out.direction = direction
    velocity = velocity_of_centres(a, b, motion)
    along = wp.length(velocity)
    turn = wp.float64(0.0)
    if wp.length_sq(direction) == NONE:
        turn = wp.length(motion.spin_a) * wp.length(a.half)
        turn += wp.length(motion.spin_b) * wp.length(b.half)
    else:
        out.gap = gap_of_boxes(a, b, direction)
        along = wp.abs(wp.dot(direction, velocity))
        turn = box_extent_along(a, wp.cross(direction, motion.spin_a))
        turn += box_extent_along(b, wp.cross(direction, motion.spin_b))
    out.travel = half * (along + turn + HALF * half * motion.bend)
    return out


@wp.func
def least_along(t: wp.mat33d, direction: wp.vec3d):
    """Return the least coordinate of corners along a direction."""
    return wp.min(t * direction)


@wp.func
def most_along(t: wp.mat33d, direction: wp.vec3d):
    """Return the largest coordinate of corners along a direction."""
    return wp.max(t * direction)


@wp.func
def gap_of_faces_along(
    a: wp.mat33d, b: wp.mat33d, direction: wp.vec3d, motion: PairMotion, half: wp.float64
):
    """Return the gap of two faces along a unit vector, from b to a."""
    out = MovingGap()
    out.gap = least_along(a, direction) - most_along(b, direction)
    turn_a = wp.cross(direction, motion.spin_a)
    turn_b = wp.cross(direction, motion.spin_b)
    along = wp.dot(direction, motion.drift_a - motion.drift_b)
    # corners before and after: linear in position, so the least is at a corner
    ahead = least_along(a, direction + half * turn_a) - most_along(b, direction + half * turn_b)
    behind = least_along(a, direction - half * turn_a) - most_along(b, direction - half * turn_b)
    least = wp.min(ahead + half * along, behind - half * along)
    out.travel = out.gap - least + HALF * half * half * motion.bend
    return out


@wp.func
def wider_gap(
    best: MovingGap,
    a: wp.mat33d,
    b: wp.mat33d,
    normal: wp.vec3d,
    motion: PairMotion,
    half: wp.float64,
):
    """Return the better of a gap and those along a vector, either way."""
    out = best
    direction = wp.normalize(normal)
    if least_along(a, direction) < most_along(b, direction):
        direction = -direction
    other = gap_of_faces_along(a, b, direction, motion, half)
    if other.gap - other.travel > out.gap - out.travel:
        out = other
    return out


@wp.func(inline=False)
def gap_moving_faces(a: wp.mat33d, b: wp.mat33d, motion: PairMotion, half: wp.float64):
    """Return the gap of two faces, which may be negative, for ``half`` before and after a time.

    Near points give its direction. Where they are so near that roundings turn it, normals of faces
    and pairs of edges are tried too.

    Guarantee:
        As of ``gap_moving_boxes``.
    """
    p = relative_to(a, a[0])
    q = relative_to(b, a[0])
    pair = closest_pair(p, q)
    between = pair.p - pair.q
    out = gap_of_faces_along(a, b, wp.normalize(between), motion, half)
    size = wp.max(max_abs_component(p), max_abs_component(q))
    if wp.max(wp.abs(between)) < ILL_CONDITIONED * size:
        out = wider_gap(out, a, b, wp.cross(a[1] - a[0], a[2] - a[0]), motion, half)
        out = wider_gap(out, a, b, wp.cross(b[1] - b[0], b[2] - b[0]), motion, half)
        for i in range(3):
            for j in range(3):
                normal = wp.cross(a[(i + 1) % 3] - a[i], b[(j + 1) % 3] - b[j])
                out = wider_gap(out, a, b, normal, motion, half)
    return out
