"""Which bodies may touch, in a fixed order, and how each of these pairs meets; on the device."""

import warp as wp

from abut.sdf.posed_in_field import Meeting, framed, padded, whole_scales
from abut.sim.bodies import Bodies, Shapes, posed

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ZERO = wp.constant(wp.float64(0.0))


@wp.func
def may_touch(bodies: Bodies, shapes: Shapes, i: wp.int32, j: wp.int32):
    """Whether bounds overlap, a force could move one of them, and one has a field."""
    if bodies.lightness[i] == ZERO and bodies.lightness[j] == ZERO:
        return False
    fine_i = shapes.fields[bodies.shape[i]].spacing
    fine_j = shapes.fields[bodies.shape[j]].spacing
    if fine_i == ZERO and fine_j == ZERO:
        return False
    for x in range(3):
        if bodies.low[i][x] > bodies.high[j][x] or bodies.low[j][x] > bodies.high[i][x]:
            return False
    return True


@wp.func
def in_order(bodies: Bodies, shapes: Shapes, i: wp.int32, j: wp.int32):
    """(the body whose field is read, the one that is sampled): the finer field, else the first."""
    fine_i = shapes.fields[bodies.shape[i]].spacing
    fine_j = shapes.fields[bodies.shape[j]].spacing
    if fine_i == ZERO or (fine_j > ZERO and fine_j < fine_i):
        return wp.vec2i(j, i)
    return wp.vec2i(i, j)


@wp.kernel
def partners_kernel(
    # in
    span: wp.vec3i,
    bodies: Bodies,
    shapes: Shapes,
    # out
    count_out: wp.array[wp.int32],
):
    """How many later bodies each body may touch; the last count is nobody's."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        count = wp.int32(0)
        for j in range(i + 1, bodies.shape.shape[0]):
            if may_touch(bodies, shapes, i, j):
                count += 1
        count_out[i] = count


@wp.kernel
def sides_kernel(
    # in
    span: wp.vec3i,
    bodies: Bodies,
    shapes: Shapes,
    offsets: wp.array[wp.int32],
    # out
    sides_out: wp.array[wp.vec2i],
):
    """All pairs that may touch, sorted; those without room are only counted."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        slot = offsets[i]
        for j in range(i + 1, bodies.shape.shape[0]):
            if may_touch(bodies, shapes, i, j):
                if slot < sides_out.shape[0]:
                    sides_out[slot] = in_order(bodies, shapes, i, j)
                slot += 1


@wp.func
def met(bodies: Bodies, shapes: Shapes, side: wp.vec2i, pixels: wp.float64, material: wp.vec4d):
    """How a pair meets, in the frame of the body whose field is read."""
    m = side[0]
    n = side[1]
    out = Meeting()
    out.field = bodies.shape[m]
    out.mesh = bodies.shape[n]
    grid = shapes.fields[out.field]
    longest = wp.float64(wp.max(grid.shape) - 1) * grid.spacing
    back = wp.transpose(wp.quat_to_matrix(bodies.turn[m]))
    turn = back * wp.quat_to_matrix(bodies.turn[n])
    centre = shapes.centre[out.field]
    lever = bodies.position[m] - bodies.position[n]
    out.pose = posed(turn, centre - back * lever - turn * shapes.centre[out.mesh])
    out.pixel = longest / pixels
    out.centre = centre
    out.velocity = back * bodies.velocity[m]
    out.spin = back * bodies.spin[m]
    out.other_velocity = back * (bodies.velocity[n] + wp.cross(bodies.spin[n], lever))
    out.other_spin = back * bodies.spin[n]
    out.material = material
    out = framed(out, grid)
    out.scale = whole_scales(grid, out, shapes.speed[out.mesh])
    return out


@wp.kernel
def meetings_kernel(
    # in
    span: wp.vec3i,
    bodies: Bodies,
    shapes: Shapes,
    sides: wp.array[wp.vec2i],
    offsets: wp.array[wp.int32],
    pixels: wp.float64,
    material: wp.vec4d,
    # out
    meetings_out: wp.array[Meeting],
    faces_out: wp.array[wp.int32],
):
    """Meetings of all pairs, and the number of items of each; 0 beyond them."""
    pair_count = wp.min(offsets[offsets.shape[0] - 1], sides.shape[0])
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        faces_out[k] = 0
        if k < pair_count:
            meetings_out[k] = met(bodies, shapes, sides[k], pixels, material)
            faces_out[k] = padded(shapes.meshes[bodies.shape[sides[k][1]]].faces.shape[0])


@wp.kernel
def peak_kernel(
    # in
    span: wp.vec3i,
    offsets: wp.array[wp.int32],
    rows: wp.array2d[wp.float64],
    # out
    peak_out: wp.array[wp.float64],
):
    """The most there was of everything: the host learns of what found no room."""
    listed = peak_out.shape[0] - 1  # kinds of things, counted at the end of the first row
    if span[0] + wp.tid() < span[1]:
        pairs = wp.float64(offsets[offsets.shape[0] - 1])
        peak_out[0] = wp.max(peak_out[0], pairs)
        for k in range(listed):
            peak_out[1 + k] = wp.max(peak_out[1 + k], rows[0, rows.shape[1] - listed + k])
