"""Pairs of rigid bodies whose bounds overlap, in a fixed order, as pairs of field and mesh."""

import warp as wp

from abut.sdf.field_pairs import FieldPair, fixed_point_scales, padded_item_count, with_raster_frame
from abut.sim.bodies import Bodies, Shapes, pose_from

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ZERO = wp.constant(wp.float64(0.0))


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
def field_and_sampled(bodies: Bodies, shapes: Shapes, i: wp.int32, j: wp.int32):
    """Return (body whose field is read, body that is sampled): the finer field, else i's."""
    spacing_i = shapes.fields[bodies.shape[i]].spacing
    spacing_j = shapes.fields[bodies.shape[j]].spacing
    if spacing_i == ZERO or (spacing_j > ZERO and spacing_j < spacing_i):
        return wp.vec2i(j, i)
    return wp.vec2i(i, j)


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
    """Count the later bodies that each body may touch; list the pairs where there is room.

    Lists are in order once ``offsets`` are the sums of the counts.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        slot = offsets[i]
        for j in range(i + 1, bodies.shape.shape[0]):
            if may_touch(bodies, shapes, i, j):
                if slot < body_pairs_out.shape[0]:
                    body_pairs_out[slot] = field_and_sampled(bodies, shapes, i, j)
                slot += 1
        count_out[i] = slot - offsets[i]


@wp.func
def field_pair_of(
    bodies: Bodies, shapes: Shapes, body_pair: wp.vec2i, pixels: wp.float64, material: wp.vec4d
):
    """Return a pair of bodies in the frame of the body whose field is read."""
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
