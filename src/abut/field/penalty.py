"""Penalty, damping and friction of all fragments inside an object, added up.

Morvan et al. 2008, section 3.4, equations 4 to 13. What a fragment adds is rounded to whole numbers
of small steps: the order in which they are added does not matter.
"""

from functools import cache

import warp as wp

from abut.atomics import add_to
from abut.bounds.relative import turn_of
from abut.field.columns import Columns, may_be_inside
from abut.field.cover import (
    DEPTH,
    block_of,
    cover_inside,
    load_corners,
    part_count,
    part_inside,
    push_blocks,
)
from abut.field.drawing import (
    Held,
    first_item,
    fragment,
    hold_back,
    lay_out,
    lent,
    patch_of,
    pixel_of,
    slot_of,
)
from abut.field.grid import FieldGrid
from abut.field.lookup import blend_distance, blend_gradient, in_box, last_cell
from abut.field.meeting import Encounters, Meeting, meeting_of
from abut.field.parts import BLOCK, is_large
from abut.field.picture import Cover, blend_of_corners, pixel_count
from abut.lanes import (
    all_lanes,
    count_of_lanes,
    lane_count,
    rank_of_lane,
    sum_of_lanes,
    sums_over_lanes,
    wait_for_lanes,
)
from abut.pairs import PairQueue

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SUMS = 9  # force, torque, area, energy, fragments
SUM_COUNT = wp.constant(SUMS)
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
TO_WHOLE = wp.constant(wp.float64(1.5 * 2.0**52))
AREA_BITS = wp.constant(wp.float64(2.0**36))  # of the area of a pixel
MOST_FRAGMENTS = wp.constant(wp.float64(2.0**16))  # whose sums are exact, see Shares
Shares = wp.types.vector(length=SUMS, dtype=wp.float64)  # whole numbers, below 2**53


@wp.func
def single(v: wp.vec3d):
    """A vector in float32: forces need no more, and threads have room for few float64."""
    return wp.vec3f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


@wp.func
def single4(v: wp.vec4d):
    """``single`` for four numbers."""
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
    if all_lanes(amount[8] == ZERO):
        return
    for k in range(SUM_COUNT):
        total = sum_of_lanes(wp.int64(amount[k]))
        if lane == 0 and total != wp.int64(0):
            add_to(sums, row * SUM_COUNT + k, total)


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
        lever = single(grid.lower - meeting.centre) + wp.float32(grid.spacing) * at
        foot = lever - depth * way
        push = (wp.float32(meeting.material[0]) * depth) * way
        if wp.static(moving):
            v = single(meeting.other_velocity - meeting.velocity)
            v += wp.cross(single(meeting.other_spin), lever)
            v -= wp.cross(single(meeting.spin), foot)
            if wp.static(bending):
                if encounters.meshes[meeting.mesh].velocities.shape[0] > 0:
                    p = wp.vec3d(at) / meeting.share
                    v += single(own_velocity(encounters, meeting, wp.cast(held[5], wp.int32), p))
            push = penalty_force(single4(meeting.material), way, depth, v)
        return weighted(meeting, held[4], push, wp.cross(foot, push), depth)

    @wp.func
    def sums_of_cover(
        encounters: Encounters,
        meeting: Meeting,
        cover: Cover,
        face: wp.int32,
        columns: Columns,
        early: wp.int32,
        lane: wp.int32,
        sums: Shares,
    ):
        """This lane's sums, and its share of the fragments inside of all lanes' covers."""
        grid = encounters.fields[meeting.field]
        last = last_cell(grid)
        count = pixel_count(cover)
        before = sums_over_lanes(count)
        if before[1] == 0:
            return sums
        mine = patch_of(cover, face, before[0], meeting.share)
        lay_out(mine, count)
        lanes = lane_count()
        waiting = wp.int32(0)
        pixel = wp.vec2i(-1, 0)
        out = sums
        for at in range(0, before[1], lanes):
            patch = lent(mine, -1, slot_of(before[0], count, at))
            pixel = pixel_of(patch, at + lane - patch.start[0], pixel)
            c = fragment(patch, pixel, wp.float32(meeting.share))
            inside = at + lane < before[1] and in_box(c, last)
            if inside and early == DEPTH:
                inside = may_be_inside(columns, patch.place[3], c)
            distance = wp.float32(0.0)
            if inside:
                distance = blend_distance(grid, c)
            inside = distance < wp.float32(0.0)
            drawn = Held(
                c[0],
                c[1],
                c[2],
                distance,
                patch.frame[5],
                wp.cast(patch.start[1], wp.float32),
            )
            rank = rank_of_lane(inside)
            hold_back(drawn, wp.where(inside, waiting + rank, -1), -1)
            waiting += count_of_lanes(inside)
            wait_for_lanes()
            while waiting >= lanes or (waiting > 0 and at + lanes >= before[1]):
                few = wp.min(waiting, lanes)
                waiting -= few
                if lane < few:
                    out += fragment_sums(
                        encounters, meeting, grid, hold_back(drawn, -1, waiting + lane)
                    )
                wait_for_lanes()
        return out

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False},
        launch_bounds=(256, 2),  # at most 128 registers
    )
    def penalty_kernel(
        # in
        span: wp.vec3i,
        encounters: Encounters,
        opening: wp.int32,
        group: wp.int32,
        columns: Columns,
        early: wp.int32,
        copies: wp.int32,
        # out
        blocks_out: PairQueue,
        sums_out: wp.array[wp.int64],
    ):
        """Add up the fragments inside, of faces, or of the parts of large ones (``opening``)."""
        thread = span[0] + wp.tid()
        lanes = lane_count()
        lane = thread % lanes
        copy = (thread / lanes) % copies
        held = wp.int32(-1)
        total = Shares()
        item_count = encounters.firsts[encounters.firsts.shape[0] - 1]
        stop = wp.min(span[1], item_count / group * lanes)
        if opening == 1:
            stop = part_count(blocks_out, span[1])
        for i in range(thread, stop, span[2]):
            at = wp.vec3i(first_item(i, group), 0, 0)
            if opening == 1:
                at = block_of(blocks_out, i)
            m = meeting_of(encounters, at[0])
            meeting = encounters.meetings[m]
            face = at[0] - encounters.firsts[m]
            cover = Cover()
            if opening == 0:
                face += lane
            if opening == 1:
                cover = part_inside(encounters, meeting, face, early, at, i % BLOCK)
            elif lane < group and face < encounters.meshes[meeting.mesh].faces.shape[0]:
                cover = cover_inside(encounters, meeting, face, early)
                if is_large(cover):
                    push_blocks(blocks_out, at[0] + lane, cover)
                    cover.size = wp.vec2i(0, 0)
            if m != held or not all_lanes(total[8] < MOST_FRAGMENTS):
                if held >= 0:
                    add_together(sums_out, held * copies + copy, total, lane)
                total = Shares()
                held = m
            total = sums_of_cover(encounters, meeting, cover, face, columns, early, lane, total)
        if held >= 0:
            add_together(sums_out, held * copies + copy, total, lane)

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
        total = sum_of_lanes(part)
        if i % lanes == 0:
            rows_out[m, k] = step_of_sum(encounters.meetings[m], k) * wp.float64(total)
        if i == 0:
            rows_out[0, SUM_COUNT] = wp.float64(count_out[0])
            count_out[0] = wp.int64(0)
