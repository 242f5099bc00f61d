"""Penalty, damping and friction of all fragments inside an object, added up.

Morvan et al. 2008, section 3.4, equations 4 to 13. The sum over a turn is rounded to a whole number
of small steps and those are added: the order does not matter.
"""

from functools import cache

import warp as wp

from abut.atomics import add_to
from abut.bounds.relative import turn_of
from abut.field.columns import Columns, may_be_inside
from abut.field.cover import (
    BOUND,
    DEPTH,
    item_count,
    least_of_turn,
    listed_turn,
    load_corners,
)
from abut.field.fragments import (
    Cover,
    blend_of_corners,
    first_pixel,
    fragment,
    next_pixel,
    slot_count,
)
from abut.field.lookup import blend_distance, blend_gradient, last_cell
from abut.field.meeting import Encounters, Meeting
from abut.lanes import all_lanes, lane_count, most_of_lanes, sum_of_lanes
from abut.pairs import PairQueue

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SUMS = 9  # force, torque, area, energy, fragments
SUM_COUNT = wp.constant(SUMS)
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
AREA_BITS = wp.constant(wp.float64(2.0**36))  # of the area of a pixel
WholeSums = wp.types.vector(length=SUMS, dtype=wp.int64)
Shares = wp.types.vector(length=SUMS, dtype=wp.float64)


@wp.func
def single(v: wp.vec3d):
    """A vector in float32: forces need no more, and threads have room for few float64."""
    return wp.vec3f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


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
    """What a fragment's velocity has beyond that of a rigid mesh."""
    mesh = encounters.meshes[meeting.mesh]
    v = mesh.faces[face]
    w = blend_of_corners(load_corners(encounters, meeting, face), p)
    own = w[0] * mesh.velocities[v[0]] + w[1] * mesh.velocities[v[1]]
    return turn_of(meeting.pose) * (own + w[2] * mesh.velocities[v[2]])


@wp.func
def add_alone(sums: wp.array[wp.int64], row: wp.int32, amount: WholeSums):
    """Add what one thread has."""
    for k in range(SUM_COUNT):
        if amount[k] != wp.int64(0):
            add_to(sums, row * SUM_COUNT + k, amount[k])


@wp.func
def add_together(sums: wp.array[wp.int64], row: wp.int32, amount: WholeSums, lane: wp.int32):
    """Add what all lanes have for one row; all lanes must come."""
    for k in range(SUM_COUNT):
        total = sum_of_lanes(amount[k])
        if lane == 0 and total != wp.int64(0):
            add_to(sums, row * SUM_COUNT + k, total)


