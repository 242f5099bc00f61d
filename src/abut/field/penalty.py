"""Penalty, damping and friction of all fragments inside an object, added up.

Morvan et al. 2008, section 3.4, equations 4 to 13. The sum over a lane's part of a block is
rounded to a whole number of small steps and those are added: the order does not matter.
"""

import warp as wp

from abut.atomics import add_to
from abut.field.columns import Columns, may_be_inside
from abut.field.cover import DEPTH, cover_in_box, least_of_turn
from abut.field.fragments import (
    TURN,
    Cover,
    blend_of_corners,
    fragment,
    fragment_index,
    turn_count,
)
from abut.field.grid import FieldGrid, sample_cells
from abut.field.lookup import blend_distance, last_cell
from abut.field.meeting import Encounters, Meeting
from abut.lanes import lane_count, sum_of_lanes
from abut.pairs import PairQueue, queue_stop, unpack_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SUMS = 9  # force, torque, area, energy, fragments
SUM_COUNT = wp.constant(SUMS)
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
AREA_BITS = wp.constant(wp.float64(2.0**36))  # of the area of a pixel
WholeSums = wp.types.vector(length=SUMS, dtype=wp.int64)
Shares = wp.types.vector(length=SUMS, dtype=wp.float64)


@wp.func
def penalty_force(material: wp.vec4d, way: wp.vec3d, depth: wp.float64, approach: wp.vec3d):
    """The force on the object at q for a unit of area (equations 4 to 6).

    ``way``: unit vector of p - q, from the surface to the fragment. ``approach``: velocity of p
    less that of q.
    """
    along = wp.dot(approach, way)
    push = material[0] * depth + material[1] * along
    aside = approach - along * way
    speed = wp.max(wp.length(aside), material[3])
    force = push * way
    if speed > ZERO:
        force += (material[2] * wp.abs(push) / speed) * aside
    return force


@wp.func
def velocity_at(
    encounters: Encounters, meeting: Meeting, face: wp.int32, corners: wp.mat33d, at: wp.vec3d,
    lever: wp.vec3d,
):  # fmt: skip
    """The velocity of a fragment: as of a rigid mesh, and what its vertices have beyond that."""
    out = meeting.other_velocity + wp.cross(meeting.other_spin, lever)
    mesh = encounters.meshes[meeting.mesh]
    if mesh.velocities.shape[0] > 0:
        v = mesh.faces[face]
        w = blend_of_corners(corners, at)
        out += w[0] * mesh.velocities[v[0]]
        out += w[1] * mesh.velocities[v[1]] + w[2] * mesh.velocities[v[2]]
    return out


@wp.func
def share_of(
    encounters: Encounters, meeting: Meeting, grid: FieldGrid, face: wp.int32, cover: Cover,
    p: wp.vec3d, cells: wp.vec3f,
):  # fmt: skip
    """What a fragment inside the object adds to the sums, in their steps."""
    found = sample_cells(grid, cells)
    out = Shares()
    depth = -wp.float64(found[0])
    way = -wp.vec3d(wp.float64(found[1]), wp.float64(found[2]), wp.float64(found[3]))
    lever_p = grid.lower + meeting.pixel * p - meeting.centre
    lever_q = lever_p - depth * way
    speed = velocity_at(encounters, meeting, face, cover.corners, p, lever_p)
    speed = speed - meeting.velocity - wp.cross(meeting.spin, lever_q)
    area = cover.weight * meeting.pixel * meeting.pixel
    force = area * penalty_force(meeting.material, way, depth, speed)
    torque = meeting.scale[1] * wp.cross(lever_q, force)
    energy = (HALF * area * meeting.scale[1]) * meeting.material[0] * depth * depth
    for x in range(3):
        out[x] = meeting.scale[0] * force[x]
        out[3 + x] = meeting.scale[0] * torque[x]
    out[6] = AREA_BITS * cover.weight
    out[7] = meeting.scale[0] * energy
    out[8] = wp.float64(1.0)
    return out


@wp.func
def add_sums(sums: wp.array[wp.int64], row: wp.int32, amount: WholeSums, lane: wp.int32):
    """Add what all lanes have; all lanes must come."""
    for k in range(SUM_COUNT):
        total = sum_of_lanes(amount[k])
        if lane == 0 and total != wp.int64(0):
            add_to(sums, row * SUM_COUNT + k, total)


@wp.kernel
def penalty_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    columns: Columns,
    early: wp.int32,
    blocks: PairQueue,
    copies: wp.int32,
    # out
    sums_out: wp.array[wp.int64],
):
    """Add up the fragments inside; the lanes of a warp share a block. Sums have several copies."""
    lanes = lane_count()
    thread = span[0] + wp.tid()
    lane = thread % lanes
    copy = (thread / lanes) % copies
    held = wp.int32(-1)
    total = WholeSums()
    for item in range(thread / lanes, queue_stop(blocks, span[1]), wp.max(span[2] / lanes, 1)):
        row = unpack_pair(blocks.keys[item], encounters.bits)
        if row[0] != held:
            if held >= 0:
                add_sums(sums_out, held * copies + copy, total, lane)
            total = WholeSums()
            held = row[0]
        meeting = encounters.meetings[row[0]]
        grid = encounters.fields[meeting.field]
        last = last_cell(grid)
        share = meeting.pixel / grid.spacing
        cover = cover_in_box(encounters, meeting, row[1], row[2] % 4)
        found = Shares()
        for turn in range(turn_count(cover)):
            if least_of_turn(grid, meeting, cover, row[2] / 4, turn) < wp.float32(0.0):
                for slot in range(lane, TURN, lanes):
                    index = fragment_index(cover, row[2] / 4, turn, slot)
                    if index >= 0:
                        f = fragment(cover, index)
                        p = wp.vec3d(f[0], f[1], f[2])
                        c = wp.vec3f(
                            wp.float32(p[0] * share),
                            wp.float32(p[1] * share),
                            wp.float32(p[2] * share),
                        )
                        inside = f[3] > ZERO and wp.min(c) >= wp.float32(0.0)
                        inside = inside and wp.min(last - c) >= wp.float32(0.0)
                        if inside and early == DEPTH:
                            inside = may_be_inside(columns, cover.axis, c)
                        if inside:
                            if blend_distance(grid, c) < wp.float32(0.0):
                                found += share_of(encounters, meeting, grid, row[1], cover, p, c)
        for k in range(SUM_COUNT):
            total[k] = total[k] + wp.int64(wp.rint(found[k]))
    if held >= 0:
        add_sums(sums_out, held * copies + copy, total, lane)


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
    for m in range(span[0] + wp.tid(), span[1], span[2]):
        meeting = encounters.meetings[m]
        total = WholeSums()
        for copy in range(copies):
            for k in range(SUM_COUNT):
                at = (m * copies + copy) * SUM_COUNT + k
                total[k] = total[k] + sums_out[at]
                sums_out[at] = wp.int64(0)
        step = wp.float64(0.0)
        if meeting.scale[0] > ZERO:
            step = wp.float64(1.0) / meeting.scale[0]
        for x in range(3):
            rows_out[m, x] = step * wp.float64(total[x])
            rows_out[m, 3 + x] = step / meeting.scale[1] * wp.float64(total[3 + x])
        rows_out[m, 6] = meeting.pixel * meeting.pixel / AREA_BITS * wp.float64(total[6])
        rows_out[m, 7] = step / meeting.scale[1] * wp.float64(total[7])
        rows_out[m, 8] = wp.float64(total[8])
        if m == 0:
            rows_out[0, 9] = wp.float64(count_out[0])
            count_out[0] = wp.int64(0)
