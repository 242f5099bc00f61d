"""The distance alone, read from a field, and how low it can be around a point where it was read.

Between samples the blended distance changes at most sqrt(3) times as fast as the point moves, and
lies within half a cell's diagonal of the true distance, which changes at most as fast. So one look
at a face bounds all its fragments from below.

Outside the box, at b from its nearest point, which is at D from the object: the object lies in the
box, beyond a right angle there, so its distance is at least the hypotenuse of b and D. Together
they change by no more than the point moves: projecting on a box is firmly nonexpansive.

All this is so where distances do not jump. Of a field with tears (see there) a look says how far
it was from them; jumps below a cell are not among them.
"""

import warp as wp

from abut.sdf.grid import SHORTEST, STEPS, TEAR_SIDE, FieldGrid, sample_cells

ROOT_2 = wp.constant(wp.float32(1.4143))
ROOT_3 = wp.constant(wp.float32(1.7321))
SHORTEST_STEPS = wp.constant(wp.float32(float(SHORTEST) * STEPS))
FAR_OFF = wp.constant(wp.float32(1.0e30))
HALF_DIAGONAL = wp.constant(wp.float32(0.8661))
SLACK = wp.constant(wp.float32(1.0001))  # rounding of float32, and more


@wp.struct
class Look:
    """What was read at a point."""

    distance: wp.float32
    blend: wp.float32  # distance at the nearest point of the box
    beyond: wp.float32  # how far the point is outside the box
    room: wp.float32  # how far it is from the box's sides, inside
    calm: wp.float32  # how far it is from tears at least


@wp.func
def last_cell(grid: FieldGrid):
    """The far corner of the box, in cells."""
    return wp.vec3f(
        wp.float32(grid.shape[0] - 1), wp.float32(grid.shape[1] - 1), wp.float32(grid.shape[2] - 1)
    )


@wp.func
def in_box(at: wp.vec3f, last: wp.vec3f):
    """Whether a point in cells lies in the box up to its far corner."""
    zero = wp.float32(0.0)
    above = at[0] >= zero and at[1] >= zero and at[2] >= zero
    return above and at[0] <= last[0] and at[1] <= last[1] and at[2] <= last[2]


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    #define READ(p) __ldg(p)
#else
    #define READ(p) *(p)
#endif
    const int line = values.shape[2], plane = values.shape[1] * line;
    const float* p = values.data + (cell.c[0] * plane + cell.c[1] * line + cell.c[2]);
    const float u = share.c[0], v = share.c[1], w = share.c[2];
    float d[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            const float* two = p + i * plane + j * line;
            const float near = READ(two);
            d[i][j] = near + w * (READ(two + 1) - near);
        }
    #undef READ
    const float d0 = d[0][0] + v * (d[0][1] - d[0][0]);
    return d0 + u * (d[1][0] + v * (d[1][1] - d[1][0]) - d0);
""")
def blend_numbers(values: wp.array3d[wp.float32], cell: wp.vec3i, share: wp.vec3f) -> wp.float32:
    """Linear along each axis between the eight corners of a cell; no index is checked."""
    ...


@wp.func_native("""
    const int line = 3 * values.shape[2], plane = values.shape[1] * line;
    const short* p = (const short*)values.data
                     + (cell.c[0] * (int64_t)plane + (cell.c[1] * line + cell.c[2] * 3));
    const float u = share.c[0], v = share.c[1], w = share.c[2];
    wp::vec_t<3, float> found;
#if defined(__CUDA_ARCH__)
    for (int k = 0; k < 3; ++k, ++p) {
        float d[2][2];
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) {
                const short* two = p + i * plane + j * line;
                const float near = __ldg(two);
                d[i][j] = near + w * ((float)__ldg(two + 3) - near);
            }
        const float d0 = d[0][0] + v * (d[0][1] - d[0][0]);
        found.c[k] = d0 + u * (d[1][0] + v * (d[1][1] - d[1][0]) - d0);
    }
