"""Kernels that move the vertices of a sheet: gravity, air, springs."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ONE = wp.constant(wp.float64(1.0))
TINY = wp.constant(wp.float64(1.0e-30))


@wp.struct
class ExternalForces:
    """Parameters of the forces on all vertices."""

    gravity: wp.vec3d  # acceleration
    wind: wp.vec3d  # velocity of the air
    drag: wp.vec2d  # rate at which air stops motion across the sheet, and along it [1 / s]
    seconds: wp.float64  # duration of a substep


@wp.kernel
def normal_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    starts: wp.array[wp.int32],
    around: wp.array[wp.int32],
    # out
    normal_out: wp.array[wp.vec3d],
):
    """Compute the unit normal at each vertex from the faces around it."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        total = wp.vec3d()
        for k in range(starts[i], starts[i + 1]):
            face = faces[around[k]]
            a = points[face[0]]
            total += wp.cross(points[face[1]] - a, points[face[2]] - a)
        normal_out[i] = total / wp.max(wp.length(total), TINY)


@wp.kernel
def predict_kernel(
    # in
    span: wp.vec3i,
    external: ExternalForces,
    free: wp.array[wp.float64],
    normal: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    velocity: wp.array[wp.vec3d],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Move vertices by velocity, gravity and drag over a substep."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = points[i]
        if free[i] > wp.float64(0.0):
            v = velocity[i] + external.gravity * external.seconds
            past = v - external.wind
            across = wp.dot(past, normal[i]) * normal[i]
            lost = external.drag * external.seconds
            v = v - across * (lost[0] / (ONE + lost[0]))
            v = v - (past - across) * (lost[1] / (ONE + lost[1]))
            p += v * external.seconds
        points_out[i] = p


@wp.kernel
def spring_kernel(
    # in
    span: wp.vec3i,
    ends: wp.array2d[wp.int32],
    rest: wp.array[wp.float64],
    free: wp.array[wp.float64],
    softness: wp.float64,
    # out
    points_out: wp.array[wp.vec3d],
):
    """Project spring constraints (XPBD); no two springs of a launch share a vertex."""
    for s in range(span[0] + wp.tid(), span[1], span[2]):
        i = ends[s, 0]
        j = ends[s, 1]
        way = points_out[j] - points_out[i]
        length = wp.length(way)
        give = free[i] + free[j]
        if give > wp.float64(0.0) and length > TINY:
            move = way * ((length - rest[s]) / (length * (give + softness)))
            points_out[i] = points_out[i] + free[i] * move
            points_out[j] = points_out[j] - free[j] * move


@wp.kernel
def velocity_kernel(
    # in
    span: wp.vec3i,
    before: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    seconds: wp.float64,
    # out
    velocity_out: wp.array[wp.vec3d],
):
    """Compute velocities over a substep."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        velocity_out[i] = (points[i] - before[i]) / seconds


@wp.kernel
def scale_velocity_kernel(
    # in
    span: wp.vec3i,
    share: wp.array[wp.float64],
    # out
    velocity_out: wp.array[wp.vec3d],
):
    """Scale velocities by the share of the path that each vertex has travelled."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        velocity_out[i] = velocity_out[i] * share[i]
