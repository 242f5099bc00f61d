"""Rigid bodies on the device: structs of their state, and a step of time."""

import warp as wp

from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import SampledMesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

HALF = wp.constant(wp.float64(0.5))
ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))
TIME, STEP = wp.constant(0), wp.constant(1)  # of the clock


@wp.struct
class Shapes:
    """The shapes of bodies; many bodies may share one."""

    fields: wp.array[FieldGrid]  # spacing 0 without a field
    meshes: wp.array[SampledMesh]
    centre: wp.array[wp.vec3d]  # of mass, in the mesh's frame
    low: wp.array[wp.vec3d]  # bounds of the mesh
    high: wp.array[wp.vec3d]
    speed: wp.array[wp.float64]  # of the fastest vertex


@wp.struct
class Bodies:
    """The state of all bodies in the world. Positions are those of centres of mass."""

    shape: wp.array[wp.int32]
    position: wp.array[wp.vec3d]
    rotation: wp.array[wp.quatd]
    velocity: wp.array[wp.vec3d]
    spin: wp.array[wp.vec3d]
    inverse_mass: wp.array[wp.float64]  # 0 for a static body
    inertia: wp.array[wp.mat33d]  # about the centre, in the mesh's frame
    pose: wp.array[wp.mat44d]  # of the mesh in the world
    low: wp.array[wp.vec3d]  # bounds in the world
    high: wp.array[wp.vec3d]


@wp.func
def pose_from(rotation: wp.mat33d, at: wp.vec3d):
    """Return the pose of a rotation and a translation."""
    return wp.mat44d(
        rotation[0, 0], rotation[0, 1], rotation[0, 2], at[0],
        rotation[1, 0], rotation[1, 1], rotation[1, 2], at[1],
        rotation[2, 0], rotation[2, 1], rotation[2, 2], at[2],
        ZERO, ZERO, ZERO, ONE,
    )  # fmt: skip


@wp.func
def place(bodies: Bodies, shapes: Shapes, i: wp.int32):
    """Compute the pose and the bounds of a body from its position and rotation."""
    s = bodies.shape[i]
    rotation = wp.quat_to_matrix(bodies.rotation[i])
    at = bodies.position[i] - rotation * shapes.centre[s]
    middle = rotation * (HALF * (shapes.low[s] + shapes.high[s])) + at
    half = HALF * (shapes.high[s] - shapes.low[s])
    reach = wp.vec3d()
    for x in range(3):
        row = wp.abs(rotation[x])
        reach[x] = wp.dot(row, half)
    bodies.pose[i] = pose_from(rotation, at)
    bodies.low[i] = middle - reach
    bodies.high[i] = middle + reach


@wp.kernel
def place_bodies_kernel(
    # in
    span: wp.vec3i,
    shapes: Shapes,
    # out
    bodies_out: Bodies,
):
    """Compute poses and bounds of all bodies."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        place(bodies_out, shapes, i)


@wp.func
def integrated_rotation(rotation: wp.quatd, spin: wp.vec3d, seconds: wp.float64):
    """Return a rotation after spinning for some time."""
    angle = wp.length(spin) * seconds
    if angle == ZERO:
        return rotation
    return wp.normalize(wp.quat_from_axis_angle(wp.normalize(spin), angle) * rotation)


@wp.func
def move(
    bodies: Bodies, i: wp.int32, force: wp.vec3d, torque: wp.vec3d, gravity: wp.vec3d,
    seconds: wp.float64,
):  # fmt: skip
    """Make a step of semi-implicit Euler. Without torque the angular momentum is conserved."""
    velocity = bodies.velocity[i]
    spin = bodies.spin[i]
    inverse_mass = bodies.inverse_mass[i]
    frame = wp.quat_to_matrix(bodies.rotation[i])
    momentum = wp.vec3d()
    if inverse_mass > ZERO:
        velocity += seconds * (inverse_mass * force + gravity)
        momentum = frame * (bodies.inertia[i] * (wp.transpose(frame) * spin)) + seconds * torque
        inverse = wp.inverse(bodies.inertia[i])
        spin = frame * (inverse * (wp.transpose(frame) * momentum))
    bodies.velocity[i] = velocity
    bodies.position[i] = bodies.position[i] + seconds * velocity
    bodies.rotation[i] = integrated_rotation(bodies.rotation[i], spin, seconds)
    if inverse_mass > ZERO:
        frame = wp.quat_to_matrix(bodies.rotation[i])
        inverse = wp.inverse(bodies.inertia[i])
        spin = frame * (inverse * (wp.transpose(frame) * momentum))
    bodies.spin[i] = spin


@wp.kernel
def gather_forces_kernel(
    # in
    span: wp.vec3i,
    bodies: Bodies,
    body_pairs: wp.array[wp.vec2i],
    offsets: wp.array[wp.int32],
    rows: wp.array2d[wp.float64],
    # out
    force_out: wp.array[wp.vec3d],
    torque_out: wp.array[wp.vec3d],
):
    """Sum forces and torques on each body, pair by pair in order."""
    pair_count = wp.min(offsets[offsets.shape[0] - 1], body_pairs.shape[0])
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        force = wp.vec3d()
        torque = wp.vec3d()
        for k in range(pair_count):
            body_pair = body_pairs[k]
            if body_pair[0] == i or body_pair[1] == i:
                rotation = wp.quat_to_matrix(bodies.rotation[body_pair[0]])
                f = rotation * wp.vec3d(rows[k, 0], rows[k, 1], rows[k, 2])
                t = rotation * wp.vec3d(rows[k, 3], rows[k, 4], rows[k, 5])
                if body_pair[0] == i:
                    force += f
                    torque += t
                else:
                    lever = bodies.position[body_pair[0]] - bodies.position[i]
                    force -= f
                    torque -= t + wp.cross(lever, f)
        force_out[i] = force
        torque_out[i] = torque


@wp.kernel
def move_bodies_kernel(
    # in
    span: wp.vec3i,
    shapes: Shapes,
    gravity: wp.vec3d,
    force: wp.array[wp.vec3d],
    torque: wp.array[wp.vec3d],
    # out
    clock_out: wp.array[wp.float64],
    bodies_out: Bodies,
):
    """Move all bodies, and the clock."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        seconds = clock_out[STEP]
        move(bodies_out, i, force[i], torque[i], gravity, seconds)
        place(bodies_out, shapes, i)
        if i == 0:
            clock_out[TIME] = clock_out[TIME] + seconds
