"""Penalty, damping and friction of all fragments inside an object, added up.

Morvan et al. 2008, section 3.4, equations 4 to 13. What a fragment adds is rounded to whole numbers
of small steps: the order in which they are added does not matter.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import turn_of
from abut.bounds.rows import single_of
from abut.core.atomics import atomic_add_int64
from abut.core.lanes import (
    lane_count,
    warp_all,
    warp_count,
    warp_rank,
    warp_sum,
    warp_sync,
)
from abut.sdf.depth_images import Columns, may_be_inside
from abut.sdf.draw_batches import Patches, stroke_of, turns_of
from abut.sdf.footprint import DEPTH, load_corners
from abut.sdf.grid import FieldGrid
from abut.sdf.lookup import blend_distance, blend_gradient, in_box, last_cell
from abut.sdf.orthographic_raster import blend_of_corners
from abut.sdf.pixel_patch import (
    WEIGHT,
    Patch,
    axis_in,
    face_in,
    fragment,
    number_in,
    pixel_of,
)
from abut.sdf.posed_in_field import Encounters, Meeting

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SUMS = 9  # force, torque, area, energy, fragments
SUM_COUNT = wp.constant(SUMS)
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
TO_WHOLE = wp.constant(wp.float64(1.5 * 2.0**52))
AREA_BITS = wp.constant(wp.float64(2.0**36))  # of the area of a pixel
MOST_FRAGMENTS = wp.constant(wp.float64(2.0**16))  # whose sums are exact, see Shares
Held = wp.types.vector(length=6, dtype=wp.float32)  # position, distance, weight, face
Shares = wp.types.vector(length=SUMS, dtype=wp.float64)  # whole numbers, below 2**53


@wp.func
def single4(v: wp.vec4d):
    """``single_of`` for four numbers; forces need no more, and registers are few."""
    return wp.vec4f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]), wp.float32(v[3]))


@wp.func
def penalty_force(material: wp.vec4f, way: wp.vec3f, depth: wp.float32, approach: wp.vec3f):
    """The force on the object at q for a unit of area (equations 4 to 6).

    ``way``: unit vector of p - q, from the surface to the fragment. ``approach``: velocity of p
    less that of q.
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
def own_velocity(encounters: Encounters, meeting: Meeting, face: wp.int32, p: wp.vec3d):
    """What a fragment's velocity has beyond that of a rigid mesh; p in pixels."""
    mesh = encounters.meshes[meeting.mesh]
    v = mesh.faces[face]
    w = blend_of_corners(load_corners(encounters, meeting, face), p)
    own = w[0] * mesh.velocities[v[0]] + w[1] * mesh.velocities[v[1]]
    return turn_of(meeting.pose) * (own + w[2] * mesh.velocities[v[2]])


@wp.func
def whole(x: wp.float64):
    """The nearest whole number, of what is below 2**51."""
    return (x + TO_WHOLE) - TO_WHOLE


@wp.func
def weighted(meeting: Meeting, weight: wp.float32, push: wp.vec3f, torque: wp.vec3f, d: wp.float32):
    """What a fragment at distance d adds to the sums, in whole steps of theirs."""
    area = wp.float64(weight) * (meeting.pixel * meeting.pixel * meeting.scale[0])
    lever = area * meeting.scale[1]
    out = Shares()
    for x in range(3):
        out[x] = whole(area * wp.float64(push[x]))
        out[3 + x] = whole(lever * wp.float64(torque[x]))
    out[6] = whole(AREA_BITS * wp.float64(weight))
    out[7] = whole(lever * (HALF * meeting.material[0] * wp.float64(d * d)))
    out[8] = wp.float64(1.0)
    return out


@wp.func
def add_together(sums: wp.array[wp.int64], row: wp.int32, amount: Shares, lane: wp.int32):
    """Add what all lanes have for one row; all lanes must come."""
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
def hold_back(mine: Held, to: wp.int32, of: wp.int32) -> Held:
    """Lay ``mine`` into slot ``to`` of 64 of the lanes, or take what is in ``of``; -1: neither."""
    ...


@wp.func
def held_of(
    grid: FieldGrid,
    patch: Patch,
    at: wp.vec2i,
    share: wp.float32,
    columns: Columns,
    early: wp.int32,
):
    """The fragment at a pixel, with a distance of 0 where it is not inside."""
    c = fragment(patch, at, share)
    distance = wp.float32(0.0)
    if in_box(c, last_cell(grid)):
        if early != DEPTH or may_be_inside(columns, axis_in(patch), c):
            distance = wp.min(blend_distance(grid, c), distance)
    face = wp.cast(face_in(patch), wp.float32)
    return Held(c[0], c[1], c[2], distance, number_in(patch, WEIGHT), face)