@cache
def penalty_kernel_for(moving: bool, bending: bool) -> wp.Kernel:
    """The kernel for damping or friction, and for meshes whose vertices have velocities.

    Each of these takes registers, of which there are too few as it is.
    """

    @wp.func
    def turn_sums(
        encounters: Encounters, cover: Cover, columns: Columns, early: wp.int32, turn: wp.int32
    ):
        """What the fragments of a turn that are inside add up to, in steps of the sums."""
        meeting = encounters.meetings[cover.meeting]
        grid = encounters.fields[meeting.field]
        last = last_cell(grid)
        share = meeting.pixel / grid.spacing
        origin = grid.lower - meeting.centre
        approach = single(meeting.other_velocity - meeting.velocity)
        other_spin = single(meeting.other_spin)
        spin = single(meeting.spin)
        material = wp.vec4f(
            wp.float32(meeting.material[0]),
            wp.float32(meeting.material[1]),
            wp.float32(meeting.material[2]),
            wp.float32(meeting.material[3]),
        )
        force = wp.vec3d()
        torque = wp.vec3d()
        squares = ZERO
        count = ZERO
        slots = slot_count(cover, turn)
        if early == BOUND and least_of_turn(grid, meeting, cover, turn) >= wp.float32(0.0):
            slots = 0
        at = first_pixel(cover, turn)
        for slot in range(slots):
            f = fragment(cover, at)
            at = next_pixel(cover, at, slot)
            p = wp.vec3d(f[0], f[1], f[2])
            c = wp.vec3f(
                wp.float32(p[0] * share), wp.float32(p[1] * share), wp.float32(p[2] * share)
            )
            inside = f[3] > ZERO and wp.min(c) >= wp.float32(0.0)
            inside = inside and wp.min(last - c) >= wp.float32(0.0)
            if inside and early == DEPTH:
                inside = may_be_inside(columns, cover.axis, c)
            distance = wp.float32(0.0)
            if inside:
                distance = blend_distance(grid, c)
            if distance < wp.float32(0.0):
                way = -blend_gradient(grid, c)
                depth = -distance
                lever = single(origin + meeting.pixel * p)
                foot = lever - depth * way
                push = (material[0] * depth) * way
                if wp.static(moving):
                    v = approach + wp.cross(other_spin, lever) - wp.cross(spin, foot)
                    if wp.static(bending):
                        if encounters.meshes[meeting.mesh].velocities.shape[0] > 0:
                            v += single(own_velocity(encounters, meeting, cover.face, p))
                    push = penalty_force(material, way, depth, v)
                force += wp.vec3d(push)
                torque += wp.vec3d(wp.cross(foot, push))
                squares += wp.float64(depth * depth)
                count += wp.float64(1.0)
        area = cover.weight * meeting.pixel * meeting.pixel * meeting.scale[0]
        energy = HALF * meeting.material[0] * squares
        out = Shares()
        for x in range(3):
            out[x] = area * force[x]
            out[3 + x] = area * meeting.scale[1] * torque[x]
        out[6] = AREA_BITS * cover.weight * count
        out[7] = area * meeting.scale[1] * energy
        out[8] = count
        return out

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False},
    )
    def penalty_kernel(
        # in
        span: wp.vec3i,
        encounters: Encounters,
        turns: PairQueue,
        blocks: PairQueue,
        columns: Columns,
        early: wp.int32,
        copies: wp.int32,
        # out
        sums_out: wp.array[wp.int64],
    ):
        """Add up the fragments inside, a turn a thread. Sums have several copies."""
        thread = span[0] + wp.tid()
        lanes = lane_count()
        copy = (thread / lanes) % copies
        held = wp.int32(-1)
        total = WholeSums()
        for item in range(thread, item_count(turns, blocks, span[1]), span[2]):
            row = listed_turn(turns, blocks, item)
            cover = encounters.covers[row[0]]
            if cover.meeting != held:
                if held >= 0:
                    add_alone(sums_out, held * copies + copy, total)
                total = WholeSums()
                held = cover.meeting
            found = turn_sums(encounters, cover, columns, early, row[1])
            for k in range(SUM_COUNT):
                total[k] = total[k] + wp.int64(wp.rint(found[k]))
        most = most_of_lanes(held)
        if all_lanes(held == most or held < 0):
            if most >= 0:
                add_together(sums_out, most * copies + copy, total, thread % lanes)
        elif held >= 0:
            add_alone(sums_out, held * copies + copy, total)

    return penalty_kernel


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
    """Force, torque, area, energy and fragments of each meeting; then forget, for the next run."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        m = i / SUM_COUNT
        k = i % SUM_COUNT
        total = wp.int64(0)
        for copy in range(copies):
            at = (m * copies + copy) * SUM_COUNT + k
            total += sums_out[at]
            sums_out[at] = wp.int64(0)
        meeting = encounters.meetings[m]
        step = wp.float64(1.0)
        if k < 8:
            step = wp.float64(0.0)
            if meeting.scale[0] > ZERO:
                step = wp.float64(1.0) / meeting.scale[0]
        if (k >= 3 and k < 6) or k == 7:
            step = step / meeting.scale[1]
        if k == 6:
            step = meeting.pixel * meeting.pixel / AREA_BITS
        rows_out[m, k] = step * wp.float64(total)
        if i < 3:
            rows_out[0, SUM_COUNT + i] = wp.float64(count_out[i])
            count_out[i] = wp.int64(0)
