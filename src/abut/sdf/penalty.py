"""Penalty, damping and friction, summed over the fragments inside an object.

Morvan et al. 2008, section 3.4, equations 4 to 13. Each fragment's share is rounded to an integer
number of steps, so that the sums do not depend on their order.
"""

from functools import cache

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.core.atomics import atomic_add_int64
from abut.core.lanes import lane_count, warp_all, warp_count, warp_rank, warp_sum, warp_sync
from abut.geometry.poses import rotation_of
from abut.sdf.draw_batches import Patches, batch_range, lane_pixels
from abut.sdf.field_pairs import FieldOperands, FieldPair
from abut.sdf.field_probe import interpolate_distance, interpolate_gradient, is_in_box
from abut.sdf.footprint import DEPTH, pixel_corners
from abut.sdf.grid import FieldGrid, last_cell
from abut.sdf.grid_properties import DepthImages, may_be_inside
from abut.sdf.orthographic_raster import barycentric_weights
from abut.sdf.pixel_patch import (
    WEIGHT,
    Patch,
    fragment_at,
    patch_axis,
    patch_face,
    patch_float,
    patch_pixel,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SUM_COUNT = wp.constant(9)  # force, torque, area, energy, fragments
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
TO_WHOLE = wp.constant(wp.float64(1.5 * 2.0**52))
AREA_BITS = wp.constant(wp.float64(2.0**36))  # a pixel's area in steps
MOST_FRAGMENTS = wp.constant(wp.float64(2.0**16))  # of a lane's sums, so that they stay exact
Fragment = wp.types.vector(length=6, dtype=wp.float32)  # position, distance, weight, face
FragmentSums = wp.types.vector(length=SUM_COUNT, dtype=wp.float64)  # integers below 2**53


@wp.func
def penalty_force(material: wp.vec4f, way: wp.vec3f, depth: wp.float32, approach: wp.vec3f):
    """Return the force on the object at q per unit of area (equations 4 to 6).

    ``way``: unit vector of p - q, from the surface to the fragment. ``approach``: velocity of p
    relative to q.
    """
    along = wp.dot(approach, way)
    push = material[0] * depth + material[1] * along
    aside = approach - along * way
    speed = wp.max(wp.length(aside), material[3])
    force = push * way
    if speed > wp.float32(0.0):
        force += (material[2] * wp.abs(push) / speed) * aside
    return force


@wp.func
def relative_velocity(pair: FieldPair, lever: wp.vec3f, foot: wp.vec3f):
    """Return the velocity of a fragment relative to its foot; both from the pair's centre."""
    v = to_vec3f(pair.other_velocity - pair.velocity)
    v += wp.cross(to_vec3f(pair.other_spin), lever)
    v -= wp.cross(to_vec3f(pair.spin), foot)
    return v


@wp.func
def vertex_velocity_at(operands: FieldOperands, pair: FieldPair, face: wp.int32, p: wp.vec3d):
    """Return a fragment's velocity beside the rigid motion; p in pixels."""
    mesh = operands.meshes[pair.mesh]
    v = mesh.faces[face]
    w = barycentric_weights(pixel_corners(operands, pair, face), p)
    own = w[0] * mesh.velocities[v[0]] + w[1] * mesh.velocities[v[1]]
    return rotation_of(pair.pose) * (own + w[2] * mesh.velocities[v[2]])


@wp.func
def round_to_integer(x: wp.float64):
    """Return the nearest integer of a number below 2**51."""
    return (x + TO_WHOLE) - TO_WHOLE


@wp.func
def fixed_point_sums(
    pair: FieldPair, weight: wp.float32, push: wp.vec3f, torque: wp.vec3f, d: wp.float32
):
    """Return a fragment's share of the sums at distance d, in integer steps."""
    area = wp.float64(weight) * (pair.pixel * pair.pixel * pair.scale[0])
    lever = area * pair.scale[1]
    out = FragmentSums()
    for x in range(3):
        out[x] = round_to_integer(area * wp.float64(push[x]))
        out[3 + x] = round_to_integer(lever * wp.float64(torque[x]))
    out[6] = round_to_integer(AREA_BITS * wp.float64(weight))
    out[7] = round_to_integer(lever * (HALF * pair.material[0] * wp.float64(d * d)))
    out[8] = wp.float64(1.0)
    return out


@wp.func
def warp_add_sums(sums: wp.array[wp.int64], row: wp.int32, amount: FragmentSums, lane: wp.int32):
    """Add the amounts of all lanes to one row; all lanes must call it."""
    if warp_all(amount[8] == ZERO):
        return
    for k in range(SUM_COUNT):
        total = warp_sum(wp.int64(amount[k]))
        if lane == 0 and total != wp.int64(0):
            atomic_add_int64(sums, row * SUM_COUNT + k, total)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __shared__ float room[512][6];
    float* slots = &room[2 * (threadIdx.x & ~31u)][0];
    for (int k = 0; k < 6 && to >= 0; ++k) slots[to * 6 + k] = mine.c[k];
    wp::vec_t<6, float> found;
    for (int k = 0; k < 6; ++k) found.c[k] = of >= 0 ? slots[of * 6 + k] : (float)0;
    return found;
#else
    return mine;
#endif
""")
def exchange_fragment(mine: Fragment, to: wp.int32, of: wp.int32) -> Fragment:
    """Store ``mine`` in slot ``to`` of the warp's 64, and load slot ``of``; -1 does neither."""
    ...


@wp.func
def fragment_inside(
    grid: FieldGrid,
    patch: Patch,
    at: wp.vec2i,
    cells_per_pixel: wp.float32,
    columns: DepthImages,
    early: wp.int32,
):
    """Return the fragment at a pixel; its distance is 0 where it is not inside."""
    c = fragment_at(patch, at, cells_per_pixel)
    distance = wp.float32(0.0)
    if is_in_box(c, last_cell(grid)):
        if early != DEPTH or may_be_inside(columns, patch_axis(patch), c):
            distance = wp.min(interpolate_distance(grid, c), distance)
    face = wp.cast(patch_face(patch), wp.float32)
    return Fragment(c[0], c[1], c[2], distance, patch_float(patch, WEIGHT), face)


@cache
def fragment_sums_for(moving: bool, bending: bool) -> wp.Function:
    """Return the function with or without damping and friction, and vertex velocities.

    Each of these takes registers, which limit the occupancy.
    """

    @wp.func
    def fragment_sums(operands: FieldOperands, pair: FieldPair, grid: FieldGrid, held: Fragment):
        """Return the share of a fragment inside in the sums."""
        at = wp.vec3f(held[0], held[1], held[2])
        depth = -held[3]
        way = -interpolate_gradient(grid, at)
        lever = to_vec3f(grid.lower - pair.centre) + wp.float32(grid.spacing) * at
        foot = lever - depth * way
        push = (wp.float32(pair.material[0]) * depth) * way
        if wp.static(moving):
            v = relative_velocity(pair, lever, foot)
            if wp.static(bending):
                if operands.meshes[pair.mesh].velocities.shape[0] > 0:
                    p = wp.vec3d(at) / pair.cells_per_pixel
                    v += to_vec3f(vertex_velocity_at(operands, pair, wp.cast(held[5], wp.int32), p))
            push = penalty_force(wp.vec4f(pair.material), way, depth, v)
        return fixed_point_sums(pair, held[4], push, wp.cross(foot, push), depth)

    return fragment_sums


@cache
def penalty_kernel_for(moving: bool, bending: bool) -> wp.Kernel:
    """Return the kernel for fragments as in ``fragment_sums_for``."""
    fragment_sums = fragment_sums_for(moving, bending)

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False},
        launch_bounds=(256, 2),  # at most 128 registers
    )
    def penalty_kernel(
        # in
        span: wp.vec3i,
        operands: FieldOperands,
        patches: Patches,
        columns: DepthImages,
        early: wp.int32,
        copies: wp.int32,
        # out
        sums_out: wp.array[wp.int64],
    ):
        """Draw the patches, and add up the fragments inside.

        Fragments inside are collected until every lane has one: their gradients take the most work.
        """
        thread = span[0] + wp.tid()
        lanes = lane_count()
        lane = thread % lanes
        copy = (thread / lanes) % copies
        waiting = wp.int32(0)
        total = FragmentSums()
        mine = batch_range(patches, span, thread)
        for i in range(mine[0], mine[1]):
            work = lane_pixels(patches, i, mine[1], lane)
            pair = operands.pairs[work.pair]
            grid = operands.fields[pair.field]
            pixel = wp.vec2i(0, 0)
            for k in range(work.steps):
                pixel = patch_pixel(work.patch, work.first + k, pixel)
                cells_per_pixel = wp.float32(pair.cells_per_pixel)
                drawn = fragment_inside(grid, work.patch, pixel, cells_per_pixel, columns, early)
                inside = work.is_valid and drawn[3] < wp.float32(0.0)
                rank = warp_rank(inside)
                exchange_fragment(drawn, wp.where(inside, waiting + rank, -1), -1)
                waiting += warp_count(inside)
                warp_sync()
                while waiting >= lanes or (waiting > 0 and work.is_last):
                    few = wp.min(waiting, lanes)
                    waiting -= few
                    if lane < few:
                        held = exchange_fragment(drawn, -1, waiting + lane)
                        total += fragment_sums(operands, pair, grid, held)
                    warp_sync()
            if work.is_last or not warp_all(total[8] < MOST_FRAGMENTS):
                warp_add_sums(sums_out, work.pair * copies + copy, total, lane)
                total = FragmentSums()

    return penalty_kernel


