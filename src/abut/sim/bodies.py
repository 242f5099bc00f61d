"""Rigid bodies on the device: structs of their state, a step of time, and pairs that may touch.

Pairs of bodies whose bounds overlap are listed in a fixed order, as pairs of field and mesh.
"""

import warp as wp

from abut.sdf.field_pairs import FieldPair, fixed_point_scales, padded_item_count, with_raster_frame
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


@wp.func
def may_touch(bodies: Bodies, shapes: Shapes, i: wp.int32, j: wp.int32):
    """Return whether bounds overlap, a force could move one of the two, and one has a field."""
    if bodies.inverse_mass[i] == ZERO and bodies.inverse_mass[j] == ZERO:
        return False
    spacing_i = shapes.fields[bodies.shape[i]].spacing
    spacing_j = shapes.fields[bodies.shape[j]].spacing
    if spacing_i == ZERO and spacing_j == ZERO:
        return False
    for x in range(3):
        if bodies.low[i][x] > bodies.high[j][x] or bodies.low[j][x] > bodies.high[i][x]:
            return False
    return True


@wp.func
def has_field(bodies: Bodies, shapes: Shapes, i: wp.int32):
    """Return whether a body has a field."""
    return shapes.fields[bodies.shape[i]].spacing > ZERO


@wp.kernel
def list_body_pairs_kernel(
    # in
    span: wp.vec3i,
    bodies: Bodies,
    shapes: Shapes,
    offsets: wp.array[wp.int32],
    # out
    count_out: wp.array[wp.int32],
    body_pairs_out: wp.array[wp.vec2i],
):
    """Count and list pairs (body whose field is read, later or earlier body that is sampled).

    Two bodies that may touch are a pair for each of their fields. Lists are in order once
    ``offsets`` are the sums of the counts; pairs without room are only counted.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        slot = offsets[i]
        for j in range(i + 1, bodies.shape.shape[0]):
            if may_touch(bodies, shapes, i, j):
                for k in range(2):
                    reader = wp.where(k == 0, i, j)
                    if has_field(bodies, shapes, reader):
                        if slot < body_pairs_out.shape[0]:
                            body_pairs_out[slot] = wp.vec2i(reader, i + j - reader)
                        slot += 1
        count_out[i] = slot - offsets[i]


@wp.func
def field_pair_of(
    bodies: Bodies, shapes: Shapes, body_pair: wp.vec2i, pixels: wp.float64, material: wp.vec4d
):
    """Return a pair of bodies in the frame of the body whose field is read.

    Where both have a field, each of their pairs has half of the force.
    """
    m = body_pair[0]
    n = body_pair[1]
    out = FieldPair()
    out.field = bodies.shape[m]
    out.mesh = bodies.shape[n]
    grid = shapes.fields[out.field]
    longest = wp.float64(wp.max(grid.shape) - 1) * grid.spacing
    back = wp.transpose(wp.quat_to_matrix(bodies.rotation[m]))
    rotation = back * wp.quat_to_matrix(bodies.rotation[n])
    centre = shapes.centre[out.field]
    lever = bodies.position[m] - bodies.position[n]
    out.pose = pose_from(rotation, centre - back * lever - rotation * shapes.centre[out.mesh])
    out.pixel = longest / pixels
    out.centre = centre
    out.velocity = back * bodies.velocity[m]
    out.spin = back * bodies.spin[m]
    out.other_velocity = back * (bodies.velocity[n] + wp.cross(bodies.spin[n], lever))
    out.other_spin = back * bodies.spin[n]
    out.material = material
    if has_field(bodies, shapes, n):
        out.material[0] = HALF * material[0]
        out.material[1] = HALF * material[1]
    out = with_raster_frame(out, grid)
    out.scale = fixed_point_scales(grid, out, shapes.speed[out.mesh])
    return out


@wp.kernel
def field_pairs_kernel(
    # in
    span: wp.vec3i,
    bodies: Bodies,
    shapes: Shapes,
    body_pairs: wp.array[wp.vec2i],
    offsets: wp.array[wp.int32],
    pixels: wp.float64,
    material: wp.vec4d,
    # out
    pairs_out: wp.array[FieldPair],
    item_count_out: wp.array[wp.int32],
):
    """Make the field pairs and their item counts; 0 beyond the last pair."""
    pair_count = wp.min(offsets[offsets.shape[0] - 1], body_pairs.shape[0])
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        item_count_out[k] = 0
        if k < pair_count:
            pairs_out[k] = field_pair_of(bodies, shapes, body_pairs[k], pixels, material)
            mesh = shapes.meshes[bodies.shape[body_pairs[k][1]]]
            item_count_out[k] = padded_item_count(mesh.faces.shape[0])


@wp.kernel
def peak_counts_kernel(
    # in
    span: wp.vec3i,
    offsets: wp.array[wp.int32],
    rows: wp.array2d[wp.float64],
    # out
    peak_out: wp.array[wp.float64],
):
    """Keep the greatest counts of pairs and of all queues, for the host to compare with the room.

    The last columns of the first row are the counts of the queues.
    """
    queue_count = peak_out.shape[0] - 1
    if span[0] + wp.tid() < span[1]:
        pairs = wp.float64(offsets[offsets.shape[0] - 1])
        peak_out[0] = wp.max(peak_out[0], pairs)
        for k in range(queue_count):
            peak_out[1 + k] = wp.max(peak_out[1 + k], rows[0, rows.shape[1] - queue_count + k])