@cache
def penalty_kernel_for(moving: bool, bending: bool) -> wp.Kernel:
    """The kernel for damping or friction, and for meshes whose vertices have velocities.

    Each of these takes registers, of which there are too few as it is.
    """

    @wp.func
    def fragment_sums(encounters: Encounters, meeting: Meeting, grid: FieldGrid, held: Held):
        """What a fragment inside adds to the sums."""
        at = wp.vec3f(held[0], held[1], held[2])
        depth = -held[3]
        way = -blend_gradient(grid, at)
        lever = single_of(grid.lower - meeting.centre) + wp.float32(grid.spacing) * at
        foot = lever - depth * way
        push = (wp.float32(meeting.material[0]) * depth) * way
        if wp.static(moving):
            v = single_of(meeting.other_velocity - meeting.velocity)
            v += wp.cross(single_of(meeting.other_spin), lever)
            v -= wp.cross(single_of(meeting.spin), foot)
            if wp.static(bending):
                if encounters.meshes[meeting.mesh].velocities.shape[0] > 0:
                    p = wp.vec3d(at) / meeting.share
                    v += single_of(own_velocity(encounters, meeting, wp.cast(held[5], wp.int32), p))
            push = penalty_force(single4(meeting.material), way, depth, v)
        return weighted(meeting, held[4], push, wp.cross(foot, push), depth)

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False},
        launch_bounds=(256, 2),  # at most 128 registers
    )
    def penalty_kernel(
        # in
        span: wp.vec3i,
        encounters: Encounters,
        patches: Patches,
        columns: Columns,
        early: wp.int32,
        copies: wp.int32,
        # out
        sums_out: wp.array[wp.int64],
    ):
        """Draw the patches, and add up the fragments inside.

        These are held back until there is one for each lane: they take the most work.
        """
        thread = span[0] + wp.tid()
        lanes = lane_count()
        lane = thread % lanes
        copy = (thread / lanes) % copies
        waiting = wp.int32(0)
        total = Shares()
        mine = turns_of(patches, span, thread)
        for i in range(mine[0], mine[1]):
            stroke = stroke_of(patches, i, mine[1], lane)
            meeting = encounters.meetings[stroke.meeting]
            grid = encounters.fields[meeting.field]
            pixel = wp.vec2i(0, 0)
            for k in range(stroke.steps):
                pixel = pixel_of(stroke.patch, stroke.first + k, pixel)
                share = wp.float32(meeting.share)
                drawn = held_of(grid, stroke.patch, pixel, share, columns, early)
                inside = stroke.is_there and drawn[3] < wp.float32(0.0)
                rank = warp_rank(inside)
                hold_back(drawn, wp.where(inside, waiting + rank, -1), -1)
                waiting += warp_count(inside)
                warp_sync()
                while waiting >= lanes or (waiting > 0 and stroke.is_last):
                    few = wp.min(waiting, lanes)
                    waiting -= few
                    if lane < few:
                        held = hold_back(drawn, -1, waiting + lane)
                        total += fragment_sums(encounters, meeting, grid, held)
                    warp_sync()
            if stroke.is_last or not warp_all(total[8] < MOST_FRAGMENTS):
                add_together(sums_out, stroke.meeting * copies + copy, total, lane)
                total = Shares()

    return penalty_kernel


@wp.func
def step_of_sum(meeting: Meeting, k: wp.int32):
    """What a whole number of a sum stands for."""
    step = wp.float64(1.0)
    if k < 8:
        step = wp.where(meeting.scale[0] > ZERO, wp.float64(1.0) / meeting.scale[0], ZERO)
    if (k >= 3 and k < 6) or k == 7:
        step = step / meeting.scale[1]
    if k == 6:
        step = meeting.pixel * meeting.pixel / AREA_BITS
    return step


@wp.kernel
def response_rows_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    copies: wp.int32,
    # out
    sums_out: wp.array[wp.int64],
    count_out: wp.array[wp.int64],
    rows_out: wp.array2d[wp.float64],
):
    """Force, torque, area, energy and fragments of each meeting; then forget, for the next run.

    The lanes of a warp add up the copies of one sum.
    """
    lanes = lane_count()
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = i / lanes
        m = row / SUM_COUNT
        k = row % SUM_COUNT
        part = wp.int64(0)
        for copy in range(i % lanes, copies, lanes):
            at = (m * copies + copy) * SUM_COUNT + k
            part += sums_out[at]
            sums_out[at] = wp.int64(0)
        total = warp_sum(part)
        if i % lanes == 0:
            rows_out[m, k] = step_of_sum(encounters.meetings[m], k) * wp.float64(total)
        if i < count_out.shape[0]:
            rows_out[0, SUM_COUNT + i] = wp.float64(count_out[i])
            count_out[i] = wp.int64(0)