@wp.func
def sum_unit(pair: FieldPair, k: wp.int32):
    """Return the amount that one integer step of a sum stands for."""
    step = wp.float64(1.0)
    if k < 8:
        step = wp.where(pair.scale[0] > ZERO, wp.float64(1.0) / pair.scale[0], ZERO)
    if (k >= 3 and k < 6) or k == 7:
        step = step / pair.scale[1]
    if k == 6:
        step = pair.pixel * pair.pixel / AREA_BITS
    return step


@wp.kernel
def response_rows_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    copies: wp.int32,
    # out
    sums_out: wp.array[wp.int64],
    count_out: wp.array[wp.int64],
    rows_out: wp.array2d[wp.float64],
):
    """Write the sums of each pair as a row; reset sums and counts for the next run.

    The lanes of a warp add up the copies of one sum.
    """
    lanes = lane_count()
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = i / lanes
        pair_index = row / SUM_COUNT
        k = row % SUM_COUNT
        part = wp.int64(0)
        for copy in range(i % lanes, copies, lanes):
            at = (pair_index * copies + copy) * SUM_COUNT + k
            part += sums_out[at]
            sums_out[at] = wp.int64(0)
        total = warp_sum(part)
        if i % lanes == 0:
            rows_out[pair_index, k] = sum_unit(operands.pairs[pair_index], k) * wp.float64(total)
        if i < count_out.shape[0]:
            rows_out[0, SUM_COUNT + i] = wp.float64(count_out[i])
            count_out[i] = wp.int64(0)