#else
    typedef short Steps __attribute__((vector_size(8), aligned(2)));
    typedef float Numbers __attribute__((vector_size(16)));
    Numbers d[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {  // two samples are six numbers; three at once
            const short* two = p + i * plane + j * line;
            const Numbers near = __builtin_convertvector(*(const Steps*)two, Numbers);
            const Numbers last = __builtin_convertvector(*(const Steps*)(two + 2), Numbers);
            d[i][j] = near + w * (__builtin_shufflevector(last, last, 1, 2, 3, 3) - near);
        }
    const Numbers d0 = d[0][0] + v * (d[0][1] - d[0][0]);
    const Numbers all = d0 + u * (d[1][0] + v * (d[1][1] - d[1][0]) - d0);
    for (int k = 0; k < 3; ++k) found.c[k] = all[k];
#endif
    return found;
""")
def blend_steps(values: wp.array3d[wp.vec3s], cell: wp.vec3i, share: wp.vec3f) -> wp.vec3f:
    """``blend_numbers`` for three numbers in steps."""
    ...


@wp.func
def cell_of(grid: FieldGrid, at: wp.vec3f):
    """The cell that a point in cells inside the box lies in."""
    x = wp.min(wp.int32(at[0]), grid.shape[0] - 2)
    y = wp.min(wp.int32(at[1]), grid.shape[1] - 2)
    return wp.vec3i(x, y, wp.min(wp.int32(at[2]), grid.shape[2] - 2))


@wp.func
def share_of(at: wp.vec3f, cell: wp.vec3i):
    """How far a point is in its cell."""
    return at - wp.vec3f(wp.float32(cell[0]), wp.float32(cell[1]), wp.float32(cell[2]))


@wp.func
def blend_distance(grid: FieldGrid, at: wp.vec3f):
    """The distance, linear between samples, at a point in cells inside the box."""
    cell = cell_of(grid, at)
    return blend_numbers(grid.distance, cell, share_of(at, cell))


@wp.func
def blend_gradient(grid: FieldGrid, at: wp.vec3f):
    """The gradient, linear between samples and of length 1, at a point in cells inside the box.

    Zero where samples cancel; see sample_field.
    """
    cell = cell_of(grid, at)
    g = blend_steps(grid.gradient, cell, share_of(at, cell))
    size = wp.length(g)
    if size < SHORTEST_STEPS:
        return wp.vec3f(0.0)
    return g / size


@wp.func
def calm_around(grid: FieldGrid, at: wp.vec3f):
    """How far a point in cells inside the box is from tears at least."""
    calm = FAR_OFF
    if grid.tears.shape[0] > 0:
        brick = cell_of(grid, at) / TEAR_SIDE
        calm = wp.float32(TEAR_SIDE) * wp.float32(grid.spacing)
        if grid.tears[brick[0], brick[1], brick[2]] != wp.uint8(0):
            calm = wp.float32(0.0)
    return calm


@wp.func
def hypotenuse(grid: FieldGrid, seen: Look):
    """What the distance of a point outside the box is at least."""
    away = wp.max(seen.blend - HALF_DIAGONAL * wp.float32(grid.spacing), wp.float32(0.0))
    return wp.sqrt(seen.beyond * seen.beyond + away * away)


@wp.func
def look(grid: FieldGrid, at: wp.vec3f, margin: wp.float32):
    """The distance at a point in cells; outside the box never less than is sure there.

    ``margin``: how near the object comes to the sides of the box.
    """
    last = last_cell(grid)
    held = wp.min(wp.max(at, wp.vec3f(0.0)), last)
    out = Look()
    out.beyond = wp.float32(grid.spacing) * wp.length(at - held)
    out.room = wp.float32(grid.spacing) * wp.min(wp.min(held), wp.min(last - held))
    out.blend = blend_distance(grid, held)
    out.calm = calm_around(grid, held)
    out.distance = out.blend
    if out.beyond > wp.float32(0.0):
        found = sample_cells(grid, at)
        out.distance = wp.max(found[0], wp.max(out.beyond + margin, hypotenuse(grid, out)))
    return out


@wp.func
def least_within(grid: FieldGrid, seen: Look, radius: wp.float32, margin: wp.float32):
    """No look within ``radius`` [length] of this one finds a distance below."""
    if SLACK * radius > seen.calm:
        return -FAR_OFF
    cell = wp.float32(grid.spacing)
    outside = seen.beyond - SLACK * radius
    jump = wp.where(grid.tears.shape[0] > 0, cell, wp.float32(0.0))
    afar = hypotenuse(grid, seen) / SLACK - SLACK * (radius + ROOT_3 * cell) - jump
    if outside > wp.float32(0.0):  # the box is out of reach
        return wp.max(outside + margin, afar)
    reach = wp.min(ROOT_3 * radius, radius + ROOT_3 * cell)
    if seen.room < SLACK * radius:  # some of it may lie outside, where distances are bounds
        reach = wp.min(wp.float32(2.0) * radius, ROOT_2 * radius + ROOT_3 * cell)
    least = seen.blend - SLACK * reach - wp.float32(1e-3) * cell - jump
    if seen.beyond > wp.float32(0.0):
        least = wp.min(least, margin)
    if seen.blend - HALF_DIAGONAL * cell > SLACK * radius:  # the object is out of reach
        least = wp.max(least, afar)
    return least
