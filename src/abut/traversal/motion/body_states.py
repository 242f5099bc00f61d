"""Poses, velocities and bounds of accelerations of jointed bodies over an interval of time.

See design/robot-motions.md for the bounds and their proofs.
"""

import warp as wp

from abut.geometry.joint_tree import BALL, SLIDE, quaternion_at
from abut.geometry.poses import rotation_of, translation_of
from abut.operands.jointed_bodies import (
    WORLD,
    BodyStates,
    JointedBodies,
    JointedObjects,
    JointMotions,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))
TWO = wp.constant(wp.float64(2.0))


@wp.func
def rotation_about(axis: wp.vec3d, angle: wp.float64):
    """Return the rotation about a unit vector."""
    c = wp.cos(angle)
    s = wp.sin(angle)
    k = ONE - c
    x = axis[0]
    y = axis[1]
    z = axis[2]
    return wp.mat33d(
        k * x * x + c, k * x * y - s * z, k * x * z + s * y,
        k * x * y + s * z, k * y * y + c, k * y * z - s * x,
        k * x * z - s * y, k * y * z + s * x, k * z * z + c,
    )  # fmt: skip


@wp.func
def joint_amount(
    bodies: JointedBodies, motions: JointMotions, k: wp.int32, row: wp.int32, t: wp.float64
):
    """Return how far the joint of a body has moved at a time [radians or length unit]."""
    column = bodies.columns[k]
    if bodies.kinds[k] == BALL:
        return t * motions.rates[row, column]
    value = motions.start[row, column] + t * motions.rates[row, column]
    return value * bodies.scales[k] + bodies.shifts[k]


@wp.func
def ball_axis(bodies: JointedBodies, motions: JointMotions, k: wp.int32, row: wp.int32):
    """Return the axis of the turn of a ball, in the frame at the start."""
    column = bodies.columns[k]
    return wp.vec3d(
        motions.rates[row, column + 1],
        motions.rates[row, column + 2],
        motions.rates[row, column + 3],
    )


@wp.func
def joint_rate(bodies: JointedBodies, motions: JointMotions, k: wp.int32, row: wp.int32):
    """Return the rate of the joint of a body."""
    return motions.rates[row, bodies.columns[k]] * bodies.scales[k]


@wp.func
def place_bodies(
    bodies: JointedBodies,
    objects: JointedObjects,
    motions: JointMotions,
    row: wp.int32,
    t: wp.float64,
    first_body: wp.int32,
    first_object: wp.int32,
    states: BodyStates,
):
    """Write poses and velocities of all bodies and objects at a time of a motion."""
    for k in range(bodies.parents.shape[0]):
        at = first_body + k
        rotation = rotation_of(bodies.frames[k])
        position = translation_of(bodies.frames[k])
        spin = wp.vec3d()
        drift = wp.vec3d()
        speed = wp.float64(0.0)
        parent = bodies.parents[k]
        if parent >= 0:
            up = first_body + parent
            position = states.rotations[up] * position + states.positions[up]
            rotation = states.rotations[up] * rotation
            spin = states.spins[up]
            drift = states.drifts[up]
            speed = states.speeds[up]
        amount = joint_amount(bodies, motions, k, row, t)
        rate = joint_rate(bodies, motions, k, row)
        anchor = rotation * bodies.anchors[k] + position
        own_axis = bodies.axes[k]
        if bodies.kinds[k] == BALL:
            own_axis = ball_axis(bodies, motions, k, row)
            first = quaternion_at(motions.start, row, bodies.columns[k])
            rotation = rotation * wp.quat_to_matrix(wp.normalize(first))
        axis = rotation * own_axis
        if bodies.kinds[k] != SLIDE:
            rotation = rotation * rotation_about(own_axis, amount)
            position = anchor - rotation * bodies.anchors[k]
            spin += rate * axis
            drift += rate * wp.cross(anchor, axis)
            speed += wp.abs(rate)
        else:
            position += amount * axis
            anchor += amount * axis
            drift += rate * axis
        states.rotations[at] = rotation
        states.positions[at] = position
        states.axes[at] = axis
        states.anchors[at] = anchor
        states.spins[at] = spin
        states.drifts[at] = drift
        states.speeds[at] = speed
    for o in range(objects.bodies.shape[0]):
        body = objects.bodies[o]
        if body != WORLD:
            pose = objects.poses[o]
            up = first_body + body
            states.object_rotations[first_object + o] = states.rotations[up] * rotation_of(pose)
            states.object_positions[first_object + o] = (
                states.rotations[up] * translation_of(pose) + states.positions[up]
            )


@wp.func
def rest_objects(objects: JointedObjects, first_object: wp.int32, states: BodyStates):
    """Write the poses of objects that do not move."""
    for o in range(objects.bodies.shape[0]):
        if objects.bodies[o] == WORLD:
            states.object_rotations[first_object + o] = rotation_of(objects.poses[o])
            states.object_positions[first_object + o] = translation_of(objects.poses[o])


@wp.func
def bound_bends(
    bodies: JointedBodies,
    motions: JointMotions,
    row: wp.int32,
    half: wp.float64,
    first_body: wp.int32,
    states: BodyStates,
):
    """Bound accelerations of bodies for ``half`` before and after the time they were placed at.

    Bounds are written for each body with objects, in the frame of each body above it.
    """
    count = bodies.parents.shape[0]
    for b in range(count):
        if bodies.radii[b] >= ZERO:
            first_bend = (first_body + b) * (count + 1)
            at = first_body + b
            centre = states.rotations[at] * bodies.centres[b] + states.positions[at]
            radius = bodies.radii[b]
            reach = wp.length(bodies.centres[b] - bodies.anchors[b]) + radius
            travel = wp.float64(0.0)
            turning = wp.float64(0.0)  # sums of the proof: P
            moving = wp.float64(0.0)  # sums of the proof: Q
            k = wp.int32(b)
            while k >= 0:
                rate = wp.abs(joint_rate(bodies, motions, k, row))
                parent = bodies.parents[k]
                outer = wp.float64(0.0)
                if parent >= 0:
                    outer = states.speeds[first_body + parent]
                if bodies.kinds[k] != SLIDE:
                    arm = wp.length(
                        wp.cross(
                            states.axes[first_body + k], centre - states.anchors[first_body + k]
                        )
                    )
                    speed = rate * wp.min(arm + radius + travel, reach)
                    turning += speed * (rate + TWO * outer)
                    moving += speed
                    travel += half * speed
                else:
                    turning += rate * TWO * outer
                    moving += rate
                    travel += half * rate
                    reach += wp.max(
                        wp.abs(joint_amount(bodies, motions, k, row, ZERO)),
                        wp.abs(joint_amount(bodies, motions, k, row, ONE)),
                    )
                states.bends[first_bend + parent + 1] = turning - TWO * outer * moving
                reach += bodies.arms[k]
                k = parent
