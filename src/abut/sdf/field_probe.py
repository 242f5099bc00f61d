"""Probe a field: its distance at a point, and lower bounds of the distance around it.

Between samples the interpolated distance changes at most sqrt(3) times as fast as the point moves,
and lies within half a cell's diagonal of the true distance, which changes at most as fast. So one
probe of a face bounds all its fragments from below.

Let a point outside the box be at b from its nearest point of the box, which is at D from the
object. The object lies in the box, so the point's distance is at least sqrt(b^2 + D^2). Both
together change by no more than the point moves: projecting on a box is firmly nonexpansive.

Bounds hold where distances do not jump. In a field with sign jumps a probe knows its distance from
the nearest one; jumps below a cell are not recorded.
"""

import warp as wp

from abut.bounds.float32 import from_sortable, to_sortable
from abut.sdf.grid import (
    GRADIENT_STEPS,
    JUMP_BRICK_SIDE,
    LEAST_GRADIENT,
    FieldGrid,
    last_cell,
    length_in_float64,
    sample_at_cells,
)

ROOT_2 = wp.constant(wp.float32(1.4143))
ROOT_3 = wp.constant(wp.float32(1.7321))
SHORTEST_STEPS = wp.constant(wp.float32(float(LEAST_GRADIENT) * GRADIENT_STEPS))
FAR = wp.constant(wp.float32(1.0e30))
HALF_DIAGONAL = wp.constant(wp.float32(0.8661))
SLACK = wp.constant(wp.float32(1.0001))  # exceeds the rounding of float32


@wp.struct
class FieldProbe:
    """The distance at a point, and what bounds it nearby."""

    distance: wp.float32
    blend: wp.float32  # distance at the nearest point of the box
    beyond: wp.float32  # distance from the box, 0 inside
    border_gap: wp.float32  # distance from the box's sides, inside
    jump_gap: wp.float32  # lower bound of the distance from sign jumps


@wp.func
def is_in_box(at: wp.vec3f, last: wp.vec3f):
    """Return whether a point in cells lies in the box up to its far corner."""
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
def interpolate_float(
    values: wp.array3d[wp.float32], cell: wp.vec3i, share: wp.vec3f
) -> wp.float32:
    """Interpolate linearly between the eight corners of a cell; indices are not checked."""
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
def interpolate_steps(values: wp.array3d[wp.vec3s], cell: wp.vec3i, share: wp.vec3f) -> wp.vec3f:
    """Interpolate quantized gradients linearly; indices are not checked."""
    ...


@wp.func
def cell_at(grid: FieldGrid, at: wp.vec3f):
    """Return the cell of a point in cells inside the box."""
    x = wp.min(wp.int32(at[0]), grid.shape[0] - 2)
    y = wp.min(wp.int32(at[1]), grid.shape[1] - 2)
    return wp.vec3i(x, y, wp.min(wp.int32(at[2]), grid.shape[2] - 2))


@wp.func
def interpolate_distance(grid: FieldGrid, at: wp.vec3f):
    """Return the distance, linear between samples, at a point in cells inside the box."""
    cell = cell_at(grid, at)
    return interpolate_float(grid.distance, cell, at - wp.vec3f(cell))


@wp.func
def interpolate_gradient(grid: FieldGrid, at: wp.vec3f):
    """Return the unit gradient, linear between samples, at a point in cells inside the box.

    It is zero where samples cancel; see sample_field.
    """
    cell = cell_at(grid, at)
    g = interpolate_steps(grid.gradient, cell, at - wp.vec3f(cell))
    size = wp.length(g)
    if size < SHORTEST_STEPS:
        return wp.vec3f(0.0)
    return g / size


@wp.func
def gap_to_jumps(grid: FieldGrid, at: wp.vec3f):
    """Return a lower bound of the distance from sign jumps, for a point in cells in the box."""
    jump_gap = FAR
    if grid.sign_jumps.shape[0] > 0:
        brick = cell_at(grid, at) / JUMP_BRICK_SIDE
        jump_gap = wp.float32(JUMP_BRICK_SIDE) * wp.float32(grid.spacing)
        if grid.sign_jumps[brick[0], brick[1], brick[2]] != wp.uint8(0):
            jump_gap = wp.float32(0.0)
    return jump_gap


@wp.func
def outside_bound(grid: FieldGrid, probe: FieldProbe):
    """Return a lower bound of the distance of a point outside the box."""
    away = wp.max(probe.blend - HALF_DIAGONAL * wp.float32(grid.spacing), wp.float32(0.0))
    return length_in_float64(wp.vec3f(probe.beyond, away, wp.float32(0.0)))


@wp.func
def probe_field(grid: FieldGrid, at: wp.vec3f, margin: wp.float32):
    """Probe at a point in cells; outside the box the distance is at least its lower bound.

    ``margin``: lower bound of the gap between the object and the sides of the box.
    """
    last = last_cell(grid)
    held = wp.min(wp.max(at, wp.vec3f(0.0)), last)
    out = FieldProbe()
    if not (at == held):
        out.beyond = wp.float32(grid.spacing) * length_in_float64(at - held)
    out.border_gap = wp.float32(grid.spacing) * wp.min(wp.min(held), wp.min(last - held))
    out.blend = interpolate_distance(grid, held)
    out.jump_gap = gap_to_jumps(grid, held)
    out.distance = out.blend
    if out.beyond > wp.float32(0.0):
        found = sample_at_cells(grid, at)
        out.distance = wp.max(found[0], wp.max(out.beyond + margin, outside_bound(grid, out)))
    return out


@wp.func
def lower_bound_within(grid: FieldGrid, probe: FieldProbe, radius: wp.float32, margin: wp.float32):
    """Return a lower bound of all probes within ``radius`` [length] of this one."""
    if SLACK * radius > probe.jump_gap:
        return -FAR
    cell = wp.float32(grid.spacing)
    outside = probe.beyond - SLACK * radius
    jump = wp.where(grid.sign_jumps.shape[0] > 0, cell, wp.float32(0.0))
    afar = outside_bound(grid, probe) / SLACK - SLACK * (radius + ROOT_3 * cell) - jump
    if outside > wp.float32(0.0):  # the box is out of reach
        return wp.max(outside + margin, afar)
    reach = wp.min(ROOT_3 * radius, radius + ROOT_3 * cell)
    if probe.border_gap < SLACK * radius:  # the ball may reach outside, where distances are bounds
        reach = wp.min(wp.float32(2.0) * radius, ROOT_2 * radius + ROOT_3 * cell)
    least = probe.blend - SLACK * reach - wp.float32(1e-3) * cell - jump
    if probe.beyond > wp.float32(0.0):
        least = wp.min(least, margin)
    if probe.blend - HALF_DIAGONAL * cell > SLACK * radius:  # the object is out of reach
        least = wp.max(least, afar)
    return least


@wp.func
def distance_key(distance: wp.float32, face: wp.int32):
    """Return a key that sorts by distance, then by face."""
    bits = to_sortable(distance + wp.float32(0.0))  # no negative zero
    return (wp.int64(bits) << wp.int64(32)) | wp.int64(face)


@wp.func
def key_distance(key: wp.int64):
    """Return the distance of a key."""
    return from_sortable(wp.int32(key >> wp.int64(32)))


@wp.func
def key_face(key: wp.int64):
    """Return the face of a key."""
    return wp.int32(key & wp.int64(4294967295))
