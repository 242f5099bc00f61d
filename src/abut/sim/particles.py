"""Kernels that move the vertices of a sheet: gravity, air, springs."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ONE = wp.constant(wp.float64(1.0))
TINY = wp.constant(wp.float64(1.0e-30))


@wp.struct
class Weather:
    """What acts on all vertices alike.

    Attributes:
        gravity: Acceleration.
        wind: Velocity of the air.
        drag: How fast air stops motion across the sheet, and along it [1 / s].
        seconds: Duration of a substep.
    """

    gravity: wp.vec3d
    wind: wp.vec3d
    drag: wp.vec2d
    seconds: wp.float64


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
    """Unit normal at each vertex, from the faces around it."""
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
    weather: Weather,
    free: wp.array[wp.float64],
    normal: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    velocity: wp.array[wp.vec3d],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Where vertices would be at the end of a substep if there were no springs."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = points[i]
        if free[i] > wp.float64(0.0):
            v = velocity[i] + weather.gravity * weather.seconds
            past = v - weather.wind
            across = wp.dot(past, normal[i]) * normal[i]
            lost = weather.drag * weather.seconds
            v = v - across * (lost[0] / (ONE + lost[0]))
            v = v - (past - across) * (lost[1] / (ONE + lost[1]))
            p += v * weather.seconds
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
    """Draw the ends of springs together or apart; no two of a launch share a vertex (XPBD)."""
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
    """Velocity over a substep."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        velocity_out[i] = (points[i] - before[i]) / seconds


@wp.kernel
def brake_kernel(
    # in
    span: wp.vec3i,
    share: wp.array[wp.float64],
    # out
    velocity_out: wp.array[wp.vec3d],
):
    """Vertices that made a share of their way have that share of their velocity."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        velocity_out[i] = velocity_out[i] * share[i]
